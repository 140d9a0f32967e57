// The version of the GPU driver: the engine and the recorder write the same into run files.
#pragma once
#include <string>

namespace ws {

// "580.159.04" if the kernel module reports it, else "CUDA 13.0": the version that the driver supports. Empty without a driver.
std::string driver_version(const std::string& supported_cuda);

}  // namespace ws
