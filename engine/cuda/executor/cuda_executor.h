// The door from the engine to its CUDA half; no CUDA header is needed to pass it.
#pragma once
#include <memory>

#include "engine/executor/executor.h"

namespace ws::cuda {

std::unique_ptr<Executor> make_cuda_executor(const RunSpec& spec);  // throws Failure when no GPU can be used
bool gpu_lost();
DeviceInfo query_device();  // never throws; cuda is false and why_not says it in one sentence

}  // namespace ws::cuda
