// Fits a line through points: forward, loss, both gradients and optionally the optimizer in one pass over the data.
#include "engine/cuda/kernels/line.cuh"

namespace ws::cuda {
namespace {

constexpr int kLineThreads = 512, kAhead = 4;  // packs of four points that a thread loads before it uses the first

// A thread's packs, `step` apart. Every other step goes backwards, so it first reads what the cache loaded last.
// Otherwise data slightly larger than the cache would evict itself.
struct Walk {
  int64_t first, step;
  int count;
  bool backwards;
  __device__ int64_t at(int j) const { return first + (backwards ? count - 1 - j : j) * step; }
};

__device__ __forceinline__ void ask(FourPoints (&ahead)[kAhead], const Points& points, const Walk& walk, int from) {
#pragma unroll
  for (int j = 0; j < kAhead; ++j)
    if (from + j < walk.count) ahead[j] = points.four(walk.at(from + j));
}

__device__ __forceinline__ void use(const FourPoints (&ahead)[kAhead], LineSums& s, const Walk& walk, int from, float w,
                                    float b) {
#pragma unroll
  for (int j = 0; j < kAhead; ++j)
    if (from + j < walk.count) add_four(s, ahead[j], w, b);
}

// What the very last thread needs, loaded before the sums are computed.
struct Ready {
  float w, b;
  StepFactors factors;
};

// Sums the block's share of the points. If the data is constant, the first loads start before the kernel waits for the
// weights.
__device__ __forceinline__ LineSums sum_points(const LineArguments& a, Ready& ready) {
  if (!a.step.data_is_constant) wait_for_previous();
  const Points points = points_of(a);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  Walk walk{i, step, i < points.packs() ? static_cast<int>((points.packs() - 1 - i) / step) + 1 : 0, a.backwards};
  FourPoints ahead[kAhead];
  ask(ahead, points, walk, 0);
  if (a.step.data_is_constant) wait_for_previous();
  ready.w = __ldcg(a.step.w), ready.b = __ldcg(a.step.b);
  if (a.update && threadIdx.x == 0) ready.factors = step_factors(a.optimizer);
  LineSums s;
  for (int from = 0; from < walk.count;) {
    use(ahead, s, walk, from, ready.w, ready.b);
    from += kAhead;
    ask(ahead, points, walk, from);
  }
  for (int64_t j = points.packs() * 4 + i; j < points.n; j += step) s.add(points.x[j], points.y[j], ready.w, ready.b);
  return s;
}

__device__ __forceinline__ void move_one(const LineArguments& a, const StepFactors& f, const ParamRef& p, float* w,
                                         float was, float grad) {
  const Moved now = moved(a.optimizer, f, p.decays, {was, p.m ? *p.m : 0.f, p.v ? *p.v : 0.f}, grad);
  *w = now.w;
  if (p.m) *p.m = now.m;
  if (p.v) *p.v = now.v;
}

// Runs in one thread: computes gradients, metrics and the update from the sums over all points.
__device__ void finish_line(const LineArguments& a, const Ready& ready, float squares, float slope, float offset) {
  const float n = static_cast<float>(a.step.x.rows);
  const float dw = 2.f * slope / n, db = 2.f * offset / n;
  write_metrics(a.step.at, {squares, 0.f, n});
  if (a.step.dw) *a.step.dw = dw;
  if (a.step.db) *a.step.db = db;
  if (!a.update) return;
  move_one(a, ready.factors, a.step.w_param, a.step.w, ready.w, dw);
  move_one(a, ready.factors, a.step.b_param, a.step.b, ready.b, db);
}

__global__ __launch_bounds__(kLineThreads) void linear_step_kernel(const __grid_constant__ LineArguments a,
                                                               Scratch scratch) {
  __shared__ Sums shared[kLineThreads / 32];
  Ready ready;
  const LineSums s = sum_points(a, ready);
  Sums total;
  const Sums mine = block_sum(Sums{s.squares, s.slope, s.offset}, shared);
  if (grid_sum(scratch, mine, total, shared)) finish_line(a, ready, total.loss, total.correct, total.rows);
}

// For several inputs: each thread has one row and the block sums one input after the other. The last block adds the
// sums of all blocks. Block b's sums lie at partials[b · (in + 2)]: squares, offset, then one per weight.
__device__ __forceinline__ float row_difference(const Ref& x, const Ref& y, const LinearStep& l, int64_t row) {
  float z = *l.b;
  for (int64_t j = 0; j < l.x.cols; ++j) z = fmaf(load(x, row * l.x.cols + j), l.w[j], z);
  return z - load(y, row);
}

__device__ __forceinline__ float block_total(float value, Sums* shared) {
  return block_sum(Sums{value, 0.f, 0.f}, shared).loss;
}

__device__ void finish_wide(const LineArguments& a, const float* all) {
  const LinearStep& l = a.step;
  const float n = static_cast<float>(l.x.rows);
  const int64_t stride = l.x.cols + 2;
  for (int64_t j = threadIdx.x; j < stride; j += blockDim.x) {
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += __ldcg(all + b * stride + j);
    if (j == 0) write_metrics(l.at, {sum, 0.f, n});
    const float grad = 2.f * sum / n;
    const StepFactors f = a.update ? step_factors(a.optimizer) : StepFactors{};
    if (j == 1 && l.db) *l.db = grad;
    if (j > 1 && l.dw) l.dw[j - 2] = grad;
    if (!a.update || j == 0) continue;
    ParamRef p = j == 1 ? l.b_param : l.w_param;
    if (p.m && j > 1) p.m += j - 2;
    if (p.v && j > 1) p.v += j - 2;
    float* w = j == 1 ? l.b : l.w + j - 2;
    move_one(a, f, p, w, *w, grad);
  }
}

__global__ __launch_bounds__(kLineThreads) void linear_wide_kernel(const __grid_constant__ LineArguments a,
                                                               Scratch scratch) {
  __shared__ Sums shared[kLineThreads / 32];
  wait_for_previous();
  const LinearStep& l = a.step;
  const Ref x = resolve(l.x), y = resolve(l.y);
  float* mine = partials<float>(scratch) + blockIdx.x * (l.x.cols + 2);
  for (int64_t j = -2; j < l.x.cols; ++j) {
    float sum = 0;
    for (int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; r < l.x.rows;
         r += gridDim.x * blockDim.x) {
      const float d = row_difference(x, y, l, r);
      sum += j == -2 ? d * d : j == -1 ? d : d * load(x, r * l.x.cols + j);
    }
    sum = block_total(sum, shared);
    if (threadIdx.x == 0) mine[j + 2] = sum;
  }
  if (is_last_block(counter(scratch))) finish_wide(a, partials<float>(scratch));
}

int64_t blocks_for(const LinearStep& step) {
  return std::clamp<int64_t>(ceil_div(step.x.rows, 4 * kLineThreads), 1, 2 * kMultiprocessors);
}

bool fits_cluster(const Tensor& x) { return runs_clusters() && x.cols == 1 && x.rows <= kClusterPoints; }

}  // namespace

bool keeps_points(const Tensor& x) {
  return x.cols == 1 && x.type == DType::F32 && (fits_cluster(x) || x.rows <= most_resident_points());
}

void linear_step(Queue queue, Scratch scratch, const LinearStep& step) {
  const LineArguments a = line_arguments(step);
  if (fits_cluster(step.x)) return linear_steps_in_cluster(queue, a);
  if (step.held && a.aligned && keeps_points(step.x)) return linear_steps_resident(queue, scratch, a);
  if (step.steps > 1) throw Failure("so many points do not fit on the chip: each step needs a launch of its own");
  if (step.x.cols > 1) {
    const int64_t space = (kScratchBytes - kCounterBytes - kExchangeBytes) / 4 / (step.x.cols + 2);
    if (space < 1) throw Failure("a linear model on the GPU takes at most a million inputs");
    const int64_t blocks = std::min<int64_t>({ceil_div(step.x.rows, kLineThreads), space, kMultiprocessors});
    return launch(queue, linear_wide_kernel, blocks, kLineThreads, 0, a, scratch);
  }
  launch(queue, linear_step_kernel, blocks_for(step), kLineThreads, 0, a, scratch);
}

}  // namespace ws::cuda
