// Loaded into a program before it begins: starts its recording as the CUDA driver would, since there need be none.
#include <dlfcn.h>

#include <cstdlib>

namespace {

[[gnu::constructor]] void start() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_NOW) : nullptr;
  if (auto* initialize = library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr) initialize();
}

}  // namespace
