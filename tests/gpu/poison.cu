// A kernel that breaks the CUDA context.
#include <cstdint>

#include "tests/gpu/poison.h"

namespace ws::test {
namespace {

__global__ void write_kernel(int* where) { *where = 1; }

}  // namespace

void write_to_nowhere() { write_kernel<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t{1} << 12)); }

}  // namespace ws::test
