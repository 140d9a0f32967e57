// The CUDA source of the persistent kernels, embedded at build time from the folder device/.
#pragma once
#include <string>

namespace ws::cuda::persistent {

std::string text_of(const std::string& file);  // throws Failure for a file that is not embedded

}  // namespace ws::cuda::persistent
