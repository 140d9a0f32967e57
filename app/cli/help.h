// How --help and complaints look: lines that fit a terminal, and what a value is instead of its type.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace ws::cli {

class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* app) const override;
};

// What is wrong with the command line, in one line that says where to look.
std::string complaint(const CLI::App& program, const CLI::ParseError& problem, int argc, char** argv);

std::optional<size_t> terminal_width();  // of the standard output; none where that is no terminal
// Text in lines of at most 100 columns, or as the terminal is narrower; further ones begin `indent` columns in.
std::string wrapped(const std::string& text, size_t first, size_t indent);
// On a terminal, lines are cut where it ends; names of kernels would spoil a table otherwise. Elsewhere nothing is.
void print_table(const std::string& text);
// What an importer left out is said, but is no failure.
void say_problems(const std::string& path, const std::vector<std::string>& problems);

}  // namespace ws::cli
