// Own matrix products in fp32.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_fp32(Queue queue, const Product& p) { small_gemm_of<Math::Fp32>(queue, p); }

}  // namespace ws::cuda
