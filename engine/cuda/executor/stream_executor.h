// Runs the ops of a bound plan one by one on a stream.
#pragma once
#include <vector>

#include "engine/cuda/executor/data_feed.h"
#include "engine/cuda/executor/dispatch.h"
#include "engine/cuda/memory/allocator_stack.h"
#include "engine/cuda/runtime/rank_link.h"
#include "engine/cuda/executor/step_tables.h"

namespace ws::cuda {

// Averages over the ranks, on the stream of the step or beside it.
struct RankAverages {
  RankLink* link = nullptr;  // none where the executor works alone
  struct Transfer {
    Event done;
    std::vector<BufferId> gradients;
    bool running = false;  // on the stream beside; nobody has waited for it yet
  };
  Stream beside;
  Event ready;
  std::vector<Transfer> transfers;

  void start(cudaStream_t stream, const DevicePlan& bound, const Op& op);
  void wait(cudaStream_t stream, const Op& op);  // for the gradients that the op reads
};

// What every way of running shares: the stream, and what lives outside plans.
struct Workplace {
  Stream stream;
  SideStreams sides;
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

  // Steps one after the other; `row` is the first's first row.
  void run(DevicePlan& bound, AllocatorStack& memory, int64_t first_step, int64_t row, int64_t steps);

  // The ops of one step, with the batch already staged. Capturing: waits are left out, the graph's launcher does them.
  // More `steps` than one where takes_many_steps says so.
  void step(DevicePlan& bound, AllocatorStack& memory, StepAt at, bool capturing, int64_t steps = 1);

 private:
  void bookkeeping(DevicePlan& bound, AllocatorStack& memory, size_t op, bool capturing);
  void free_leftovers(DevicePlan& bound, AllocatorStack& memory) noexcept;
  Queue queue(const DevicePlan& bound, bool capturing) const;

  Workplace& place_;
};

}  // namespace ws::cuda
