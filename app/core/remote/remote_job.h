// A job on the machine with the GPU: a training, a recording, an experiment, a sweep or PyTorch. It runs in its own
// process, so that it continues if the line is cut or the user leaves.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/core/remote/job_folder.h"

namespace ws::app {

// Starts the job that `what` describes, see job_request.h, and waits until it runs. An existing job of that name is
// left as it is, so that asking twice starts only one. Throws Failure. An experiment sends {"row": line of
// results.jsonl} for each training. A sweep sends {"lab": result with one point} and {"done": …, "of": …, "what": …},
// and at the end {"whole": result}.
void start_job(const JobFolder& job, const nlohmann::json& what);

// Makes a job of a process that records itself, see serving_environment(), and returns what it needs for that: its run
// file, the address of the follower, its name and its command, a line each. "" if it has ended. Throws Failure.
std::string follow_process(const std::string& runs, int64_t process);

// Runs the job itself, in its own process, and returns the exit code. `interrupted`: True if a signal asked it to end.
int run_job(const JobFolder& job, const std::function<bool()>& interrupted);

}  // namespace ws::app
