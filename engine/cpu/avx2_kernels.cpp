// Products and pools with AVX2 and FMA: see CMakeLists.txt for the options.
#include "engine/cpu/vector_kernels.h"

namespace ws::cpu {

template <>
const Kernels<float>& avx2_kernels() { return VectorKernels<float, 32, 4>::kAll; }
template <>
const Kernels<double>& avx2_kernels() { return VectorKernels<double, 32, 4>::kAll; }

}  // namespace ws::cpu
