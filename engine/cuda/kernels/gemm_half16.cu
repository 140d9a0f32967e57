// Own matrix products in fp16 with fp16 sums: shows why products need fp32 accumulators.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_half16(Queue queue, const Product& p) { small_gemm_of<Math::Half16>(queue, p); }

}  // namespace ws::cuda
