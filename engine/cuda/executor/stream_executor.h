// Runs the ops of a bound plan one by one on a stream.
#pragma once
#include <vector>

#include "engine/cuda/executor/data_feed.h"
#include "engine/cuda/executor/dispatch.h"
#include "engine/cuda/memory/allocator_stack.h"
#include "engine/cuda/runtime/rank_link.h"
#include "engine/cuda/executor/step_tables.h"

namespace ws::cuda {

// Averages gradients over the ranks, on the stream of the step or on a second stream.
struct RankAverages {
  RankLink* link = nullptr;  // null if the executor works alone
  struct Transfer {
    Event done;
    std::vector<BufferId> gradients;
    bool running = false;  // runs beside the step and nobody has waited for it yet
  };
  Stream long_ones, short_ones;
  Event ready, begun;
  std::vector<Transfer> transfers;

  void start(cudaStream_t stream, const DevicePlan& bound, size_t op);
  void wait(cudaStream_t stream, const Op& op);  // waits for the gradients that the op reads
  bool overtakes(int64_t bytes) const;           // true if a transfer of these bytes need not wait for a running one
};

// What all launch modes share: the stream, and everything that outlives a plan.
struct Workplace {
  Stream stream;
  Blas blas;
  DeviceBlock<char> scratch;
  Storage storage;
  StepTables tables;
  DataFeed feed;
  RankAverages ranks;

  void create(const Model& model, const data::Dataset& data, const RunSpec& spec);
};

class StreamExecutor {
 public:
  explicit StreamExecutor(Workplace& place) : place_(place) {}

  // Runs consecutive steps; `row` is the first row of the first step.
  void run(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps);

  // Runs the ops of one step whose batch is already staged. While capturing it skips waits: the graph's launcher waits.
  // `steps` may be more than one only if takes_many_steps.
  void step(DevicePlan& bound, AllocatorStack& memory, StepAt at, bool capturing, int64_t steps = 1);

 private:
  void launch_own(const DevicePlan& bound, size_t op, StepAt at);
  void bookkeeping(DevicePlan& bound, AllocatorStack& memory, size_t op, bool capturing);
  void free_leftovers(DevicePlan& bound, AllocatorStack& memory) noexcept;

  Workplace& place_;
};

}  // namespace ws::cuda
