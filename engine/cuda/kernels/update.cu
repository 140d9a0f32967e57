// Weight gradients with the optimizer.
#include "engine/cuda/kernels/grad_update.cuh"

namespace ws::cuda {

void grad_update(Queue queue, const OptimizerRef& optimizer, Precision precision, std::span<const LayerUpdate> layers,
                 JoinLosses join) {
  while (!layers.empty()) {
    const auto some = layers.first(std::min<size_t>(layers.size(), kMaxLayerUpdates));
    with_math(precision, [&]<Math M>() { grad_update_of<M>(queue, optimizer, join, some); });
    layers = layers.subspan(some.size());
    join = {};
  }
}

}  // namespace ws::cuda
