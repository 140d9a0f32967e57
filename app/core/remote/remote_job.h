// What runs on the machine of the GPU while the person may be away: a training, a recording or an experiment, in a
// process of its own that no cut line ends.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/core/remote/job_folder.h"

namespace ws::app {

// Begins the job that `what` describes and waits until it runs. A job of that name that is there already is left as it is,
// so that asking twice begins one. Throws Failure.
//   {"kind": "train", "spec": …, "trace": "full", "counters": …, "window": …, "every": …, "title": …, "paused": …}
//   {"kind": "record", "command": […], "trace": "full", "counters": …, "python": "ops", "window": "200ms/5s"}
//   {"kind": "experiment", "experiment": …}
void start_job(const JobFolder& job, const nlohmann::json& what);

// The job itself, in its own process; returns the exit code. `interrupted`: asked to end by a signal.
int run_job(const JobFolder& job, const std::function<bool()>& interrupted);

}  // namespace ws::app
