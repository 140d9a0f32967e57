// Attention in fp32.
#include "engine/cuda/kernels/attention.cuh"

namespace ws::cuda {

void attention_fp32(Queue queue, const AttentionCall& call) { attention_of<Math::Fp32>(queue, call); }

}  // namespace ws::cuda
