// The one place that knows which devices there are.
#pragma once
#include <memory>

#include "engine/executor/device_info.h"
#include "engine/executor/executor.h"
#include "engine/passes/memory_need.h"

namespace ws {

const DeviceInfo& device_info();                               // asked once
bool gpu_lost();                                               // a fault took the GPU from this process for good
bool wants_cuda(const RunSpec& spec);                          // after resolving Device::Auto
int ranks_of(const RunSpec& spec);                             // throws Failure for more GPUs than there are
std::unique_ptr<Executor> make_executor(const RunSpec& spec);  // throws Failure with why_invalid's sentence
FreeMemory free_memory_for(const RunSpec& spec);               // of this machine, now

}  // namespace ws
