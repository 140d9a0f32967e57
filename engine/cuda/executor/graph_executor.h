// The stream executor inside a capture scope: the same ops, recorded once and launched as one CUDA graph of k steps.
#pragma once
#include "engine/cuda/executor/stream_executor.h"

namespace ws::cuda {

class GraphExecutor {
 public:
  GraphExecutor(Workplace& place, StreamExecutor& stream) : place_(place), stream_(stream) {}

  void run(BoundPlan& bound, StepMemory& memory, int64_t first_step, int64_t row, int64_t steps);

 private:
  void launch(BoundPlan& bound, StepMemory& memory, int64_t first_step, int64_t row, int64_t steps);
  cudaGraphExec_t find_or_capture(BoundPlan& bound, StepMemory& memory, const GraphKey& key);
  GraphExec capture(BoundPlan& bound, StepMemory& memory, int64_t steps);

  Workplace& place_;
  StreamExecutor& stream_;
};

}  // namespace ws::cuda
