// Own matrix products in tf32.
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

void small_gemm_tf32(Queue queue, const Product& p) { small_gemm_of<Math::Tf32>(queue, p); }

void grad_update_tf32(Queue queue, const OptimizerRef& optimizer, std::span<const LayerUpdate> layers) {
  grad_update_of<Math::Tf32>(queue, optimizer, layers);
}

}  // namespace ws::cuda
