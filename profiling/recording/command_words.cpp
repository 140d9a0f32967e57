#include "profiling/recording/command_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "profiling/base/failure.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

// The script that a launcher starts, or the launcher itself.
std::string started_by(const std::string& launcher, const std::vector<std::string>& command) {
  const auto script = std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  return script == command.end() ? launcher : fs::path(*script).filename().string();
}

bool is_launcher(const std::string& name) {
  constexpr std::array<std::string_view, 13> kNames{
      "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "torch.distributed.run", "torch.distributed.launch",
      "accelerate.commands.launch", "uv", "conda", "poetry", "pixi"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

std::string name_of_command(const std::vector<std::string>& command) {
  const std::string program = fs::path(command.at(0)).filename();
  if (is_launcher(program)) return started_by(program, command);
  if (!program.starts_with("python")) return program;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size())
      return is_launcher(command[i + 1]) ? started_by(command[i + 1], command) : command[i + 1];
    if (command[i] == "-c") break;
    if (command[i] == "-X" || command[i] == "-W" || command[i] == "--check-hash-based-pycs") {
      ++i;  // skips its value
      continue;
    }
    if (!command[i].starts_with('-')) return fs::path(command[i]).filename();
  }
  return program;
}

namespace {

bool is_letter_of_key(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

enum class Value { Open, Token, Secret };  // what the name of an option says about its value

// Words of "--wandb.api_key": wandb, api, key.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name)
    if (c == '-' || c == '_' || c == '.' || c == '/' || c == '+')
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::erase(words, "");
  return words;
}

Value value_of(std::string_view name) {
  constexpr std::array<std::string_view, 9> kSecret{"password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey", "pwd"};
  constexpr std::array<std::string_view, 6> kOfKey{"api", "access", "secret", "private", "auth", "account"};
  constexpr std::array<std::string_view, 8> kElsewhere{"file", "path", "dir", "id", "name", "dim", "len", "size"};
  const auto words = words_of(name);
  const auto among = [](const auto& list, const std::string& word) { return std::ranges::find(list, word) != list.end(); };
  if (words.empty() || among(kElsewhere, words.back())) return Value::Open;
  if (std::ranges::any_of(words, [&](const auto& word) { return among(kSecret, word); })) return Value::Secret;
  for (size_t i = 1; i < words.size(); ++i)
    if (words[i] == "key" && among(kOfKey, words[i - 1])) return Value::Secret;
  return words.back() == "token" || words.back() == "bearer" ? Value::Token : Value::Open;
}

// "--pad-token <pad>" and "--eos-token 2" are no secrets.
bool looks_random(std::string_view value) {
  constexpr size_t kLeast = 12;
  return value.size() >= kLeast && std::ranges::any_of(value, is_digit) && value.find(' ') == value.npos;
}

bool is_secret(Value kind, std::string_view value) {
  return !value.empty() && (kind == Value::Secret || (kind == Value::Token && looks_random(value)));
}

// Keys that their makers gave a form: "hf_…", "sk-…".
void mask_known_keys(std::string& word) {
  struct Form {
    std::string_view begin, marks;  // marks that may stand between its letters and digits
  };
  constexpr std::array<Form, 12> kForms{{{"hf_", ""}, {"sk-", "-_"}, {"ghp_", ""}, {"gho_", ""}, {"ghs_", ""}, {"github_pat_", "_"},
                                         {"glpat-", "-_"}, {"xoxb-", "-"}, {"xoxp-", "-"}, {"AKIA", ""}, {"AIza", "-_"}, {"eyJ", "-_."}}};
  constexpr size_t kLeast = 16;
  for (const auto& [begin, marks] : kForms)
    for (size_t at = word.find(begin); at != word.npos; at = word.find(begin, at + 1)) {
      if (at > 0 && is_letter_of_key(word[at - 1])) continue;
      size_t end = at + begin.size();
      while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) || marks.find(word[end]) != marks.npos)) ++end;
      if (end - at >= kLeast && std::any_of(word.begin() + static_cast<std::ptrdiff_t>(at), word.begin() + static_cast<std::ptrdiff_t>(end), is_digit))
        word.replace(at, end - at, kMask);
    }
}

// "https://name:password@host"
void mask_address(std::string& word) {
  const size_t scheme = word.find("://");
  if (scheme == word.npos) return;
  const size_t name = scheme + 3, end = word.find_first_of("/ ?#", name), at = word.rfind('@', end), colon = word.find(':', name);
  if (at == word.npos || colon == word.npos || colon > at || at < name) return;
  word.replace(colon + 1, at - colon - 1, kMask);
}

// "--api-key=VALUE" and "WANDB_API_KEY=VALUE"
bool mask_assigned(std::string& word) {
  const size_t equals = word.find('=');
  if (equals == word.npos || !is_secret(value_of(std::string_view(word).substr(0, equals)), std::string_view(word).substr(equals + 1))) return false;
  word.replace(equals + 1, word.npos, kMask);
  return true;
}

}  // namespace

std::vector<std::string> without_secrets(std::vector<std::string> command) {
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string option = i > 0 && command[i - 1].starts_with("-") && command[i - 1].find('=') == std::string::npos ? command[i - 1] : "";
    if (!command[i].starts_with("-") && is_secret(value_of(option), command[i]))
      command[i] = kMask;
    else if (!mask_assigned(command[i]))
      mask_address(command[i]), mask_known_keys(command[i]);
  }
  return command;
}

void refuse_masked(const std::vector<std::string>& command) {
  const auto masked = std::ranges::find_if(command, [](const std::string& word) { return word.find(kMask) != word.npos; });
  if (masked == command.end()) return;
  throw Failure("\"" + *masked + "\" stands for a key or password that was not kept with the run. Type its value, or record in a terminal.");
}

}  // namespace ws::prof
