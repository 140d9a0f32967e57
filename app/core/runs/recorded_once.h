// Runs a program to its end while it is recorded, and reads the recording. What it prints is shown to nobody.
#pragma once
#include <string>
#include <vector>

#include "profiling/recording/record_environment.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// Throws Failure if the program fails or nothing of it was recorded. `name`: what to call it then.
prof::RunData recorded_once(const std::vector<std::string>& command, const std::string& name, prof::RecordOptions options = {});

}  // namespace ws::app
