// Captures the ops of the stream executor once and launches them as one CUDA graph of k steps.
#pragma once
#include "engine/cuda/executor/stream_executor.h"

namespace ws::cuda {

class GraphExecutor {
 public:
  GraphExecutor(Workplace& place, StreamExecutor& stream) : place_(place), stream_(stream) {}

  void run(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps);

 private:
  void launch(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps);
  cudaGraphExec_t find_or_capture(DevicePlan& bound, AllocatorStack& memory, const GraphKey& key);
  GraphExec capture(DevicePlan& bound, AllocatorStack& memory, int64_t steps);

  Workplace& place_;
  StreamExecutor& stream_;
};

}  // namespace ws::cuda
