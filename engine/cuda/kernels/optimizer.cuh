// The optimizer step of one element, shared by the multi-tensor kernel and the fused weight gradient.
#pragma once
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {

// Adds what a loss left in its scratch, in one block of at most 256 threads.
__device__ inline void join_losses(const JoinLosses& join, const StepAt& at) {
  __shared__ Sums shared[8];
  const float2* rows = row_losses(join.scratch);
  Sums mine;
#pragma unroll 4
  for (int r = threadIdx.x; r < join.rows; r += blockDim.x) {
    const float2 row = __ldcg(rows + r);
    mine = {mine.loss + row.x, mine.correct + row.y, mine.rows + 1.f};
  }
  mine = block_sum(mine, shared);
  if (threadIdx.x == 0) write_metrics(at, mine);
}

// Values that are equal for all elements of a step.
struct StepFactors {
  float lr = 0, unscale = 1, correction1 = 1, correction2 = 1;
  bool skip = false;
};

__device__ __forceinline__ StepFactors step_factors(const OptimizerRef& o, int64_t table_row, int64_t step) {
  StepFactors f;
  f.lr = o.at.lr[table_row];
  if (o.scale) {
    f.unscale = o.scale->inverse;
    f.skip = o.scale->found_inf != 0;
  }
  if (o.kind == Optimizer::Adam || o.kind == Optimizer::AdamW) {
    const float t = static_cast<float>(step + 1);
    f.correction1 = 1.f - powf(o.beta1, t);
    f.correction2 = sqrtf(1.f - powf(o.beta2, t));
  }
  return f;
}

__device__ __forceinline__ StepFactors step_factors(const OptimizerRef& o) {
  return step_factors(o, table_row(o.at), o.at.clock->step + o.at.offset);
}

struct Moved {
  float w, m, v;
};

// Kind Adam is for AdamW too: there the weight decay does not pass through the moments.
template <Optimizer Kind>
__device__ __forceinline__ Moved moved_by(const OptimizerRef& o, const StepFactors& f, bool decays, Moved at,
                                          float grad) {
  const bool decoupled = Kind == Optimizer::Adam && o.kind == Optimizer::AdamW;
  const float g = grad * f.unscale + (decays && !decoupled ? o.weight_decay * at.w : 0.f);
  if constexpr (Kind == Optimizer::Sgd) return {at.w - f.lr * g, 0.f, 0.f};
  if constexpr (Kind == Optimizer::Momentum) {
    const float m = o.momentum * at.m + g;
    return {at.w - f.lr * (o.nesterov ? g + o.momentum * m : m), m, 0.f};
  }
  if (decays && decoupled) at.w *= 1.f - f.lr * o.weight_decay;
  const float m = o.beta1 * at.m + (1.f - o.beta1) * g;
  const float v = o.beta2 * at.v + (1.f - o.beta2) * g * g;
  const float denominator = sqrtf(v) / f.correction2 + o.epsilon;
  return {at.w - f.lr / f.correction1 * m / denominator, m, v};
}

__device__ __forceinline__ Moved moved(const OptimizerRef& o, const StepFactors& f, bool decays, Moved at, float grad) {
  if (o.kind == Optimizer::Sgd) return moved_by<Optimizer::Sgd>(o, f, decays, at, grad);
  if (o.kind == Optimizer::Momentum) return moved_by<Optimizer::Momentum>(o, f, decays, at, grad);
  return moved_by<Optimizer::Adam>(o, f, decays, at, grad);
}

// Four adjacent elements of a parameter, loaded early and updated when the gradient is ready.
struct Four {
  Pack<4> w, m, v;
};

__device__ __forceinline__ Four load_four(const ParamRef& p, int64_t i, int count, bool whole) {
  const Ref w{reinterpret_cast<char*>(p.w), DType::F32}, m{reinterpret_cast<char*>(p.m), DType::F32},
      v{reinterpret_cast<char*>(p.v), DType::F32};
  Four out{};
  out.w = load_some<4>(w, i, count, whole);
  if (p.m) out.m = load_some<4>(m, i, count, whole);
  if (p.v) out.v = load_some<4>(v, i, count, whole);
  return out;
}

__device__ __forceinline__ void move_four(const OptimizerRef& o, const StepFactors& f, const ParamRef& p, int64_t i,
                                          const Four& at, const Pack<4>& grad, int count, bool whole) {
  if (f.skip) return;
  Pack<4> w, m, v;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const Moved now = moved(o, f, p.decays, {at.w.v[j], at.m.v[j], at.v.v[j]}, grad.v[j]);
    w.v[j] = now.w, m.v[j] = now.m, v.v[j] = now.v;
  }
  store_some<4>(Ref{reinterpret_cast<char*>(p.w), DType::F32}, i, w, count, whole);
  if (p.m) store_some<4>(Ref{reinterpret_cast<char*>(p.m), DType::F32}, i, m, count, whole);
  if (p.v) store_some<4>(Ref{reinterpret_cast<char*>(p.v), DType::F32}, i, v, count, whole);
  if (p.shadow) store_some<4>(Ref{static_cast<char*>(p.shadow.data), p.shadow.type}, i, w, count, whole);
}

// Removes the moments that this optimizer does not use, so that they stay unchanged.
inline ParamRef for_optimizer(ParamRef p, Optimizer kind) {
  if (kind == Optimizer::Sgd) p.m = nullptr;
  if (!is_adam(kind)) p.v = nullptr;
  return p;
}

}  // namespace ws::cuda
