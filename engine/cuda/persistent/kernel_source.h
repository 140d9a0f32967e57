// The text of a persistent kernel, specialised for one network: constants, the wgmma shapes that it needs, and the CUDA
// source that is embedded in the program.
#pragma once
#include <string>

#include "engine/cuda/persistent/residency.h"

namespace ws::cuda::persistent {

// `stamps`: the kernel says when it begins each part of a step.
std::string kernel_source(const Placement& placement, bool stamps = false);

// What a kernel waits for, by Waits in common.cuh.
std::string waited_for(unsigned code);

// One wgmma with the first operand in registers, as a device function. `columns` is a multiple of 8.
std::string wgmma_function(const std::string& name, int columns, Precision precision, bool second_is_transposed);

}  // namespace ws::cuda::persistent
