#include "app/core/remote/remote_address.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "profiling/base/failure.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

constexpr const char* kProgram = "warpsight";
constexpr std::string_view kSsh = "ssh://", kPipe = "pipe:", kRun = ".wsrun";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Failure(text + ": " + why + "; expected ssh://user@host, ssh://host:port/folder or ssh://host:run.wsrun");
}

bool all_digits(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

// Checks a word for ssh's command line. It must not look like an option, nor contain characters that
// are special to a shell or ssh.
void check_word(const std::string& text, const std::string& word, const char* what) {
  if (word.starts_with('-')) refuse(text, std::string("the ") + what + " begins with a hyphen");
  for (const unsigned char c : word)
    if (c <= ' ' || c == 0x7f || std::string_view("'\"`$\\;|&<>()*?!").find(static_cast<char>(c)) != std::string_view::npos)
      refuse(text, std::string("the ") + what + " holds a letter that no " + what + " has");
}

// "host", "host:22", "host:a.wsrun", "[::1]:22"
void take_host(const std::string& text, std::string rest, RemoteAddress& to) {
  if (const size_t at = rest.rfind('@'); at != rest.npos) to.user = rest.substr(0, at), rest.erase(0, at + 1);
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : rest.npos;
  const size_t colon = rest.find(':', bracket == rest.npos ? 0 : bracket);
  if (colon != rest.npos) {
    const std::string behind = rest.substr(colon + 1);
    if (all_digits(behind) && behind.size() <= 5)
      to.port = std::atoi(behind.c_str());
    else if (behind.ends_with(kRun))
      to.run = behind;
    else
      refuse(text, "a port or a run must follow the colon");
    if (to.run.empty() && (to.port < 1 || to.port > 65535)) refuse(text, "there is no port " + behind);
    rest.erase(colon);
  }
  to.host = bracket == rest.npos ? rest : rest.substr(1, bracket - 1);
  if (to.host.empty()) refuse(text, "has no host");
  check_word(text, to.host, "host");
  check_word(text, to.user, "user");
}

void take_folder(std::string path, RemoteAddress& to) {
  const size_t slash = path.rfind('/');
  if (to.run.empty() && path.ends_with(kRun)) to.run = path.substr(slash + 1), path.erase(slash);
  if (path.starts_with("/~")) path.erase(0, 1);  // ssh://host/~/runs
  if (path != "/") to.folder = path;
}

}  // namespace

std::string copy_folder() { return std::string(".local/share/warpsight/server/") + version(); }

bool is_remote(const std::string& text) { return text.starts_with(kSsh) || text.starts_with(kPipe); }

RemoteAddress parse_remote(const std::string& text) {
  RemoteAddress address;
  if (const char* program = std::getenv("WARPSIGHT_REMOTE_PROGRAM"); program && *program) address.program = program;
  if (text.starts_with(kPipe)) {
    address.pipe = text.substr(kPipe.size());
    if (address.pipe.empty()) refuse(text, "has no command");
    return address;
  }
  if (!text.starts_with(kSsh)) refuse(text, "is not an address");
  const std::string rest = text.substr(kSsh.size());
  const size_t slash = rest.find('/');
  take_host(text, rest.substr(0, slash), address);
  if (slash != rest.npos) take_folder(rest.substr(slash), address);
  return address;
}

std::vector<std::string> RemoteAddress::command() const {
  if (!pipe.empty()) return {"sh", "-c", pipe};
  std::string there = program + " serve";
  // A copied program has our version.
  if (program == kProgram) there = "PATH=\"$HOME\"/" + copy_folder() + "/bin:\"$PATH\" " + there;
  // Only the shell there knows its home directory.
  if (folder.starts_with("~/")) there += " --folder \"$HOME\"/" + shell_quoted(folder.substr(2));
  else if (!folder.empty()) there += " --folder " + shell_quoted(folder);
  return ssh(there);
}

std::vector<std::string> RemoteAddress::ssh(const std::string& command) const {
  std::vector<std::string> words{"ssh", "-T"};
  if (port != 0) words.insert(words.end(), {"-p", std::to_string(port)});
  words.insert(words.end(), {"--", place(), command});
  return words;
}

std::string RemoteAddress::place() const {
  constexpr size_t kMostLetters = 24;
  if (!pipe.empty()) return pipe.size() <= kMostLetters ? pipe : pipe.substr(0, kMostLetters) + "…";
  return (user.empty() ? "" : user + "@") + host;
}

std::string RemoteAddress::text() const {
  if (!pipe.empty()) return std::string(kPipe) + pipe;
  const std::string name = host.find(':') == host.npos ? host : "[" + host + "]";
  const std::string at = folder.starts_with('~') ? "/" + folder : folder;
  return std::string(kSsh) + (user.empty() ? "" : user + "@") + name + (port ? ":" + std::to_string(port) : "") + at;
}

}  // namespace ws::app
