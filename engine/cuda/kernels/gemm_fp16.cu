// Own matrix products in fp16.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_fp16(Queue queue, const Product& p) { small_gemm_of<Math::Fp16>(queue, p); }

}  // namespace ws::cuda
