// Describes the machine of a run, for the run file.
#pragma once
#include <nlohmann/json.hpp>

namespace ws::app {

nlohmann::json machine_json();  // {cpu, cpu_threads, gpu, driver, runtime, compute, system, warpsight}

}  // namespace ws::app
