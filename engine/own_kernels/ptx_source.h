// PTX as the source of a kernel of one's own.
#pragma once
#include <string>

#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_contract.h"

namespace ws::own {

// Gives each instruction its line in the file, so that samples find it. No line moves. Text with line directives is left as it is.
std::string with_ptx_lines(const std::string& ptx, const std::string& file);
// A first version from the PTX that the compiler makes of the first version in CUDA. `launch`: as that version launches it.
std::string first_ptx(const KernelContract& contract, const std::string& compiled, const KernelFacts& launch);

}  // namespace ws::own
