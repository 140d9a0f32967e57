// One table from op kind to launcher. Nothing here knows how or when a step is run.
#pragma once
#include "engine/cuda/executor/device_plan.h"
#include "engine/cuda/executor/storage.h"

namespace ws::cuda {

// Up to three more streams for ops that can be split, and what each needs.
class SideStreams {
 public:
  void create(int64_t streams);
  int count() const { return static_cast<int>(sides_.size()) + 1; }
  void fork(cudaStream_t from);
  void join(cudaStream_t into);
  Queue queue(int i) const { return {sides_[static_cast<size_t>(i - 1)].stream.get()}; }
  Scratch scratch(int i) const { return {sides_[static_cast<size_t>(i - 1)].scratch.data()}; }
  float* partials() const { return partials_.data(); }

 private:
  struct Side {
    Stream stream;
    Event done;
    DeviceBlock<char> scratch;
  };
  std::vector<Side> sides_;
  Event forked_;
  DeviceBlock<float> partials_;
};

// Everything that a launcher may need of the executor.
struct Launching {
  DevicePlan& bound;
  Queue queue;
  StepAt at;
  Blas& blas;
  Scratch scratch;
  const Storage& storage;
  SideStreams& sides;
  int64_t steps = 1;  // that the launch is to run, where takes_many_steps allows more than one

  const RunSpec& spec() const { return bound.plan.spec; }
  Tensor tensor(BufferId id) const;
  LossScale* scale() const { return spec().exec.precision == Precision::Fp16 ? storage.scale() : nullptr; }
};

Product product_of(const Launching& with, const Op& op);
// Whether one launch of the plan's only kernel can run many steps: what a step leaves behind is then the parameters
// only.
bool takes_many_steps(const DevicePlan& bound);
void launch_op(const Launching& with, size_t op);  // neither LoadBatch, Alloc, Free nor Sync: the stream executor's own

}  // namespace ws::cuda
