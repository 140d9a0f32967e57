// Records what a program does on the host and on the GPU while it runs, and hands the data out in batches.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "profiling/base/statistics.h"
#include "profiling/collectors/clock_window.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/xray_window.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

enum class TraceLevel : uint8_t {
  Off,          // nothing, not even marks
  Steps,        // steps, phases, allocator calls; no GPU records
  Collectives,  // steps, ranges and NCCL's collectives, without CUPTI: only for recorded programs
  Graph,        // one record per graph launch, eager kernel, copy and memset; ops on the host
  Kernels,      // every kernel, also inside graphs
  Full          // also calls, waits and memory pools
};

struct CollectorOptions {
  GpuSource gpu;  // empty: only the host is traced
  TraceLevel level = TraceLevel::Kernels;
  // At level Graph: records every kernel for `node_window` of every `node_every` steps; 0: never. Outside these windows
  // a graph launch leaves one record, and a step that launches kernels one by one leaves none.
  int64_t node_window = 0, node_every = 0;
  bool whole_graphs = false;  // at levels Kernels and Full, too: a graph launch leaves one record, and its kernels none
  // The level applies while this window is open, and level Steps between windows. For programs that mark no steps.
  ClockWindow clock;
  XrayWindow xray;  // instructions are sampled in this part, and kernel records pause
  // Records only between capture(true) and capture(false), as often as they are called. Nothing is recorded outside, and the
  // hooks return at once.
  bool captures = false;
  // Share of the time that runs untraced, in short stretches, to measure the cost of tracing; 0: never. Ranks have none:
  // when records go off and on, the driver loses track of the calls that other threads are inside of.
  double untraced_share = 0;
  bool hardware_counters = false;
  int64_t counter_interval_ns = 1'000'000;
  bool poll_memory = true;               // device-wide memory use and pool sizes, four times a second
  int flush_ms = 60;                     // how often a live view gets new data
  size_t max_waiting_spans = 4'000'000;  // limit of spans not yet taken; beyond it, records are dropped and counted
  int64_t origin_ns = 0;                 // steady clock at trace time 0; 0: the time of start()
  bool inside_driver_start = false;      // the driver calls us while it starts: do not call the driver
  bool gpu_later = false;                // add_gpu() will be called when the program starts CUDA
  bool gpu_is_rank = false;              // each GPU is a rank of the training, with the same number
  bool program_ranges = false;           // record the program's own ranges (for programs without our marks)
  // Called after hardware counters have loaded libraries with exit handlers. Exit handlers run in reverse order, so
  // code that stops the collector at exit must register its handler again.
  std::function<void()> libraries_loaded;
};

struct CollectorStatus {
  bool running = false;
  bool gpu = false;                     // GPU records are being gathered
  std::string sentence;                 // what is traced, what is not, and why
  std::string counters;                 // the same for hardware counters
  std::string xray;                     // what was sampled of instructions, or why nothing
  bool xray_refused = false;            // it was requested but not sampled
  std::string kernel_ranges;            // what is wrong with stamps of the program's kernels; known at the end
  bool counters_refused = false;        // counters were requested but not sampled
  std::string device, driver, compute;  // known once the program uses the card
  TraceLevel level = TraceLevel::Off;
  int64_t origin_ns = 0;                   // steady clock at trace time 0
  uint64_t captures = 0;                   // capture ranges that have begun
  uint64_t records = 0;                    // GPU and call records read
  Losses losses;                           // since start()
  uint64_t buffers = 0, buffers_peak = 0;  // record buffers of 1 MiB each
  int64_t clock_width_ns = 0;              // uncertainty between GPU time and host time
  // Time that tracing adds to a step, from untraced stretches between traced ones; NaN: not measured. The collector
  // stays attached in the untraced stretches. This alone costs a program that launches only small kernels up to a
  // tenth, so for such a program the measured share is too small. Only cuptiFinalize removes this cost, but not in the
  // middle of a run: it requires every thread to be outside CUDA. It also renumbers graphs, so graphs made before could
  // not be traced again.
  Interval tracing_cost;
};

// Stores facts about the collection for the run file, as keys that are present or absent: "cpu_only",
// "counters_refused", "xray_refused".
void keep_status(const CollectorStatus& status, std::map<std::string, std::string>& extra);

// Only one collector per process can run at a time. start() of a second one throws Failure.
class Collector {
 public:
  Collector();
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Does not fail if the machine lacks something: the status says what is traced.
  CollectorStatus start(const CollectorOptions& options);
  // Waits for the last records of the device. Afterwards, call take() until it is empty.
  void stop();
  // Takes effect within a flush period. With gpu_is_rank it takes effect at once: call it while no rank works.
  void set_level(TraceLevel level);
  CollectorStatus status() const;

  // Returns what was gathered since the last call; empty if nothing is new. Cheap: moves one batch.
  TraceBatch take();

  // A capture range begins or ends, on the program's thread. Repeated calls do nothing. Only with CollectorOptions::captures.
  void capture(bool on);

  // The driver calls this while it starts, for a collection that began earlier.
  void add_gpu();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

const char* to_string(TraceLevel level);
TraceLevel trace_level(std::string_view name);   // of a training; throws Failure
TraceLevel record_level(std::string_view name);  // of a recorded program; throws Failure

}  // namespace ws::prof
