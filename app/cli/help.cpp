#include "app/cli/help.h"

#include <string_view>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::cli {
namespace {

constexpr size_t kWidth = 100, kColumn = 26;

bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }  // in UTF-8

size_t columns(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += begins_letter(c);
  return count;
}

std::string two_columns(std::string head, const std::string& text) {
  const size_t used = columns(head);
  head += used + 2 > kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - used, ' ');
  return head + wrapped(text, kColumn, kColumn) + "\n";
}

// The kind of value that an option takes, without the check that CLI11 appends to it.
std::string value_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string name_of(const CLI::Option& option, bool positional) {
  std::string name = option.get_name(positional, true);
  for (size_t at = 0; (at = name.find("{false}")) != name.npos;) name.erase(at, std::strlen("{false}"));
  for (size_t at = 0; (at = name.find(',', at)) != name.npos; ++at) name.insert(at + 1, " ");
  return name;
}

// "train" in "warpsight train --frob"; nullptr if no command was recognised.
const CLI::App* chosen_command(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? nullptr : chosen.front();
}

std::string command_names(const CLI::App& program) {
  std::string names;
  for (const CLI::App* command : program.get_subcommands(nullptr))
    if (!command->get_group().empty())  // the rest is started by this program only
      names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

// CLI11 says "--by: foo not in {op,module,line}" and "--limit: Value 0 not in range 0.100000 to 100000.000000", since version
// 2.4 "in range [0.1 - 100000]".
std::string plain_refusal(const std::string& text) {
  std::smatch found;
  static const std::regex member("(.*?): (.*) not in \\{(.*)\\}"), range("(.*?): Value (.*) not in range \\[?(.*?)(?: to | - )([^\\]]*)\\]?");
  const auto number = [](const std::string& digits) { return formatted("{}", std::strtod(digits.c_str(), nullptr)); };
  if (std::regex_match(text, found, member))
    return found.str(1) + ": choose " + one_of(split(found.str(3), ',')) + ", not " + found.str(2);
  if (std::regex_match(text, found, range))
    return found.str(1) + ": expected a number from " + number(found.str(3)) + " to " + number(found.str(4)) + ", not " + found.str(2);
  return text;
}

}  // namespace

std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

std::optional<size_t> terminal_width() {
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40;
  return known ? std::optional<size_t>(size.ws_col) : std::nullopt;
}

std::string wrapped(const std::string& text, size_t first, size_t indent) {
  const size_t width = std::min(kWidth, terminal_width().value_or(kWidth));
  std::string result;
  size_t column = first;
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, space - at);
    if (column + columns(word) > width && column > indent) {
      if (!result.empty() && result.back() == ' ') result.pop_back();
      result += "\n" + std::string(indent, ' ');
      column = indent;
    }
    result += word;
    column += columns(word) + 1;
    if (space < text.size()) result += text[space];
    if (space < text.size() && text[space] == '\n') result += std::string(indent, ' '), column = indent;
    at = space + 1;
  }
  return result;
}

std::string Help::make_usage(const CLI::App* app, std::string name) const {
  std::string line = "Usage: ";
  if (app->get_parent())
    line += app->get_parent()->get_name() + " " + app->get_name();
  else
    line += name.empty() ? app->get_name() : name;
  line += " [OPTIONS]";
  if (!app->get_subcommands(nullptr).empty()) line += " COMMAND";
  for (const CLI::Option* option : app->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string one = option->get_name(true);
    if (one == "PROGRAM") return line + " -- PROGRAM ARGUMENTS...\n";
    line += option->get_required() ? " " + one : " [" + one + "]";
    if (option->get_expected_max() > 1) line += "...";
  }
  return line + "\n";
}

std::string Help::make_option(const CLI::Option* option, bool positional) const {
  std::string head = "  " + name_of(*option, positional);
  if (const std::string value = value_of(*option); !positional && !value.empty()) head += " " + value;
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
  return two_columns(std::move(head), text);
}

std::string Help::make_subcommand(const CLI::App* command) const {
  return two_columns("  " + command->get_name(), command->get_description());
}

std::string Help::make_footer(const CLI::App* app) const {
  return app->get_footer().empty() ? "" : app->get_footer() + "\n";
}

std::string complaint(const CLI::App& program, const CLI::ParseError& problem, int argc, char** argv) {
  const CLI::App* command = chosen_command(program);
  std::string text = plain_refusal(problem.what());
  if (!command && argc > 1 && argv[1][0] == '-')
    return std::string(argv[1]) + " was not expected; see: " + program.get_name() + " --help";
  if (!command && argc > 1 && std::strpbrk(argv[1], "./")) return "there is no file " + std::string(argv[1]);
  if (!command && argc > 1)
    return "there is no command " + std::string(argv[1]) + "; there are " + command_names(program);
  if (text.find("The following argument") != text.npos) {
    text.clear();
    for (const std::string& word : program.remaining(true)) text += (text.empty() ? "" : " ") + word;
    text += " was not expected";
  }
  return text + "; see: " + program.get_name() + (command ? " " + command->get_name() : "") + " --help";
}

void print_table(const std::string& text) {
  const std::optional<size_t> width = terminal_width();
  std::string shown;
  size_t column = 0;
  for (const char c : printable(text)) {
    if (c == '\n')
      column = 0;
    else if (begins_letter(c))
      ++column;
    if (width && column > *width) continue;
    if (width && column == *width) {
      if (begins_letter(c)) shown += "…";
      continue;
    }
    shown += c;
  }
  std::fputs((wants_colours() ? with_colours(shown) : shown).c_str(), stdout);
}

bool wants_colours() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  };
  if (set("NO_COLOR")) return false;
  return set("CLICOLOR_FORCE") || (isatty(STDOUT_FILENO) != 0 && terminal_width());
}

// A line that ends with a verdict, and the answer that says less or more time.
std::string with_colours(const std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kEnds[] = {
      {" better", "\033[32m"}, {" worse", "\033[33m"}, {" within noise", "\033[2m"}, {" equal", "\033[2m"}};
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    const auto verdict = std::ranges::find_if(kEnds, [line](const auto& each) { return line.ends_with(each.first); });
    if (verdict == std::end(kEnds)) {
      out += line;
    } else {
      out += line.substr(0, line.size() - verdict->first.size());
      out.append(verdict->second).append(verdict->first).append("\033[0m");
    }
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

void say_written(const std::string& what, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  const double bytes = static_cast<double>(std::filesystem::file_size(path, error));
  std::printf("%s: %s (%s)\n", what.c_str(), printable(std::filesystem::absolute(path, error).string()).c_str(), bytes_text(bytes).c_str());
}

nlohmann::json versioned(nlohmann::json object) {
  object["version"] = kJsonVersion;
  return object;
}

void say_problems(const std::string& path, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) std::fprintf(stderr, "%s\n", printable(path + ": " + problem).c_str());
}

}  // namespace ws::cli
