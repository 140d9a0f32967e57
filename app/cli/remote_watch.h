// Shows a job on another machine until it ends or the user leaves it. Prints the same lines as a local run.
#pragma once
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/progress_line.h"
#include "app/core/remote/job_folder.h"
#include "app/core/remote/remote_run.h"
#include "profiling/base/file_identity.h"

namespace ws::cli {

// --on and its options, which several commands share.
struct RemoteArguments {
  std::string on, at_interrupt = "ask";
  std::optional<FoundFile> found;  // what the copy may replace, once address() has looked

  void add_to(CLI::App& command);
  void add_interrupt_to(CLI::App& command);
  // `copy`: the file here that the result is copied to, or empty. It fails now, not after hours of work there.
  app::RemoteAddress address(const std::string& copy = {});  // throws UsageError, and Failure for the copy
};

// How a watched job ended.
struct RemoteOutcome {
  bool left = false;                   // True if it still runs there
  std::optional<Summary> summary;      // only for a training
  prof::RunSummary account;
  prof::FollowStatus recording;
  std::vector<std::string> files;
  std::optional<int> exit_status;      // nullopt if it was killed
};

struct WatchOptions {
  std::string at_interrupt = "ask";                         // ask, stop, leave
  std::FILE* log = stderr;                                  // for what the job prints
  std::function<void(const app::RemoteUpdate&)> each = {};  // called with each update
};
// Prints how to return to a job that it leaves.
RemoteOutcome watch(app::RemoteRun& run, ProgressLine& line, const WatchOptions& options);

// A job on another machine. attach shows it as the command that starts such jobs does, and returns the same exit code.
struct AttachedJob {
  app::RemoteRun& run;
  const nlohmann::json& request;  // what started it
  std::string run_file, folder;   // copies for this machine; empty: none
  RemoteArguments remote;
};
int attach_training(const AttachedJob& job);
int attach_recording(const AttachedJob& job);
int attach_experiment(const AttachedJob& job);
int attach_lab(const AttachedJob& job);
int attach_torch(const AttachedJob& job);

// Copies a file of a remote run to this machine and shows the progress. `found`: see RemoteArguments; without it any file is
// replaced. Throws Failure that says how to try again.
void fetch(app::RemoteRun& run, const nlohmann::json& what, const std::string& path, ProgressLine& line, const std::optional<FoundFile>& found = {});

// Prints what `command` prints on the other machine about a run such as "ssh://host:a.wsrun". Returns its exit code.
int print_from_there(const std::string& source, const std::string& command, const std::vector<std::string>& options);

}  // namespace ws::cli
