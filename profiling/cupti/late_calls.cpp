#include "profiling/cupti/late_calls.h"

#include <dlfcn.h>

#include <string_view>

#include "profiling/base/text.h"

namespace ws::prof {

namespace {

constexpr int kCuda = CUDART_VERSION / 1000;

class Library {
 public:
  explicit Library(const char* name) : file_(formatted("lib{}.so.{}", name, kCuda)), loaded_(dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  const std::string& file() const { return file_; }
  void* loaded() const { return loaded_; }

 private:
  std::string file_;
  void* loaded_;  // never closed: the driver calls back until the process ends
};

const Library& cudart() {
  static const auto* const library = new Library("cudart");
  return *library;
}

const Library& cupti() {
  static const auto* const library = new Library("cupti");
  return *library;
}

}  // namespace

std::string late_library_missing() {
  for (const Library* library : {&cudart(), &cupti()})
    if (!library->loaded()) return library->file() + " of the CUDA toolkit was not found";
  return "";
}

void* CudaRuntimeOrCupti::find(const char* name) {
  const Library& home = std::string_view(name).starts_with("cupti") ? cupti() : cudart();
  return home.loaded() ? dlsym(home.loaded(), name) : nullptr;
}

}  // namespace ws::prof
