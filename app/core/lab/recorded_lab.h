// A sweep of the laboratory with its timeline in a run file, so that every point can be opened as the trace it came
// from. No Qt in here: the command line and the window share it.
#pragma once
#include <atomic>
#include <optional>
#include <string>

#include "engine/lab/lab.h"

namespace ws::app {

// Blocks until the sweep is over. A run file that cannot be begun throws Failure; one that cannot be written any
// further ends the recording, not the sweep, and the result's message says so.
lab::LabResult run_recorded_lab(const lab::LabSpec& spec, const std::string& path, const std::atomic<bool>& cancel,
                                lab::LabSink& sink);

// What a run file holds of the laboratory; nothing when it is another kind of run. Throws Failure when it is no run
// file.
std::optional<lab::LabResult> read_lab(const std::string& path);

}  // namespace ws::app
