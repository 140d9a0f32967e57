// The door from the engine to its CUDA half; no CUDA header is needed to pass it.
#pragma once
#include <memory>

#include "engine/cuda/runtime/rank_link.h"
#include "engine/executor/device_info.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

// Throws Failure after a lost GPU. With a link it is one of several ranks, on the GPU that the link names; then it is made,
// used and destroyed on one thread.
std::unique_ptr<Executor> make_cuda_executor(const std::string& device_name, std::unique_ptr<RankLink> link = nullptr);
bool gpu_lost();
DeviceInfo query_device();  // never throws; cuda is false and why_not says it in one sentence

}  // namespace ws::cuda
