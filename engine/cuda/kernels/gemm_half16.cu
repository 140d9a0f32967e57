// Own matrix products in fp16 that also add up in fp16: shows what fp32 accumulators are for.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_half16(Queue queue, const Product& p) { small_gemm_of<Math::Half16>(queue, p); }

}  // namespace ws::cuda
