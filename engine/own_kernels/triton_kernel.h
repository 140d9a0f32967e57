// Triton as the source of a kernel of one's own: a Python file with a function own_kernel, compiled by the Triton of the person's Python.
#pragma once
#include <string>

#include "engine/own_kernels/kernel_build.h"

namespace ws::own {

// Starts $WARPSIGHT_PYTHON, else python3, which takes some seconds. Needs no GPU. Throws Failure for an op that Triton cannot compute here.
KernelBuild build_triton(const KernelContract& contract, const OwnKernelSource& source, int compute);
// A first version for ops by element, by row and by column. Throws Failure for other ops.
std::string first_triton(const KernelContract& contract);

}  // namespace ws::own
