// The same network in PyTorch: our script trains it from the same rows in the same order and from the same first
// weights; what it measured becomes a run file like any other. No Qt in here.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "engine/plan/run_spec.h"

namespace ws::lab {
struct LabSpec;
struct LabResult;
}  // namespace ws::lab

namespace ws::app {

struct TorchTools {
  std::string python = "python3";  // a name or a path
  std::string script;              // empty: the shipped one
  std::string recorder;            // warpscope-cli; empty: train without recording
  std::string version, problem;    // problem: why it cannot be done here, in a sentence
  bool cuda = false;               // PyTorch sees a GPU
};
// Asks python3 for PyTorch. `program`: this one, beside which warpscope-cli and the collector are looked for.
TorchTools find_torch(const std::string& python, const std::string& program);

struct TorchRequest {
  RunSpec spec;
  std::string out;    // the .wsrun to write
  std::string title;  // empty: "PyTorch " and the preset
  bool compile = false;
  bool record = true;  // under our recorder, where there is a GPU and the collector
};

// Blocks until the script has ended; `said` gets its lines. A cancel ends the script and leaves no run file. Throws
// Failure.
void run_torch(const TorchRequest& request, const TorchTools& tools, const std::atomic<bool>& cancel,
               const std::function<void(const std::string&)>& said);

// The laboratory's sweep in PyTorch, by the script beside the other. Blocks; a cancel keeps the points that are there.
// Throws Failure, also for an operation that the script has not.
lab::LabResult run_torch_lab(const lab::LabSpec& spec, const TorchTools& tools, const std::atomic<bool>& cancel,
                             const std::function<void(const std::string&)>& said);

// What the script reads: choices, shapes, rows, first weights, the order of rows in each epoch.
void write_torch_data(const RunSpec& spec, const std::string& folder);
// What it wrote, with the trace of `recorded` (may be empty), as one run file.
void merge_torch_run(const TorchRequest& request, const std::string& folder, const std::string& recorded);

}  // namespace ws::app
