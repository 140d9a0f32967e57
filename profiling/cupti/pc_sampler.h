// Samples the instructions that warps are at, with CUPTI's PC sampling. The GPU's own time does not change; launches become up
// to 1 µs slower while it is on. The first start() took 0.3 to 0.6 s on an H200, so sample a window of steps, not single steps.
#pragma once
#include <cupti.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "profiling/collectors/trace_context.h"
#include "profiling/cupti/module_lines.h"

namespace ws::prof {

class PcSampler {
 public:
  static constexpr size_t kScratchBytes = size_t{64} << 20;    // samples by instruction, until they are read
  static constexpr size_t kHardwareBytes = size_t{256} << 20;  // raw samples
  static constexpr size_t kInstructions = 4096;                // read at once

  PcSampler();
  ~PcSampler();
  // Begins a window; kernel records must be off. `period`: log2 of the cycles between two samples. Call it where the program
  // may wait. Times are in steady clock. Without success refused() says why.
  void start(CUcontext context, uint32_t period, uint32_t step, int64_t now);
  void stop(uint32_t step, int64_t now);  // ends the window and reads its samples
  bool running() const;
  std::string refused() const;  // as a clause; empty if the newest window was sampled

  ModuleLines& modules() { return modules_; }
  // Passes samples on, with their lines, on the collector's thread. Without `last` it ends soon, and goes on at the next call.
  void put(TraceContext& context, bool last);

 private:
  struct Sampled {
    std::string function;  // mangled
    SampledInstruction counts;
  };
  struct Buffer;
  using Key = std::tuple<uint64_t, std::string, uint64_t>;  // module, function, offset

  void begin(uint32_t period);
  void read_reasons();
  void configure(uint32_t period);
  void read_all();
  void take(const Buffer& buffer);
  void disable();
  void put(TraceContext& context, Sampled&& sampled);
  void put_code(TraceContext& context, uint64_t module, const std::string& function);

  ModuleLines modules_;
  std::set<std::pair<uint64_t, std::string>> passed_;  // functions of this window whose code was passed on
  mutable std::mutex mutex_;  // guards what follows
  CUcontext context_ = nullptr;  // not nullptr: a window is open
  std::string refused_;
  std::vector<int> reasons_;  // Stall by the number of the counter; -1: repeats samples, or there is no such counter
  size_t counters_ = 0;
  std::unique_ptr<Buffer> buffer_, rest_;  // rest_: what the driver hands out when it is disabled
  std::map<Key, StallCounts> read_;        // of this window
  SampledWindow window_;
  std::deque<SampledWindow> windows_;  // ready to be passed on
  std::deque<Sampled> ready_;
};

}  // namespace ws::prof
