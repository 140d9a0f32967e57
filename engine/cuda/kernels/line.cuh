// Shared by the kernels that fit a line: points, sums over points, and the final step.
#pragma once
#include "engine/cuda/kernels/optimizer.cuh"

namespace ws::cuda {

constexpr int64_t kClusterPoints = 150000;  // up to this many points one cluster is faster than the whole GPU

// Sums over points: squared difference, difference · x, difference.
struct LineSums {
  float squares = 0, slope = 0, offset = 0;
  __device__ void add(float x, float y, float w, float b) {
    const float d = fmaf(w, x, b) - y;
    squares = fmaf(d, d, squares);
    slope = fmaf(d, x, slope);
    offset += d;
  }
};

struct FourPoints {
  float4 x, y;
};

struct Points {
  const float *x, *y;
  int64_t n;
  bool aligned;
  __device__ int64_t packs() const { return aligned ? n / 4 : 0; }
  __device__ FourPoints four(int64_t i) const {
    return {__ldg(reinterpret_cast<const float4*>(x) + i), __ldg(reinterpret_cast<const float4*>(y) + i)};
  }
};

__device__ __forceinline__ void add_four(LineSums& s, const FourPoints& p, float w, float b) {
  s.add(p.x.x, p.y.x, w, b);
  s.add(p.x.y, p.y.y, w, b);
  s.add(p.x.z, p.y.z, w, b);
  s.add(p.x.w, p.y.w, w, b);
}

struct LineArguments {
  LinearStep step;
  OptimizerRef optimizer;
  bool update, aligned, backwards;
};

__device__ __forceinline__ Points points_of(const LineArguments& a) {
  return {reinterpret_cast<const float*>(resolve(a.step.x).data),
          reinterpret_cast<const float*>(resolve(a.step.y).data), a.step.x.rows, a.aligned};
}

__device__ __forceinline__ LineSums add(const LineSums& a, const LineSums& b) {
  return {a.squares + b.squares, a.slope + b.slope, a.offset + b.offset};
}

// Sums over groups of `Lanes` adjacent lanes. Each lane of a group gets the same bits.
template <int Lanes>
__device__ __forceinline__ LineSums sum_over(LineSums s) {
#pragma unroll
  for (int d = Lanes / 2; d > 0; d /= 2) {
    const auto from = [d](float v) { return __shfl_xor_sync(0xffffffffu, v, d); };
    s = add(s, {from(s.squares), from(s.slope), from(s.offset)});
  }
  return s;
}

__device__ __forceinline__ Moved value_of(const float* w, const ParamRef& p) {
  return {__ldcg(w), p.m ? __ldcg(p.m) : 0.f, p.v ? __ldcg(p.v) : 0.f};
}

__device__ __forceinline__ void keep_value(float* w, const ParamRef& p, const Moved& value) {
  *w = value.w;
  if (p.m) *p.m = value.m;
  if (p.v) *p.v = value.v;
}

// The position of a step in the tables, computed without reading the clock again.
struct At {
  int64_t row, step;
  __device__ void advance(int64_t capacity) { ++step; row = row + 1 == capacity ? 0 : row + 1; }
};

// Runs the steps of a kernel that keeps its points. sums(w, b) returns the sums over the thread's points. total(sums,
// i) returns the sums over all threads in step i, with the same bits in every thread. Each thread then updates the
// parameters itself.
template <class SumsOf, class TotalOf>
__device__ __forceinline__ void run_steps(const LineArguments& a, const SumsOf& sums, const TotalOf& total_of) {
  const LinearStep& l = a.step;
  Moved w = value_of(l.w, l.w_param), b = value_of(l.b, l.b_param);
  At at{table_row(l.at), l.at.clock->step + l.at.offset};
  const float n = static_cast<float>(l.x.rows);
  const bool writes = blockIdx.x == 0 && threadIdx.x == 0;
  StepFactors factors = a.update ? step_factors(a.optimizer, at.row, at.step) : StepFactors{};
  for (int i = 0; i < l.steps; ++i) {
    const At now = at;
    at.advance(l.at.capacity);
    StepFactors next;  // loaded before the sums are computed, used after them
    if (a.update && i + 1 < l.steps) next = step_factors(a.optimizer, at.row, at.step);
    const LineSums total = total_of(sums(w.w, b.w), i);
    const float dw = 2.f * total.slope / n, db = 2.f * total.offset / n;
    if (writes) write_metrics_row(l.at, now.row, {total.squares, 0.f, n});
    if (writes && l.dw) *l.dw = dw;
    if (writes && l.db) *l.db = db;
    if (!a.update) return;
    w = moved(a.optimizer, factors, l.w_param.decays, w, dw);
    b = moved(a.optimizer, factors, l.b_param.decays, b, db);
    factors = next;
  }
  if (!writes) return;
  keep_value(l.w, l.w_param, w);
  keep_value(l.b, l.b_param, b);
}

inline LineArguments line_arguments(const LinearStep& step) {
  LineArguments a{step, {}, step.optimizer != nullptr, false, step.at.offset % 2 != 0};
  if (step.optimizer) a.optimizer = *step.optimizer;
  if (a.update) {
    a.step.w_param = for_optimizer(step.w_param, a.optimizer.kind);
    a.step.b_param = for_optimizer(step.b_param, a.optimizer.kind);
  }
  const auto whole = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && !t.clock; };
  a.aligned = whole(step.x) && whole(step.y);
  return a;
}

// Runs step.steps steps in one launch, for up to kClusterPoints points with one input.
void linear_steps_in_cluster(Queue queue, const LineArguments& a);
// Also runs step.steps steps, for as many points as the registers and shared memory of all multiprocessors hold.
int64_t most_resident_points();
void linear_steps_resident(Queue queue, Scratch scratch, const LineArguments& a);

}  // namespace ws::cuda
