// The reference interpreter: runs every plan with plain loops, in the order of its ops.
#pragma once
#include <memory>
#include <string>

#include "engine/executor/executor.h"

namespace ws {

// `name` is what device_name() answers.
std::unique_ptr<Executor> make_cpu_executor(std::string name = "CPU");
std::unique_ptr<Executor> make_oracle();  // the same in float64

}  // namespace ws
