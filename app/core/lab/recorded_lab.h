// Runs a laboratory sweep and records its timeline in a run file, so that each point can be opened as a trace. The
// command line and the window share it. No Qt here.
#pragma once
#include <atomic>
#include <optional>
#include <string>

#include "engine/lab/lab.h"

namespace ws::app {

// Blocks until the sweep is over. Throws Failure if the run file cannot be created. If a later write fails, only the
// recording ends, and the message of the result says so.
lab::LabResult run_recorded_lab(const lab::LabSpec& spec, const std::string& path, const std::atomic<bool>& cancel,
                                lab::LabSink& sink);

// Returns the laboratory result in a run file, or nullopt for another kind of run. Throws Failure if it is no run file.
std::optional<lab::LabResult> read_lab(const std::string& path);

}  // namespace ws::app
