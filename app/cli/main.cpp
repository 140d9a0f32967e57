// warpsight: trains, records, compares and converts runs without a window, or opens it.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/lab/first_call.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"
#include "profiling/recording/record_environment.h"

namespace {

using namespace ws::cli;

// True if the words name no command: there are none, or the first one is a file, a folder or a machine.
bool asks_for_window(int argc, char** argv) {
  if (argc < 2) return true;
  const std::string_view word = argv[1];
  if (word.starts_with("ssh://") || word.starts_with("pipe:")) return true;
  std::error_code error;
  return word.find_first_of("./") != word.npos && std::filesystem::exists(word, error);
}

// Becomes the window's program, which is installed beside this one. Throws Failure if it is not.
[[noreturn]] void open_window(char** argv) {
  const std::string window = (ws::program_file().parent_path() / "warpsight-window").string();
  if (access(window.c_str(), X_OK) != 0)
    throw ws::Failure("The window is not installed here (" + window + "). Build it with app/run, or install the package with the window. "
                  "The commands without a window: warpsight --help.");
  argv[0] = const_cast<char*>(window.c_str());
  execv(window.c_str(), argv);
  throw ws::Failure(window + " cannot be started: " + std::strerror(errno) + ".");
}

int run_chosen(const CLI::App& program, const std::map<const CLI::App*, Run>& commands) {
  for (const CLI::App* chosen : program.get_subcommands())
    if (const auto found = commands.find(chosen); found != commands.end()) return found->second();
  return kUsage;
}

int complain(const std::string& message, int code) {
  std::fprintf(stderr, "warpsight: %s\n", ws::printable(message).c_str());
  return code;
}

// True if the reader of our pipe has closed it, as in "warpsight list | head".
bool reader_left() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

// Output that could not be printed is a failure, even if the rest succeeded.
int printed(int code) {
  const bool good = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (good || code != kDone) return code;
  if (reader_left()) return kFailed;
  // The failed call may be long ago. Another write fails with the same error.
  const char* reason = write(STDOUT_FILENO, "\n", 1) < 0 ? std::strerror(errno) : "some of it is missing";
  return complain(std::string("The output could not be written: ") + reason + ".", kFailed);
}

// A handled signal makes the call that caused it fail. Unlike an ignored signal, it is not
// inherited by programs that we start.
void do_nothing(int) {}

int run(const Run& chosen) {
  try {
    return chosen();
  } catch (const UsageError& problem) {
    return complain(problem.what(), kUsage);
  } catch (const std::bad_alloc&) {
    return complain("There is not enough memory for this.", kFailed);
  } catch (const std::system_error& problem) {
    const bool threads = problem.code() == std::errc::resource_unavailable_try_again;
    return complain(threads ? "No further thread could be started. End other programs, or raise ulimit -u." : problem.what(), kFailed);
  } catch (const std::exception& problem) {
    return complain(problem.what(), kFailed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ws::prof::leave_serving_environment();
  if (ws::app::run_first_call_if_asked()) return kDone;
  std::signal(SIGPIPE, do_nothing);  // a reader that leaves must not end a training run
  std::signal(SIGXFSZ, do_nothing);  // ulimit -f: treat a file that may not grow as a failed write
  if (asks_for_window(argc, argv)) return run([argv]() -> int { open_window(argv); });
  CLI::App program("Train small networks and see what each choice costs.", "warpsight");
  program.formatter(std::make_shared<Help>());
  program.set_help_flag("-h,--help", "show this and stop");
  program.set_version_flag("--version", ws::version(), "show the version and stop");
  program.require_subcommand(1);
  std::map<const CLI::App*, Run> commands;
  const auto add = [&](Run (*adder)(CLI::App&)) {
    Run run = adder(program);
    commands[program.get_subcommands({}).back()] = std::move(run);
  };
  for (auto* adder : {add_train, add_plan, add_list, add_experiment, add_kernel, add_exercise, add_lab, add_report, add_convert,
                      add_diff, add_stats, add_sql, add_what_if, add_check, add_gate, add_prove, add_record, add_torch, add_attach, add_install, add_serve, add_follow, add_job})
    add(adder);
  program.footer("\nWithout a command, or with run files or a machine, the window opens:\n  warpsight a.wsrun\n  warpsight ssh://me@gpu7");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return printed(program.exit(problem));  // --help, --version
    return complain(complaint(program, problem, argc, argv), kUsage);
  }
  return printed(run([&] { return run_chosen(program, commands); }));
}
