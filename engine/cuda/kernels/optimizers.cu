// Optimizer steps over one or all parameters in one launch, and the fp16 check that decides if they run.
#include "engine/cuda/kernels/optimizer.cuh"

namespace ws::cuda {
namespace {

constexpr int kUpdateThreads = 256, kEach = 4;  // elements per thread

// Block b works on the parameter whose range of blocks holds b.
struct UpdateBatch {
  ParamRef parameters[kMaxParameters];
  int first_block[kMaxParameters];
  int count, blocks;
  OptimizerRef optimizer;
  JoinLosses join;  // needs one more block if there are losses to add up
};

__device__ __forceinline__ int find_tensor(const int* first_block, int count) {
  int low = 0, high = count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (static_cast<int>(blockIdx.x) >= first_block[middle])
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// A block has 32 adjacent elements. Its warps add runs of parts, and their sums are added in order.
__device__ __forceinline__ void update_from_parts(const UpdateBatch& batch, const ParamRef& p, int64_t block) {
  constexpr int warps = kUpdateThreads / 32;
  __shared__ float sums[warps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t i = block * 32 + lane;
  const int each = (p.parts.count + warps - 1) / warps, end = min(p.parts.count, (warp + 1) * each);
  float sum = 0;
  if (i < p.n) {
#pragma unroll 8
    for (int s = warp * each; s < end; ++s) sum += __ldcg(p.parts.data + s * p.parts.step + i);
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || i >= p.n) return;
  for (int w = 1; w < warps; ++w) sum += sums[w][lane];
  const Four at = load_four(p, i, 1, false);
  move_four(batch.optimizer, step_factors(batch.optimizer), p, i, at, Pack<4>{{sum}}, 1, false);
}

__global__ void update_kernel(const __grid_constant__ UpdateBatch batch) {
  wait_for_previous();
  if (static_cast<int>(blockIdx.x) == batch.blocks) return join_losses(batch.join, batch.optimizer.at);
  const int which = find_tensor(batch.first_block, batch.count);
  const ParamRef& p = batch.parameters[which];
  if (p.parts.count > 0) return update_from_parts(batch, p, blockIdx.x - batch.first_block[which]);
  const int64_t i = (static_cast<int64_t>(blockIdx.x - batch.first_block[which]) * kUpdateThreads + threadIdx.x) * kEach;
  if (i >= p.n) return;
  const int count = static_cast<int>(min(p.n - i, static_cast<int64_t>(kEach)));
  const StepFactors factors = step_factors(batch.optimizer);
  const Four at = load_four(p, i, count, true);
  move_four(batch.optimizer, factors, p, i, at, load_some<4>(resolve(p.grad), i, count, true), count, true);
}

// Gradients that one launch reads.
struct GradientBatch {
  Tensor tensors[kMaxParameters];
  int first_block[kMaxParameters];
  int count;
  bool first, last;  // of the launches that read all gradients
};

constexpr int kCheckEach = 8, kCheckRounds = 8;

// Calls f(tensor, first element, pack, elements that exist) for this thread's packs.
template <class F>
__device__ __forceinline__ void for_gradients(const GradientBatch& batch, F f) {
  const int which = find_tensor(batch.first_block, batch.count);
  const Ref from = resolve(batch.tensors[which]);
  const int64_t block = blockIdx.x - batch.first_block[which], n = batch.tensors[which].elements();
  for (int r = 0; r < kCheckRounds; ++r) {
    const int64_t i = ((block * kCheckRounds + r) * kUpdateThreads + threadIdx.x) * kCheckEach;
    const int count = static_cast<int>(max(min(n - i, static_cast<int64_t>(kCheckEach)), static_cast<int64_t>(0)));
    if (count == 0) break;
    f(from, i, load_some<kCheckEach>(from, i, count, true), count);
  }
}

__device__ void decide(LossScale* s, bool bad) {
  s->inverse = 1.f / s->scale;
  s->found_inf = bad;
  if (bad) {
    s->scale = fmaxf(s->scale * 0.5f, 1.f);
    s->good_steps = 0;
    s->skipped += 1;
  } else if (++s->good_steps == kScaleGrowEvery) {
    s->scale *= 2.f;
    s->good_steps = 0;
  }
}

// Counter 1 counts the blocks that found an infinity or NaN; the last block decides.
__global__ void check_finite_kernel(const __grid_constant__ GradientBatch batch, Scratch scratch, LossScale* scale) {
  wait_for_previous();
  bool bad = false;
  for_gradients(batch, [&](Ref, int64_t, const Pack<kCheckEach>& v, int) {
#pragma unroll
    for (int j = 0; j < kCheckEach; ++j) bad |= !isfinite(v.v[j]);
  });
  unsigned* seen = counter(scratch) + 1;
  if (__syncthreads_or(bad) && threadIdx.x == 0) atomicOr(seen, 1u);
  if (!is_last_block(counter(scratch)) || threadIdx.x != 0 || !batch.last) return;
  decide(scale, atomicExch(seen, 0u) != 0);
}

// ---- clipping ----
// In the scratch: the sum of squares so far, the factor for the gradients, and the sums of this launch's blocks.
struct ClipMemory {
  float sum, factor;
  float blocks[1];
};

__device__ __forceinline__ float clip_factor(float squares, float limit, const LossScale* scale) {
  if (scale && scale->found_inf) return 1.f;  // the update is skipped
  const float norm = sqrtf(squares) * (scale ? scale->inverse : 1.f);
  return norm > limit ? limit / norm : 1.f;
}

__global__ __launch_bounds__(kUpdateThreads) void gradient_norm_kernel(const __grid_constant__ GradientBatch batch,
                                                                       Scratch scratch, float limit,
                                                                       const LossScale* scale) {
  __shared__ Sums shared[kUpdateThreads / 32];
  wait_for_previous();
  float squares = 0;
  for_gradients(batch, [&](Ref, int64_t, const Pack<kCheckEach>& v, int) {
#pragma unroll
    for (int j = 0; j < kCheckEach; ++j) squares = fmaf(v.v[j], v.v[j], squares);
  });
  ClipMemory* memory = partials<ClipMemory>(scratch);
  squares = block_sum(Sums{squares, 0.f, 0.f}, shared).loss;
  if (threadIdx.x == 0) memory->blocks[blockIdx.x] = squares;
  if (!is_last_block(counter(scratch))) return;
  float all = 0;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kUpdateThreads) all += __ldcg(memory->blocks + b);
  all = block_sum(Sums{all, 0.f, 0.f}, shared).loss;
  if (threadIdx.x != 0) return;
  if (!batch.first) all += memory->sum;
  memory->sum = all;
  if (batch.last) memory->factor = clip_factor(all, limit, scale);
}

__global__ __launch_bounds__(kUpdateThreads) void clip_kernel(const __grid_constant__ GradientBatch batch,
                                                              Scratch scratch) {
  wait_for_previous();
  const float factor = partials<ClipMemory>(scratch)->factor;
  if (factor == 1.f) return;
  for_gradients(batch, [&](Ref to, int64_t i, Pack<kCheckEach> v, int count) {
#pragma unroll
    for (int j = 0; j < kCheckEach; ++j) v.v[j] *= factor;
    store_some<kCheckEach>(to, i, v, count, true);
  });
}

// Calls launch(batch, blocks) with at most kMaxParameters gradients at once.
template <class Launch>
void for_batches(std::span<const Tensor> gradients, Launch launch) {
  GradientBatch batch{};
  batch.first = true;
  while (!gradients.empty()) {
    const auto some = gradients.first(std::min<size_t>(gradients.size(), kMaxParameters));
    gradients = gradients.subspan(some.size());
    batch.last = gradients.empty();
    batch.count = 0;
    int64_t blocks = 0;
    for (const Tensor& t : some) {
      batch.tensors[batch.count] = t;
      batch.first_block[batch.count++] = static_cast<int>(blocks);
      blocks += ceil_div(t.elements(), kUpdateThreads * kCheckEach * kCheckRounds);
    }
    launch(batch, blocks);
    batch.first = false;
  }
}

void launch_update(Queue queue, UpdateBatch& batch, int64_t blocks) {
  batch.blocks = static_cast<int>(blocks);
  if (batch.count > 0) launch(queue, update_kernel, blocks + (batch.join.rows > 0), kUpdateThreads, 0, batch);
  batch.count = 0, batch.join = {};
}

}  // namespace

void update_all(Queue queue, const OptimizerRef& optimizer, std::span<const ParamRef> parameters, JoinLosses join) {
  UpdateBatch batch{};
  batch.optimizer = optimizer, batch.join = join;
  int64_t blocks = 0;
  for (const ParamRef& p : parameters) {
    batch.parameters[batch.count] = for_optimizer(p, optimizer.kind);
    batch.first_block[batch.count++] = static_cast<int>(blocks);
    blocks += ceil_div(p.n, p.parts.count > 0 ? 32 : kUpdateThreads * kEach);
    if (batch.count < kMaxParameters) continue;
    launch_update(queue, batch, blocks);
    blocks = 0;
  }
  launch_update(queue, batch, blocks);
}

void update(Queue queue, const OptimizerRef& optimizer, const ParamRef& parameter) {
  update_all(queue, optimizer, std::span(&parameter, 1));
}

void check_finite(Queue queue, Scratch scratch, std::span<const Tensor> gradients, LossScale* scale) {
  for_batches(gradients, [&](const GradientBatch& batch, int64_t blocks) {
    launch(queue, check_finite_kernel, blocks, kUpdateThreads, 0, batch, scratch, scale);
  });
}

void clip_gradients(Queue queue, Scratch scratch, std::span<const Tensor> gradients, float limit,
                    const LossScale* scale) {
  for_batches(gradients, [&](const GradientBatch& batch, int64_t blocks) {
    launch(queue, gradient_norm_kernel, blocks, kUpdateThreads, 0, batch, scratch, limit, scale);
  });
  for_batches(gradients, [&](const GradientBatch& batch, int64_t blocks) {
    launch(queue, clip_kernel, blocks, kUpdateThreads, 0, batch, scratch);
  });
}

}  // namespace ws::cuda
