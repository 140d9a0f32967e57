// Interfaces for the GPU side of a collector. profiling/cupti implements them; what only CUPTI has is empty here.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiling/collectors/marks.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

struct GpuKinds {
  bool allocations = false;   // count calls of the driver's allocator
  bool kernels = false;       // record kernels, copies, memsets, and which op launched them
  bool graph_runs = false;    // one record per graph launch instead of one per node
  bool whole_graphs = false;  // graphs made from now on can have graph_runs records
  bool calls = false;         // record spans of calls, and pool sizes
  bool hide_calls = false;    // between clock windows: everything stays on, but calls are not drawn
  uint32_t sampling = 0;      // samples instructions, each 2^this cycles; 0: does not. Not together with kernels
  bool nothing() const { return !allocations && !kernels && !calls && sampling == 0; }
  bool operator==(const GpuKinds&) const = default;
};

struct GpuCounts {
  uint64_t records = 0, buffers = 0, buffers_peak = 0;
};

class GpuTracer {
 public:
  virtual ~GpuTracer() = default;
  // Returns "" if GPU records can be gathered, or the reason as a clause: "another profiler is attached: X".
  virtual std::string open(bool inside_driver_start) = 0;
  virtual void begin(TraceContext& context) = 0;  // from now on records go to `context`
  // Can be called from any thread. `may_wait`: true if nothing is launched or captured meanwhile, so that graphs with
  // kernel records can finish first. If false, kernels of such graphs that have not ended are left out.
  virtual void apply([[maybe_unused]] const GpuKinds& kinds, [[maybe_unused]] bool may_wait) {}
  virtual bool graph_kernels_recorded() const { return false; }  // at this moment
  // Graphs that ran with node records stay slow until they ran once without records. True if that has to happen before
  // graph_runs is switched on.
  virtual bool graphs_unsettled() const { return false; }
  virtual bool graphs_seen() const { return false; }      // true if the program made a graph since begin()
  virtual bool kernels_refused() const { return false; }  // the driver cannot hold more kernel records of graphs
  virtual bool graphs_refused() const { return false; }   // true if graph_runs was requested and a graph could not have it
  // Keeps the code of modules that are loaded from now on, for the source lines of samples.
  virtual void keep_modules() {}
  // Why instructions were not sampled: "another profiler is reading them". Empty: they were, or were not asked for.
  virtual std::string sampling_refused() { return {}; }
  virtual void flush() {}   // can wait long while the program launches: not for the draining thread
  virtual void finish() {}  // collects the last records, then stops recording
  virtual void drain(bool last) = 0;  // passes completed records to the context
  // Memory sizes as the driver reports them now. The driver can take long to answer while work is launched, so do not
  // call this on a thread that must not wait.
  struct MemoryReading {
    int64_t time = 0;           // steady clock
    double used_on_device = 0;  // by all processes
    std::vector<PoolAnswer> pools;
  };
  virtual std::optional<MemoryReading> read_memory() { return std::nullopt; }
  // The card and the CUDA version of its driver. Empty until the program uses the card, because a starting driver must
  // not be called.
  struct Device {
    std::string name, driver, compute;
  };
  virtual Device device() const = 0;
  virtual int device_number() const = 0;  // the first device that the program uses; 0 until it is known
  // `changed` is called on the program's own thread with true after cuProfilerStart, and with false before cuProfilerStop.
  virtual void watch_captures([[maybe_unused]] std::function<void(bool)> changed) {}
  // Runs `what` once, on the program's own thread, right before its first allocation or launch.
  virtual void at_first_call([[maybe_unused]] std::function<void()> what) {}
  // Runs `what` once, on the thread of the program that works on the GPU next, before that work.
  virtual void at_next_call([[maybe_unused]] std::function<void()> what) {}
  virtual ClockOffset calibrate_clock() = 0;
  virtual GpuCounts counts() const = 0;
  virtual void end() = 0;     // releases the context
  virtual void detach() {}    // leaves the driver, so that the program runs as if untraced
};

// Samples hardware counters (SM active, tensor pipe, DRAM) of one card while everything runs. One per process.
class HardwareCounters {
 public:
  struct Sample {
    uint64_t start, end;
    double values[4];
  };
  virtual ~HardwareCounters() = default;
  virtual std::string start(int device, int64_t interval_ns) = 0;  // returns "" or the reason why not
  virtual bool drain(TraceContext& context) = 0;                   // returns true if there were samples
  virtual std::string stop() = 0;                                  // returns "" or the error that occurred meanwhile
};

// Provides the GPU side of a collector. Empty without CUDA.
struct GpuSource {
  GpuTracer* (*tracer)() = nullptr;  // returns the tracer of this process
  std::unique_ptr<HardwareCounters> (*make_counters)() = nullptr;
};

}  // namespace ws::prof
