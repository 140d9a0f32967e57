// Attention and its gradient.
#pragma once
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

// The forward op has neither dout nor dqkv. column_sums: of dqkv, for each sequence; only for warpgroups, or null.
struct AttentionCall {
  Heads heads;
  Tensor qkv, out, lse, dout, dqkv;
  float* column_sums = nullptr;
};

void attention_by_warps(Queue, Precision, const AttentionCall&);

// On Hopper, for 16 bits, heads of 32 or 64 columns and addresses of whole 16 bytes; a gradient of at most 256 symbols.
void attention_by_warpgroups(Queue, Precision, const AttentionCall&);

}  // namespace ws::cuda
