// The engine's interface to its CUDA part. Users of this header need no CUDA header.
#pragma once
#include <memory>

#include "engine/cuda/runtime/rank_link.h"
#include "engine/executor/device_info.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

// Throws Failure if the GPU was lost. With a link, the executor is one of several ranks and uses the link's GPU. Such
// an executor must be created, used and destroyed on one thread.
std::unique_ptr<Executor> make_cuda_executor(const std::string& device_name, std::unique_ptr<RankLink> link = nullptr);
bool gpu_lost();
DeviceInfo query_device();  // never throws; if cuda is false, why_not is one sentence

}  // namespace ws::cuda
