#include "app/core/runs/recorded_once.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/record_program.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
  TemporaryFolder() {
    static std::atomic<int> made{0};
    path = temporary_folder() / ("recorded-" + std::to_string(getpid()) + "-" + std::to_string(made++));
    fs::create_directories(path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path path;
};

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
  options.output = (folder.path / "output").string(), options.keep_command = false;
  prof::RecordedProgram program(command, (folder.path / "run.wsrun").string(), options);
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

}  // namespace ws::app
