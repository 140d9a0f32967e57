// Attention in fp16.
#include "engine/cuda/kernels/attention.cuh"

namespace ws::cuda {

void attention_fp16(Queue queue, const AttentionCall& call) { attention_of<Math::Fp16>(queue, call); }

}  // namespace ws::cuda
