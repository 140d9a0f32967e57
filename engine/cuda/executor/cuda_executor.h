// The door from the engine to its CUDA half; no CUDA header is needed to pass it.
#pragma once
#include <memory>

#include "engine/executor/device_info.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

std::unique_ptr<Executor> make_cuda_executor(const std::string& device_name);  // throws Failure after a lost GPU
bool gpu_lost();
DeviceInfo query_device();  // never throws; cuda is false and why_not says it in one sentence

}  // namespace ws::cuda
