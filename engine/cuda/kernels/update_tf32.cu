// Weight gradients with the optimizer, products in tf32.
#include "engine/cuda/kernels/grad_update.cuh"

namespace ws::cuda {

void grad_update_tf32(Queue queue, const OptimizerRef& optimizer, JoinLosses join,
                      std::span<const LayerUpdate> layers) {
  grad_update_of<Math::Tf32>(queue, optimizer, join, layers);
}

}  // namespace ws::cuda
