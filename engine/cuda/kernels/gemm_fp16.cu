// Own matrix products in fp16.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_fp16(Queue queue, const Product& p) { small_gemm_of<Math::Fp16>(queue, p); }

void grad_update_fp16(Queue queue, const OptimizerRef& optimizer, std::span<const LayerUpdate> layers) {
  grad_update_of<Math::Fp16>(queue, optimizer, layers);
}

}  // namespace ws::cuda
