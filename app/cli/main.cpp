// warpscope-cli: trains, compares and converts runs without a window.
#include <csignal>
#include <cstdio>
#include <map>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/lab/first_call.h"
#include "profiling/base/version.h"

namespace {

using namespace ws::cli;

int run_chosen(const CLI::App& program, const std::map<const CLI::App*, Run>& commands) {
  for (const CLI::App* chosen : program.get_subcommands())
    if (const auto found = commands.find(chosen); found != commands.end()) return found->second();
  return kUsage;
}

int complain(const std::string& message, int code) {
  std::fprintf(stderr, "warpscope-cli: %s\n", message.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (ws::app::run_first_call_if_asked()) return kDone;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves must not end a training run
  CLI::App program("Train small networks and see what each choice costs.", "warpscope-cli");
  program.formatter(std::make_shared<Help>());
  program.set_help_flag("-h,--help", "show this and stop");
  program.set_version_flag("--version", ws::version(), "show the version and stop");
  program.require_subcommand(1);
  std::map<const CLI::App*, Run> commands;
  const auto add = [&](Run (*adder)(CLI::App&)) {
    Run run = adder(program);
    commands[program.get_subcommands({}).back()] = std::move(run);
  };
  for (auto* adder : {add_train, add_plan, add_list, add_bench, add_experiment, add_lab, add_report, add_convert,
                      add_diff, add_stats, add_record, add_torch})
    add(adder);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return program.exit(problem);  // --help, --version
    if (argc == 1) return std::fputs(program.help().c_str(), stderr), kUsage;
    return complain(complaint(program, problem, argc, argv), kUsage);
  }
  try {
    return run_chosen(program, commands);
  } catch (const UsageError& problem) {
    return complain(problem.what(), kUsage);
  } catch (const std::bad_alloc&) {
    return complain("There is not enough memory for this.", kFailed);
  } catch (const std::exception& problem) {
    return complain(problem.what(), kFailed);
  }
}
