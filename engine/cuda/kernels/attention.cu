// Attention by warps.
#include "engine/cuda/kernels/attention.cuh"

namespace ws::cuda {

void attention_by_warps(Queue queue, Precision precision, const AttentionCall& call) {
  with_math(precision, [&]<Math M>() { attention_of<M>(queue, call); });
}

}  // namespace ws::cuda
