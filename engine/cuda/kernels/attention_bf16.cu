// Attention in bf16.
#include "engine/cuda/kernels/attention.cuh"

namespace ws::cuda {

void attention_bf16(Queue queue, const AttentionCall& call) { attention_of<Math::Bf16>(queue, call); }

}  // namespace ws::cuda
