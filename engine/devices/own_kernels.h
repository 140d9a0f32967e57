// Kernels of a person on this machine's GPU. Both throw Failure in a build without CUDA.
#pragma once
#include <functional>

#include "datasets/dataset.h"
#include "engine/executor/own_kernel_verdict.h"
#include "engine/plan/model.h"

namespace ws {

// Compiles for a compute capability such as 90 and returns the bytes of machine code. Needs no GPU.
size_t compile_own_kernel(const Plan& plan, const std::string& op, const OwnKernelSource& source, int compute);
// `ready` is called when the data is there and the kernel is compiled, before the first launch.
// A wrong kernel can end this process, or never return: call it in a process that may end.
OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, const std::string& op,
                                  const OwnKernelSource& source, const std::function<void()>& ready);

}  // namespace ws
