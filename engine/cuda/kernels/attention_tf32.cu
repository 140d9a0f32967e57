// Attention in tf32.
#include "engine/cuda/kernels/attention.cuh"

namespace ws::cuda {

void attention_tf32(Queue queue, const AttentionCall& call) { attention_of<Math::Tf32>(queue, call); }

}  // namespace ws::cuda
