// Writes the source of a persistent kernel for one network: constants, the wgmma shapes that it needs, and the CUDA
// source that is embedded in the program.
#pragma once
#include <string>

#include "engine/cuda/persistent/residency.h"

namespace ws::cuda::persistent {

// `stamps`: the kernel records when each part of a step begins.
std::string kernel_source(const Placement& placement, bool stamps = false);

// Returns what a kernel waited for; `code` is a value of Waits in common.cuh.
std::string waited_for(unsigned code);

// Returns the source of a device function with one wgmma whose first operand is in registers. `columns` is a multiple
// of 8.
std::string wgmma_function(const std::string& name, int columns, Precision precision, bool second_is_transposed);
// The same with both operands in shared memory. Only operands of 16 bits can be transposed.
std::string wgmma_in_memory(const std::string& name, int columns, Precision precision, bool first_is_transposed,
                            bool second_is_transposed);

}  // namespace ws::cuda::persistent
