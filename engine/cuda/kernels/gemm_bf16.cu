// Own matrix products in bf16.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_bf16(Queue queue, const Product& p) { small_gemm_of<Math::Bf16>(queue, p); }

}  // namespace ws::cuda
