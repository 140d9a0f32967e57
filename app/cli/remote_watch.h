// Shows what runs on another machine until it ends or the person leaves it: the same lines as here.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/progress_line.h"
#include "app/core/remote/job_folder.h"
#include "app/core/remote/remote_run.h"

namespace ws::cli {

// --on and what belongs to it, shared by several commands.
struct RemoteArguments {
  std::string on, at_interrupt = "ask";

  void add_to(CLI::App& command);
  void add_interrupt_to(CLI::App& command);
  app::RemoteAddress address() const;  // throws UsageError
};

// How a watched job ended.
struct RemoteOutcome {
  bool left = false;                   // it runs on there
  std::optional<Summary> summary;      // of a training
  prof::RunSummary account;
  prof::FollowStatus recording;
  std::vector<std::string> files;
  std::optional<int> exit_status;      // nothing: it was killed
};

struct WatchOptions {
  std::string at_interrupt = "ask";                         // ask, stop, leave
  std::FILE* log = stderr;                                  // for what the job prints
  std::function<void(const app::RemoteUpdate&)> each = {};  // with each piece of news
};
RemoteOutcome watch(app::RemoteRun& run, ProgressLine& line, const WatchOptions& options);

// Copies a file of a run there, saying how far it is.
void fetch(app::RemoteLink& link, const nlohmann::json& what, const std::string& path, ProgressLine& line);
std::string how_to_return(const app::RemoteRun& run, const app::RemoteLink& link);

// "ssh://host:a.wsrun": what `command` prints about it there. Returns its exit code.
int print_from_there(const std::string& source, const std::string& command, const std::vector<std::string>& options);

}  // namespace ws::cli
