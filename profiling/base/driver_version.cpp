#include "profiling/base/driver_version.h"

#include <cctype>
#include <fstream>

namespace ws {

std::string driver_version(const std::string& supported_cuda) {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.size() > 4 && std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos) return word;
  return supported_cuda.empty() ? "" : "CUDA " + supported_cuda;
}

}  // namespace ws
