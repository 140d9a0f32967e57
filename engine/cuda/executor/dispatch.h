// One table that maps each op kind to its launcher. It does not know how or when a step runs.
#pragma once
#include "engine/cuda/executor/device_plan.h"
#include "engine/cuda/executor/storage.h"

namespace ws::cuda {

// Everything in the executor that a launcher may need.
struct Launching {
  DevicePlan& bound;
  Queue queue;
  StepAt at;
  Blas& blas;
  Scratch scratch;
  const Storage& storage;
  int64_t steps = 1;   // steps for this launch; more than 1 only if takes_many_steps
  bool alone = false;  // no other op of the plan runs, so none can finish what this one begins

  const RunSpec& spec() const { return bound.plan.spec; }
  Tensor tensor(BufferId id) const;
  LossScale* scale() const { return spec().exec.precision == Precision::Fp16 ? storage.scale() : nullptr; }
};

Product product_of(const Launching& with, const Op& op);
Convolution convolution_of(const Launching& with, const Op& op);
inline bool convolves(OpKind kind) {
  return kind == OpKind::Conv || kind == OpKind::ConvDataGrad || kind == OpKind::ConvWeightGrad;
}
// True if one launch of the plan's only kernel can run many steps. A step then leaves only the parameters behind.
bool takes_many_steps(const DevicePlan& bound);
// Throws Failure that names the first op of the plan that no kernel runs.
void check_kernels(const Plan& plan);
void launch_op(const Launching& with, size_t op);  // not LoadBatch, Alloc, Free or Sync: the stream executor runs those

}  // namespace ws::cuda
