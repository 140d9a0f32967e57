// Kernels of a person on this machine's GPU. All throw Failure in a build without CUDA.
#pragma once
#include "datasets/dataset.h"
#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_versions.h"
#include "engine/own_kernels/own_kernel_verdict.h"
#include "engine/plan/model.h"

namespace ws {

// Compiles for a compute capability such as 90. Needs no GPU.
own::KernelBuild build_own_kernel(const own::KernelContract& contract, const OwnKernelSource& source, int compute);
own::KernelBuild build_own_kernel(const Plan& plan, const std::string& op, const OwnKernelSource& source, int compute);
// A first version that works, in the language of the file: "my.cu", "my.ptx", "my.py". Throws Failure for an op that has none.
std::string first_kernel(const own::KernelContract& contract, own::KernelLanguage language);
// Compares the kernel with the op on the CPU, and times it beside the built-in kernels. Throws OwnKernelRefused if it cannot
// be launched.
// A wrong kernel can end this process, or never return: call it in a process that may end.
OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, const std::string& op,
                                  const OwnKernelSource& source, const OnLaunch& on_launch);
// What the op gives for these operands, computed on the CPU: by operand of the contract.
std::vector<std::vector<float>> expected_results(const Plan& plan, size_t op, const std::vector<std::vector<char>>& inputs);

}  // namespace ws
