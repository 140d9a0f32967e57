// Gathers what a program did, on the host and on the GPU, while it runs, and hands it out in batches.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "profiling/base/statistics.h"
#include "profiling/collectors/clock_window.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

enum class TraceLevel : uint8_t {
  Off,      // nothing, not even marks
  Steps,    // steps, phases, allocator calls; no GPU record: the cheapest
  Graph,    // one record for each graph launch; eager kernels, copies and memsets one each; ops on the host
  Kernels,  // every kernel, those inside of graphs too
  Full      // and calls, waits, memory pools
};

struct CollectorOptions {
  GpuSource gpu;  // empty: the host alone
  TraceLevel level = TraceLevel::Kernels;
  // At level Graph: every kernel for `node_window` steps out of every `node_every`; 0: never. Between them graphs leave
  // one record a launch, and steps that launch kernel by kernel leave nothing.
  int64_t node_window = 0, node_every = 0;
  // The level holds while this is open; between, as at level Steps. For programs that mark no steps.
  ClockWindow clock;
  // Share of the time that runs untraced, in short stretches, to know what tracing costs; 0: never.
  double untraced_share = 0;
  bool hardware_counters = false;
  int64_t counter_interval_ns = 1'000'000;
  bool poll_memory = true;               // device-wide use and pool sizes, a few times a second
  int flush_ms = 60;                     // how often a live view gets news
  size_t max_waiting_spans = 4'000'000;  // not taken yet; beyond this, records are dropped and counted
  int64_t origin_ns = 0;                 // steady clock at trace time 0; 0: when start() is called
  bool inside_driver_start = false;      // called by the driver while it starts: ask it nothing
  bool gpu_later = false;                // add_gpu() is called when the program starts CUDA
  bool program_ranges = false;           // record the program's own ranges (for programs without our marks)
  // Hardware counters load libraries that clean up at exit before whoever registered earlier: called after that, so
  // that who stops the collector at exit can register again.
  std::function<void()> libraries_loaded;
};

struct CollectorStatus {
  bool running = false;
  bool gpu = false;                     // GPU records are being gathered
  std::string sentence;                 // what is traced and what is not, and why
  std::string counters;                 // the same for hardware counters
  bool counters_refused = false;        // asked for, and none were sampled
  std::string device, driver, compute;  // the card, once the program uses it
  TraceLevel level = TraceLevel::Off;
  int64_t origin_ns = 0;                   // steady clock at trace time 0
  uint64_t records = 0;                    // GPU and call records read
  Losses losses;                           // since start()
  uint64_t buffers = 0, buffers_peak = 0;  // of record memory, 1 MiB each
  int64_t clock_width_ns = 0;              // how closely GPU and host time are known to agree
  // What tracing adds to a step, from untraced stretches between traced ones; NaN: not measured. The collector stays
  // attached meanwhile, which itself costs a program that only launches small kernels up to a tenth: for such a program
  // the share is too small. Only cuptiFinalize takes that away, and it is no call for the middle of a run: it needs
  // every thread of the program to be outside of CUDA, and afterwards graphs are numbered anew, so that those made
  // before could not be traced again.
  Interval tracing_cost;
};

// What a run file keeps of it, beside sentences as keys that are there or not: "cpu_only", "counters_refused".
void keep_status(const CollectorStatus& status, std::map<std::string, std::string>& extra);

// One collector gathers at a time in a process; start() of a second one throws Failure.
class Collector {
 public:
  Collector();
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Never fails for what the machine cannot do: the status says what is traced.
  CollectorStatus start(const CollectorOptions& options);
  // Waits for the device's last records. Call take() until it is empty afterwards.
  void stop();
  void set_level(TraceLevel level);  // takes effect within a flush period
  CollectorStatus status() const;

  // What was gathered since the last call; empty when nothing new is there. Cheap: moves one batch.
  TraceBatch take();

  // From the driver while it starts, for a collection that began before.
  void add_gpu();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

const char* to_string(TraceLevel level);
TraceLevel trace_level(std::string_view name);  // throws Failure

}  // namespace ws::prof
