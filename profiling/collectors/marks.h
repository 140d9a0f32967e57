// Receives the program's marks on the threads that set them, and passes them to the collector through one queue per
// thread.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/annotate/annotate.h"
#include "profiling/collectors/spsc_ring.h"
#include "profiling/collectors/op_join.h"

namespace ws::prof {

enum class HostEventType : uint8_t { Step, Phase, Op, Range, ProgramStep, Allocation, Memory, Launch, GraphLaunch, Call };
enum class AllocatorCall : uint8_t { Allocate, Free, AllocateAsync, FreeAsync, AllocateHost, FreeHost };

struct HostEvent {
  int64_t start = 0, end = 0;  // steady clock, ns
  uint64_t a = 0, b = 0;  // address and bytes; a phase's name; a program's step; a graph launch's first step and count; a call's number;
                          // of a launch, what NCCL said of it: bytes and text
  uint32_t step = 0;      // step + 1
  uint32_t correlation = 0;
  int32_t thread = 0;  // thread id of the system; set by MarkedThread::push()
  OpTag op = kNoOp;
  HostEventType type = HostEventType::Op;
  int16_t rank = -1;  // for an op, a step or a range
  uint8_t what = 0;  // AllocatorCall, MemoryAction, or 1 if a call is a driver call
};

struct RangesOfThread;  // see program_ranges.cpp

// What one thread is doing now. Only that thread writes it; other threads use only the queue and `finished`. A later
// thread continues it, so the queue may hold events of several.
struct MarkedThread {
  static constexpr int kDepth = 32;
  struct Open {
    int64_t start;
    OpTag op;
    const char* name;
    uint64_t domain = 0;  // for a range: who marked it
  };

  SpscRing<HostEvent> events{16};
  Open ops[kDepth], phases[kDepth];
  int op_depth = 0, phase_depth = 0;
  uint32_t step = 0;    // step + 1; 0 in work that belongs to no step (an evaluation)
  uint32_t joined = 0;  // the same for a thread that marks no steps: the step that it works for
  bool step_open = false;
  int64_t step_start = 0;
  uint32_t launch_first = 0, launch_count = 0;  // for the next graph launch
  int runtime_calls = 0;  // open runtime calls; driver calls inside them are not shown again
  uint64_t scopes = 0;    // ops begun so far; distinguishes two executions of an op
  int32_t id = 0;         // thread id of the system
  std::atomic<bool> finished{false};

  uint64_t called_in = 0;      // number of the last session in which it called the driver
  uint32_t call_switches = 0;  // value of the callbacks' switch counter when a call was last entered
  std::unordered_map<std::string, OpTag> range_tags;  // tags of ranges that this thread marked
  std::shared_ptr<RangesOfThread> ranges;
  uint32_t pauses = 0;  // value of ProgramRanges' counter when it last marked a range
  OpTag line = kNoOp;  // current source line of this thread; launches outside of any range belong to it

  // The op of the open call that launches, or that adds a node to a graph. At a node itself the driver may hold a lock, so
  // the op cannot be asked for there: that may wait for the interpreter.
  OpTag op_of_call = kNoOp;
  std::optional<OpTag> launched;  // op of the newest launch, until the call around it is recorded: its kernels keep their native frames

  void enter(uint32_t switches) {
    if (call_switches != switches) runtime_calls = 0;  // the end of calls that were open is never reported
    call_switches = switches;
  }
  OpTag op() const { return op_depth > 0 ? ops[std::min(op_depth, kDepth) - 1].op : line; }
  uint32_t work_step() const { return step != 0 ? step : joined; }
  OpAt at() const { return {op(), work_step()}; }
  void push(HostEvent event) {
    event.thread = id;
    events.push(event);
  }
};

class Marks final : public Listener {
 public:
  static Marks& instance();  // lives until the process ends, because threads may mark during shutdown
  static MarkedThread& thread();

  struct Config {
    bool ops = false;  // time each op
    bool nvtx = false;
    bool ranges = false;  // time the program's own ranges
    bool operator==(const Config&) const = default;
  };
  void configure(const Config& config);
  // `hook` is called with the step number, on the marking thread, when a step begins or is launched.
  void on_step(std::function<void(int64_t)> hook) { step_hook_ = std::move(hook); }
  // `hook` answers steps_traced_alike().
  void on_shared_steps(std::function<int64_t(int64_t)> hook) { shared_steps_hook_ = std::move(hook); }
  bool ops_seen() const { return ops_seen_.load(std::memory_order_relaxed); }

  // Calls use(event) for all queued events. Returns how many events full queues refused.
  template <class Use>
  uint64_t drain(Use&& use) {
    std::lock_guard lock(threads_mutex_);
    uint64_t refused = 0;
    for (auto& thread : threads_) {
      thread->events.drain(use);
      refused += thread->events.take_refused();
    }
    return refused;
  }

  void step_begin(int64_t step) override;
  void step_end() override;
  void phase_begin(const char* name) override;
  void phase_end() override;
  void op_begin(OpTag op) override;
  void op_end() override;
  void memory(const MemoryNote& note) override;
  void step_joined(int64_t step) override;
  void works_for(int rank) override;
  void steps_launched(int64_t first, int64_t count) override;
  int64_t steps_traced_alike(int64_t step) override;

  // The program's own ranges: joined like ops, drawn on their own rows. range_end() ends the newest range of its
  // `domain`.
  void range_begin(OpTag op, uint64_t domain) { range_begin(thread(), op, domain); }
  void range_begin(MarkedThread& thread, OpTag op, uint64_t domain);
  void range_end(uint64_t domain, int64_t at = 0);  // at 0: now
  void end_ranges(MarkedThread& thread, int64_t at);  // all that are open on this thread
  void range(OpTag op, int64_t begin, int64_t end, int depth);
  void program_step(int64_t number, int64_t begin, int64_t end);  // for a program that reports its steps
  int64_t range_time() const;                      // 0 if ranges are not timed

 private:
  Marks() = default;
  MarkedThread* adopt();
  void begin_step(MarkedThread& thread, int64_t step) const;
  void end_step(MarkedThread& thread, uint32_t number) const;
  static void push_range(MarkedThread& thread, OpTag op, int64_t begin, int64_t end, int depth);

  std::atomic<bool> time_ops_{false}, time_ranges_{false}, nvtx_{false}, ops_seen_{false};
  std::function<void(int64_t)> step_hook_;             // set before the listener is set
  std::function<int64_t(int64_t)> shared_steps_hook_;  // likewise
  std::mutex threads_mutex_;
  std::vector<std::unique_ptr<MarkedThread>> threads_;
};

}  // namespace ws::prof
