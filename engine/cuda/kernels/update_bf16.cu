// Weight gradients with the optimizer, products in bf16.
#include "engine/cuda/kernels/grad_update.cuh"

namespace ws::cuda {

void grad_update_bf16(Queue queue, const OptimizerRef& optimizer, JoinLosses join,
                      std::span<const LayerUpdate> layers) {
  grad_update_of<Math::Bf16>(queue, optimizer, join, layers);
}

}  // namespace ws::cuda
