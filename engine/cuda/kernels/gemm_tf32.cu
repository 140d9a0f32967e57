// Own matrix products in tf32.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_tf32(Queue queue, const Product& p) { small_gemm_of<Math::Tf32>(queue, p); }

}  // namespace ws::cuda
