// Runs a laboratory sweep, and may record its timeline in a run file, so that each point can be opened as a trace. The
// command line and the window share it. No Qt here.
#pragma once
#include <atomic>
#include <optional>
#include <string>

#include "engine/lab/lab.h"
#include "profiling/trace/trace.h"

namespace ws::app {

// Blocks until the sweep is over; `path`: the run file to record, or empty. A person's kernels are checked first, in a process of
// their own. Continues what left_sweep() finds. Throws Failure if the run file cannot be created. If a later write fails, only
// the recording ends, and the message of the result says so.
lab::LabResult run_sweep(const lab::LabSpec& spec, const std::string& path, const std::atomic<bool>& cancel, lab::LabSink& sink);

// What a killed sweep with these choices left in a run file: its points and their timeline.
struct LeftSweep {
  std::vector<lab::LabPoint> points;
  prof::Trace trace;
};
std::optional<LeftSweep> left_sweep(const lab::LabSpec& spec, const std::string& path);

// Returns the laboratory result in a run file, or nullopt for another kind of run. Throws Failure if it is no run file.
std::optional<lab::LabResult> read_lab(const std::string& path);

}  // namespace ws::app
