// Format of --help and of error messages: lines fit the terminal, and an option shows its kind of value, not its type.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ws::cli {

class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* app) const override;
};

// Returns the error in the command line as one line, with where to look.
std::string complaint(const CLI::App& program, const CLI::ParseError& problem, int argc, char** argv);

std::string one_of(const std::vector<std::string>& names);  // "op, module or line"
std::optional<size_t> terminal_width();  // width of standard output; nullopt if it is no terminal
// Wraps text to at most 100 columns, or to a narrower terminal. Lines after the first are indented by `indent` columns.
std::string wrapped(const std::string& text, size_t first, size_t indent);
// Cuts lines at the end of a terminal, because long kernel names would spoil a table. Other output is not cut.
void print_table(const std::string& text);
// Verdicts in colour: better green, worse orange. Only on a terminal, and not with NO_COLOR; CLICOLOR_FORCE asks for it elsewhere.
bool wants_colours();
std::string with_colours(const std::string& text);
// "report of 2 runs: /home/me/report.html (1.2 MB)". Prints nothing for a device.
void say_written(const std::string& what, const std::string& path);
// Prints what an importer left out. This is not a failure.
void say_problems(const std::string& path, const std::vector<std::string>& problems);

}  // namespace ws::cli
