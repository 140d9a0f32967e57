// Trains the same network in PyTorch. Our script uses the same rows in the same order and the same initial weights. Its
// measurements become a run file like any other. No Qt here.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "engine/plan/run_spec.h"
#include "profiling/base/file_identity.h"

namespace ws::lab {
struct LabSpec;
struct LabResult;
}  // namespace ws::lab

namespace ws::app {

struct TorchTools {
  std::string python = "python3";  // a name or a path
  std::string script;              // empty: the script that comes with the program
  std::string recorder;            // warpsight; empty: do not record
  std::string version, problem;    // problem: why it cannot run here, in a sentence
  bool cuda = false;               // PyTorch sees a GPU
};
// Asks python3 for PyTorch. `program`: this program; warpsight and the collector are looked for beside it.
TorchTools find_torch(const std::string& python, const std::string& program);

struct TorchRequest {
  RunSpec spec;
  std::string out;    // the .wsrun to write
  std::string title;  // empty: "PyTorch " and the preset
  bool compile = false;
  bool record = true;  // use our recorder, if there is a GPU and the collector
};

// Blocks until the script has ended; `said` gets its lines. Cancelling ends the script and
// leaves no run file. Throws Failure.
void run_torch(const TorchRequest& request, const TorchTools& tools, const std::atomic<bool>& cancel,
               const std::function<void(const std::string&)>& said);

// Runs the laboratory's sweep in PyTorch, with the second script. Blocks. Cancelling keeps the points so far. Throws
// Failure, also for an operation that the script does not have.
lab::LabResult run_torch_lab(const lab::LabSpec& spec, const TorchTools& tools, const std::atomic<bool>& cancel,
                             const std::function<void(const std::string&)>& said);

// Writes the input of the script: choices, shapes, rows, initial weights, the order of rows in each epoch.
void write_torch_data(const RunSpec& spec, const std::string& folder);
// Merges the output of the script and the trace of `recorded` (may be empty) into one run file.
void merge_torch_run(const TorchRequest& request, const std::string& folder, const std::string& recorded, const std::optional<FoundFile>& found = {});

}  // namespace ws::app
