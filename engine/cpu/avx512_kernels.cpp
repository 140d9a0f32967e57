// Products and pools with AVX-512: see CMakeLists.txt for the options.
#include "engine/cpu/vector_kernels.h"

namespace ws::cpu {

template <>
const Kernels<float>& avx512_kernels() { return VectorKernels<float, 64, 8>::kAll; }
template <>
const Kernels<double>& avx512_kernels() { return VectorKernels<double, 64, 8>::kAll; }

}  // namespace ws::cpu
