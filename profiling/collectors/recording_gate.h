// Decides what is recorded at this moment, and switches it on and off: the program's marks, GPU records and stamps.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "profiling/collectors/clock_window.h"
#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/marks.h"

namespace ws::prof {

// Does not change while a collector runs, except that a GPU may come later.
struct GateSetting {
  bool gpu = false;             // GPU records can be gathered
  bool program_ranges = false;  // the program's own ranges are recorded
  bool nvtx = false;            // another tool listens to NVTX
  bool by_clock = false;        // a clock window opens and closes
  bool node_windows = false;    // at level Graph, kernels are recorded in some steps only
  bool whole_graphs = false;    // graphs have one record at each level that records kernels
};

struct alignas(8) GateState {
  TraceLevel level = TraceLevel::Off;
  bool capturing = true;     // inside a capture range
  bool clock_open = true;
  bool paused = false;       // the overhead meter measures an untraced stretch
  bool node_window = false;
  bool graphs_seen = false;  // the program has made a graph
  bool settling = false;     // graphs that ran with node records run once without any records
  uint8_t sampling = 0;      // instructions are sampled, and kernel records pause; see GpuKinds::sampling
  bool operator==(const GateState&) const = default;
};

// A stretch without records that we make ourselves.
enum class Gap : uint8_t { None, Untraced, Uncaptured };

struct Wanted {
  Marks::Config marks;
  GpuKinds kinds;
  int64_t stamped_steps = 0;  // how many steps of each launch write stamps, for a kernel that runs many steps
  bool listener = false;      // the program's marks come to us
  Gap gap = Gap::None;
  bool operator==(const Wanted&) const = default;
};

Wanted wanted(const GateSetting& setting, const GateState& state);

// What the gate switches. It calls these functions under its lock.
class GateParts {
 public:
  virtual ~GateParts() = default;
  virtual void set_gpu(const GpuKinds& kinds, bool may_wait) = 0;  // only with GateSetting::gpu
  virtual void set_marks(const Marks::Config& config) = 0;
  virtual void set_stamps(int64_t steps) = 0;
  virtual void set_listener(bool on) = 0;
  virtual void set_hooks(bool on, int64_t now) = 0;  // the hooks return at once outside of capture ranges
  virtual int64_t time_after(int64_t before) const { return before; }  // now, after a switch that took long
  virtual bool graphs_seen() const = 0;
  virtual bool graphs_unsettled() const = 0;
};

// A change anywhere must not wait for anything, because the program may capture a graph now.
enum class When : uint8_t { Anywhere, BetweenSteps };

// All functions may be called from any thread. Times are in steady clock.
class RecordingGate {
 public:
  RecordingGate(GateParts& parts, GapTimes& times) : parts_(parts), times_(times) {}

  void begin(const GateSetting& setting, const GateState& state, int64_t now);
  void end();  // the parts stay as they are, but marks and stamps end
  GateState state() const { return state_.load(std::memory_order_relaxed); }

  // Called on the training thread when a step begins, so that a window or a pause begins exactly with its step.
  void step(bool pause, bool node_window, int64_t now, uint32_t sampling = 0);
  void set_clock(bool open, int64_t now);
  void set_sampling(uint32_t sampling, int64_t now);
  bool set_capturing(bool on, int64_t now);  // false: nothing changed
  // Takes effect now, or with `latest` at the next step, at the latest at that time. False: nothing changed.
  bool set_level(TraceLevel level, int64_t now, int64_t latest = 0);
  void apply_overdue(int64_t now);  // a level whose step did not come
  void add_gpu(bool gpu, int64_t now);  // opens the clock window, too

  // The untraced stretches since the last call. A stretch that is still open is given in parts, because its steps would
  // look idle; an open pause of the meter only at the end.
  std::vector<std::pair<int64_t, int64_t>> take_gaps(int64_t now, bool last);

 private:
  void apply(GateState next, When when, int64_t now);
  void note_gap(Gap gap, int64_t now);

  GateParts& parts_;
  GapTimes& times_;
  std::mutex mutex_;  // guards what follows; state_ is also read without it
  std::atomic<GateState> state_{};
  std::atomic<int64_t> overdue_at_{0};  // the level is applied at the next step, at the latest at this time; 0: it is applied
  GateSetting setting_;
  bool open_ = false;
  int settled_ = 0;  // times that graphs ran without records, in sequence
  Gap gap_ = Gap::None;
  bool captured_ = false;  // a capture range has begun
  int64_t gap_since_ = 0;
  std::vector<std::pair<int64_t, int64_t>> gaps_;
};

}  // namespace ws::prof
