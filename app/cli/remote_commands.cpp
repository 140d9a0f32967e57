// The two ends of a connection between machines: serve answers requests, attach reconnects to a running job.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/remote_watch.h"
#include "app/core/remote/remote_job.h"
#include "app/core/remote/serve.h"
#include "app/core/remote/server_copy.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"

namespace ws::cli {
namespace {

struct AttachArguments {
  RemoteArguments remote;
  std::string job, run_file, folder;
};

const std::map<std::string, int (*)(const AttachedJob&)> kAttach{{"train", attach_training},
                                                                 {"record", attach_recording},
                                                                 {"experiment", attach_experiment},
                                                                 {"lab", attach_lab},
                                                                 {"torch", attach_torch}};

int attach(AttachArguments a) {
  if (a.job.empty())
    throw UsageError("attach: name the job with --job; warpsight list --on " + shell_word(a.remote.on) + " shows the jobs there");
  app::RemoteLink link(a.remote.address(a.run_file));
  const nlohmann::json request = link.ask({{"do", "job"}, {"run", a.job}});  // fails if there is no such job
  const std::string kind = JsonInput(request, "").at("kind").text();
  const auto show = kAttach.find(kind);
  if (show == kAttach.end())
    throw Failure("This version cannot show a job of kind \"" + kind + "\". Install the same version on both "
                                                                       "machines.");
  if (!a.folder.empty() && kind != "experiment")
    throw UsageError("--out: only an experiment has a folder of results; use --run");
  app::RemoteRun run(link, a.job, false);
  return show->second({run, request, a.run_file, a.folder, a.remote});
}

struct InstallArguments {
  RemoteArguments remote;
  bool yes = false;
};

int install(InstallArguments a) {
  const app::ServerCopy copy(a.remote.address(), program_file().string());
  if (!a.yes) {
    if (isatty(STDIN_FILENO) == 0) throw UsageError("no terminal to ask on: add --yes");
    std::fprintf(stderr, "%s (y/n) ", printable(copy.question()).c_str());
    std::string answer;
    if (!std::getline(std::cin, answer) || answer != "y") {
      std::fputs("Nothing was copied.\n", stderr);
      return kFailed;
    }
  } else if (!copy.note().empty()) {
    std::fprintf(stderr, "%s\n", copy.note().c_str());
  }
  copy.copy();
  std::printf("installed; try: warpsight list --on %s\n", printable(a.remote.address().text()).c_str());
  return kDone;
}

}  // namespace

Run add_attach(CLI::App& program) {
  auto arguments = std::make_shared<AttachArguments>();
  CLI::App& command = *program.add_subcommand("attach", "follow a job that runs on another machine");
  command.add_option("MACHINE", arguments->remote.on, "ssh://user@host[:port][/folder], or pipe:COMMAND")->required();
  command.add_option("--job", arguments->job, "name of the job, as printed by train --on and list --on")
      ->type_name("NAME");
  command.add_option("--run", arguments->run_file, "copy the run file here when the job has ended")->type_name("FILE");
  command.add_option("--out", arguments->folder, "copy the results of an experiment here when it has ended")
      ->type_name("FOLDER");
  arguments->remote.add_interrupt_to(command);
  command.footer("Example:\n  warpsight attach ssh://gpu7 --job 20261123-031833-mnist-1a2b3c");
  return [arguments] { return attach(*arguments); };
}

Run add_install(CLI::App& program) {
  auto arguments = std::make_shared<InstallArguments>();
  CLI::App& command = *program.add_subcommand("install", "copy this program into your home folder on another machine");
  command.add_option("--on", arguments->remote.on, "ssh://user@host[:port]")->type_name("MACHINE")->required();
  command.add_flag("--yes", arguments->yes, "do not ask before copying");
  command.footer(
      "Copies the program, missing libraries and the data sets, and checks each file by its hash. The other machine "
      "needs the same system and processor.\nExample:\n  warpsight install --on ssh://gpu7");
  return [arguments] { return install(*arguments); };
}

Run add_serve(CLI::App& program) {
  auto folder = std::make_shared<std::string>(runs_folder());
  CLI::App& command =
      *program.add_subcommand("serve", "serve --on from another machine, over standard input and output");
  command.add_option("--folder", *folder, "folder of the runs on this machine")
      ->type_name("FOLDER")
      ->capture_default_str();
  command.footer("ssh starts this command. It opens no port.");
  return [folder] {
    app::serve(STDIN_FILENO, STDOUT_FILENO, *folder);
    return kDone;
  };
}

Run add_follow(CLI::App& program) {
  auto process = std::make_shared<int64_t>(0);
  CLI::App& command = *program.add_subcommand("follow", "make a job of a process that records itself");
  command.group("");
  command.add_option("PROCESS", *process)->required();
  return [process] {
    std::printf("%s", app::follow_process(runs_folder(), *process).c_str());
    return kDone;
  };
}

Run add_job(CLI::App& program) {
  auto folder = std::make_shared<std::string>();
  CLI::App& command = *program.add_subcommand("job", "run a job that serve starts");
  command.group("");
  command.add_option("FOLDER", *folder)->required();
  return [folder] {
    catch_interrupts();
    return app::run_job(app::JobFolder::of(*folder), interrupted);
  };
}

}  // namespace ws::cli
