// State that the parts of a collector share while they convert records to spans. Only the collector's thread uses it.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "profiling/base/clock.h"
#include "profiling/collectors/clock_window.h"
#include "profiling/collectors/pool_sizes.h"
#include "profiling/trace/trace_batch.h"
#include "profiling/collectors/op_join.h"

namespace ws::prof {

// A kernel record, kept until the stamps of that kernel arrive.
struct ResidentKernel {
  OpTag op;
  uint32_t step;
  TimeNs start, end;
  uint32_t device;
};

struct TraceContext {
  BatchBuilder batch;
  OpJoin join;
  ClockOffset gpu_clock;
  int64_t origin = 0;                   // steady clock at trace time 0
  bool expects_ops = false;             // the program marks ops, so a kernel without one is worth a warning
  bool gpu_is_rank = false;             // each GPU is a rank of the training, or of the recorded program
  bool program_ranges = false;          // ops are ranges of any program: meanings come from kernel names
  bool captures = false;                // only capture ranges are recorded
  bool full = false;                    // no space for more spans until a batch is taken
  std::function<void()> before_buffer;  // collects what explains the records in the next buffer
  std::string (*call_name)(bool driver, uint32_t id) = nullptr;
  std::deque<ResidentKernel> resident_kernels;  // the newest ones
  PoolSizes pools;
  GapTimes gaps;
  std::atomic<uint32_t> step_now{0};  // step + 1 that began last; any thread. 0: not known

  void draw_pools(TimeNs time, const PoolSize& size) {
    batch.counter("pool reserved", "B", {time, static_cast<double>(size.reserved)}, CounterKind::PoolReserved);
    batch.counter("pool used", "B", {time, static_cast<double>(size.used)}, CounterKind::PoolUsed);
  }
  int rank_of_gpu(uint32_t device) const { return gpu_is_rank ? static_cast<int>(device) : -1; }
  TimeNs from_steady(int64_t steady) const { return steady - origin; }
  TimeNs from_gpu(uint64_t time) const { return gpu_clock.to_steady(time) - origin; }
  Meaning meaning_of(OpTag op) {
    while (meanings_.size() <= op) meanings_.push_back(op_info(static_cast<OpTag>(meanings_.size())).meaning);
    return meanings_[op];
  }
  BatchBuilder::Name& name_of(OpTag op) {
    while (names_.size() <= op) names_.push_back(&batch.name(op_info(static_cast<OpTag>(names_.size())).name));
    return *names_[op];
  }

 private:
  std::vector<Meaning> meanings_;
  std::vector<BatchBuilder::Name*> names_;
};

}  // namespace ws::prof
