// Runs a program, or a training, to its end while it is recorded, and reads the recording. What it prints is shown to nobody.
#pragma once
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/plan/run_spec.h"
#include "profiling/collectors/collector.h"
#include "profiling/recording/record_environment.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// Throws Failure if the program fails or nothing of it was recorded. `name`: what to call it then.
prof::RunData recorded_once(const std::vector<std::string>& command, const std::string& name, prof::RecordOptions options = {});

// A training that ends after so many seconds. Throws Failure if it fails.
prof::RunData recorded_training(RunSpec spec, const data::Dataset& data, double seconds, bool whole_graphs = false);

}  // namespace ws::app
