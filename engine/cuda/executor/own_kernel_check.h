// Compiles and checks a kernel that a person wrote for one op of a plan, beside the built-in kernels: results, memory, repeats, time.
// A wrong kernel can end this process or never return, so run it in a process that may end.
#pragma once
#include <functional>

#include "datasets/dataset.h"
#include "engine/executor/own_kernel_verdict.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/plan/model.h"

namespace ws::cuda {

// Compiles for a compute capability such as 90. Needs no GPU. Throws Failure with the compiler's message, whose lines are
// lines of the person's file.
std::vector<char> compile_own(const own::KernelContract& contract, const OwnKernelSource& source, int compute);

// `ready` is called before the first launch. Throws Failure if the kernel does not compile or cannot be launched.
OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, const std::string& op,
                                  const OwnKernelSource& source, const std::function<void()>& ready);

}  // namespace ws::cuda
