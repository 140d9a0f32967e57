#include "app/core/runs/recorded_once.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/core/runs/traced_training.h"
#include "profiling/base/failure.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/record_program.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

std::string last_line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last.substr(0, 200);
}

}  // namespace

prof::RunData recorded_once(const std::vector<std::string>& command, const std::string& name, prof::RecordOptions options) {
  const TemporaryFolder folder;
  options.output = (folder.path() / "output").string(), options.keep_command = false;
  prof::RecordedProgram program(command, (folder.path() / "run.wsrun").string(), options);
  std::optional<int> status;
  while (!(status = program.wait(100)))
    while (!program.take().empty()) {
    }
  if (*status != 0) {
    const std::string line = last_line_of(options.output);
    throw Failure(name + " ended with status " + std::to_string(*status) + (line.empty() ? "." : ": " + line));
  }
  if (!program.recorded()) throw Failure("Nothing was recorded of " + name + ": it " + prof::kNothingToRecord + ".");
  return prof::import_ranks(program.paths());
}

prof::RunData recorded_training(RunSpec spec, const data::Dataset& data, double seconds, bool whole_graphs) {
  const TemporaryFolder folder;
  spec.train.time_limit_s = seconds, spec.train.eval_every = 0, spec.train.target_accuracy = 0;
  spec.train.epochs = std::max<int64_t>(spec.train.epochs, 100'000);
  RecorderOptions options;
  options.path = (folder.path() / "run.wsrun").string();
  options.keep_traces = false;
  options.trace.level = prof::TraceLevel::Full;
  options.trace.whole_graphs = whole_graphs;
  const Summary summary = TracedTraining(spec, options).run(data);
  if (summary.status == RunStatus::Failed) throw Failure("The training failed: " + summary.message);
  return prof::import_ranks({options.path});
}

}  // namespace ws::app
