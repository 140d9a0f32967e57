// The CUDA source of the persistent kernels, embedded at build time from the .cuh files of this folder.
#pragma once
#include <string>

namespace ws::cuda::persistent {

std::string text_of(const std::string& file);  // throws Failure if the file is not embedded

}  // namespace ws::cuda::persistent
