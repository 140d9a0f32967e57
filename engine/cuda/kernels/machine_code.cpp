#include "engine/cuda/kernels/machine_code.h"

#include <charconv>

#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {
namespace {

struct Architecture {
  int version = 0;           // 90
  bool only_there = false;   // "90a"
  bool machine_code = true, ptx = true;
};

Architecture parsed(std::string_view name) {
  Architecture made;
  if (name.ends_with("-real")) made.ptx = false;
  if (name.ends_with("-virtual")) made.machine_code = false;
  const char* const last = name.data() + name.size();
  const char* const end = std::from_chars(name.data(), last, made.version).ptr;
  made.only_there = end != last && *end != '-';
  return made;
}

template <class Fits>
bool any_of(std::string_view architectures, Fits fits) {
  while (!architectures.empty()) {
    const size_t end = architectures.find(',');
    if (fits(parsed(architectures.substr(0, end)))) return true;
    architectures.remove_prefix(end == std::string_view::npos ? architectures.size() : end + 1);
  }
  return false;
}

}  // namespace

bool has_machine_code(std::string_view architectures, int major, int minor) {
  return any_of(architectures, [=](const Architecture& made) {
    const int from = made.version % 10;
    return made.machine_code && made.version / 10 == major && (made.only_there ? from == minor : from <= minor);
  });
}

bool has_ptx(std::string_view architectures, int major, int minor) {
  return any_of(architectures, [=](const Architecture& made) {
    return made.ptx && made.version > 0 && (made.only_there ? made.version == 10 * major + minor : made.version <= 10 * major + minor);
  });
}

bool made_for(int major, int minor) { return has_machine_code(WARPSIGHT_CUDA_ARCHITECTURES, major, minor); }
bool build_has_ptx(int major, int minor) { return has_ptx(WARPSIGHT_CUDA_ARCHITECTURES, major, minor); }

}  // namespace ws::cuda
