// The GPU side of a collector, as interfaces: profiling/cupti has them.
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
  bool kernels = false;       // kernels, copies, memsets, and which op launched them
  bool graph_runs = false;    // one record a graph launch instead of one a node
  bool whole_graphs = false;  // graphs made from here on can have such records
  bool calls = false;         // spans of calls, pool sizes
  bool resting = false;       // between windows by the clock: as inside, but no call is drawn
  bool operator==(const GpuKinds&) const = default;
};

struct GpuCounts {
  uint64_t records = 0, buffers = 0, buffers_peak = 0;
};

class GpuTracer {
 public:
  virtual ~GpuTracer() = default;
  // Empty when GPU records can be gathered, else the reason, as a clause: "another profiler is attached: X".
  virtual std::string open(bool inside_driver_start) = 0;
  virtual void begin(TraceContext& context) = 0;  // records from here on go to `context`
  // From any thread. `may_wait`: nothing is launched or captured meanwhile, so that graphs which run with a record a
  // kernel can end first. Otherwise those of their kernels that have not ended are left out.
  virtual void apply(const GpuKinds& kinds, bool may_wait) = 0;
  virtual bool graph_kernels_recorded() const = 0;  // now
  // Graphs that ran with node records stay slow until they ran once with none: whether that has to happen before
  // graph_runs.
  virtual bool graphs_unsettled() const = 0;
  virtual bool graphs_seen() const = 0;  // the program made some since begin()
  virtual bool kernels_refused()
      const = 0;                            // graphs go on as whole launches: the driver holds no more of their kernels
  virtual bool graphs_refused() const = 0;  // graph_runs was asked for and a graph could not have it
  virtual void flush() = 0;                 // can wait long while the program launches: not on the thread that drains
  virtual void finish() = 0;                // the last records come in, then nothing is recorded any more
  virtual void drain(bool last) = 0;        // completed records → context
  // Sizes as the driver tells them now. It can take long to answer while work is being launched: not for a thread in a
  // hurry.
  struct MemoryReading {
    int64_t time = 0;           // steady clock
    double used_on_device = 0;  // by everybody
    std::vector<PoolAnswer> pools;
  };
  virtual std::optional<MemoryReading> read_memory() = 0;
  // The card and the CUDA version of its driver; empty until the program uses it: a driver that starts is asked
  // nothing.
  struct Device {
    std::string name, driver, compute;
  };
  virtual Device device() const = 0;
  virtual int device_number() const = 0;  // of the first that the program uses; 0 until it is known
  // Runs it once, on the program's own thread, when that is about to allocate or launch something for the first time.
  virtual void at_first_call(std::function<void()> what) = 0;
  virtual ClockOffset calibrate_clock() = 0;
  virtual GpuCounts counts() const = 0;
  virtual void end() = 0;     // lets go of the context
  virtual void detach() = 0;  // leaves the driver, so that the program runs as if nobody had traced
};

// Hardware counters (SM active, tensor pipe, DRAM) of one card sampled while everything runs; one in a process.
class HardwareCounters {
 public:
  struct Sample {
    uint64_t start, end;
    double values[4];
  };
  virtual ~HardwareCounters() = default;
  virtual std::string start(int device, int64_t interval_ns) = 0;  // empty, or the reason why not
  virtual bool drain(TraceContext& context) = 0;                   // whether there were samples
  virtual std::string stop() = 0;                                  // empty, or what went wrong on the way
};

// Where a collector gets its GPU side from; empty without CUDA.
struct GpuSource {
  GpuTracer* (*tracer)() = nullptr;  // the one of this process
  std::unique_ptr<HardwareCounters> (*make_counters)() = nullptr;
};

}  // namespace ws::prof
