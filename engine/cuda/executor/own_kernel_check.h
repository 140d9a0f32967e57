// Compiles and checks a kernel that a person wrote for one op of a plan. Needs no CUDA header.
#pragma once
#include "datasets/dataset.h"
#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_check.h"
#include "engine/plan/model.h"

namespace ws::cuda {

// Compiles CUDA source, PTX or Triton, by the ending of the file, for a compute capability such as 90. Needs no GPU. Its messages name lines of the person's file.
own::KernelBuild build_own(const own::KernelContract& contract, const OwnKernelSource& source, int compute);

// The first version of the op as PTX, from its first version in CUDA. Needs no GPU.
std::string first_ptx(const own::KernelContract& contract);

// What the kernel is compared with, from the values of its operands.
struct ExpectedResults {
  own::ExpectedOf of;
  double rate = 0;  // the learning rate of an update
};
// Throws OwnKernelRefused if the kernel does not compile or cannot be launched. A wrong kernel can end this process or never return, so run it in a process that may end.
OwnKernelVerdict check_own_kernel(const Plan& plan, const Model& model, const data::Dataset& data, size_t op, const OwnKernelSource& source,
                                  const ExpectedResults& expected, const OnLaunch& on_launch);
// The same for float32 operands without a plan, and without times.
OwnKernelVerdict check_contract(const own::KernelContract& contract, const OwnKernelSource& source, const own::ExpectedOf& expected,
                                const OnLaunch& on_launch);
// Only what one launch does to memory, for operands that are too large to compare each value many times.
OwnKernelVerdict check_memory(const own::KernelContract& contract, const OwnKernelSource& source, const std::vector<own::Bytes>& operands,
                              const OnLaunch& on_launch);

}  // namespace ws::cuda
