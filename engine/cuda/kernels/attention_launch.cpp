// Selects the kernels of attention.
#include "engine/cuda/kernels/attention_launch.h"

#include "engine/cuda/runtime/check.h"

namespace ws::cuda {
namespace {

bool suits_warpgroups(Precision precision, const AttentionCall& call) {
  constexpr int64_t kLongestGradient = 256;
  const auto moves_whole = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data) % 16 == 0; };
  if (precision != Precision::Bf16 && precision != Precision::Fp16) return false;
  if (call.heads.head_width != 32 && call.heads.head_width != 64) return false;
  if (call.dqkv && call.heads.time > kLongestGradient) return false;
  return moves_whole(call.qkv) && moves_whole(call.out) && moves_whole(call.dout) && moves_whole(call.dqkv) &&
         runs_warpgroups();
}

void run(Queue queue, Precision precision, const AttentionCall& call) {
  if (call.heads.head_width > kMaxHeadWidth) throw Failure("Attention on the GPU takes heads of at most 128 columns.");
  suits_warpgroups(precision, call) ? attention_by_warpgroups(queue, precision, call) : attention_by_warps(queue, precision, call);
}

}  // namespace

void attention(Queue queue, Precision precision, const Heads& heads, const Tensor& qkv, const Tensor& out,
               const Tensor& lse) {
  run(queue, precision, {heads, qkv, out, lse, {}, {}});
}

void attention_grad(Queue queue, Precision precision, const Heads& heads, const Tensor& dout, const Tensor& out,
                    const Tensor& qkv, const Tensor& lse, const Tensor& dqkv, const BiasGradient& bias) {
  AttentionCall call{heads, qkv, out, lse, dout, dqkv};
  const int64_t texts = qkv.rows / heads.time, bytes = 4 * texts * qkv.cols;
  const bool keeps = bias.kept && bias.kept->memory_left().bytes >= bytes;
  const bool sums = bias.db && suits_warpgroups(precision, call) && (keeps || bytes <= kScratchBytes / 2 - kCounterBytes);
  if (sums)
    call.column_sums = static_cast<float*>(keeps ? bias.kept->memory_left().data : static_cast<char*>(bias.scratch.data) + kCounterBytes);
  run(queue, precision, call);
  if (!bias.db) return;
  if (!sums) return column_sum(queue, bias.scratch, dqkv, bias.db, bias.kept);
  const GradientParts parts{call.column_sums, qkv.cols, static_cast<int>(texts)};
  keeps ? bias.kept->keep(bias.db.data, parts) : join_column_sums(queue, parts, bias.db);
}

}  // namespace ws::cuda
