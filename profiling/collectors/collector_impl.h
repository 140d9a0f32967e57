// What a collector holds, shared by the part that gathers and the part that draws what it knows itself.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/host_spans.h"
#include "profiling/collectors/overhead_meter.h"

namespace ws::prof {

struct Collector::Impl {
  CollectorOptions options;
  TraceContext context;
  std::unique_ptr<HostSpans> host;
  Listener* listened_before = nullptr;
  GpuTracer* gpu = nullptr;
  std::string gpu_refused;
  std::unique_ptr<HardwareCounters> counters;  // guarded by mutex
  bool sampling_over = false;                  // guarded by mutex: whoever starts them now comes too late
  bool sampled = false;                        // by the counters
  std::unique_ptr<OverheadMeter> meter;

  std::thread thread, flush_thread, memory_thread;
  mutable std::mutex mutex;  // guards what follows; held for moves only
  std::condition_variable wake;
  bool running = false, stop_asking = false, stopping = false;
  std::deque<TraceBatch> ready;
  std::vector<StampedLaunch> stamps;
  CollectorStatus status;

  std::mutex switch_mutex;  // guards level, window, pause: changed at step boundaries and by set_level
  std::atomic<TraceLevel> level{TraceLevel::Off};
  std::atomic<bool> window_open{false}, clock_shut{false}, paused{false};
  std::atomic<bool> quiet{false};  // paused, or between windows
  std::atomic<int> settle_steps{0};
  std::atomic<int64_t> relevel_by{0};   // a level is to be applied at the next step, or by then; 0: none is
  std::atomic<bool> gpu_worked{false};  // as far as batches tell
  std::mutex step_mutex;
  int64_t hooked_step = -1;
  int64_t quiet_since = 0;
  std::vector<std::pair<int64_t, int64_t>> pauses;
  int64_t last_clock = 0;
  std::vector<GpuTracer::MemoryReading> memory_readings;  // guarded by mutex
  std::vector<StampedLaunch> unmatched;

  void begin();
  void signal(bool& flag);
  void configure(bool between_steps);
  void relevel(bool between_steps);
  void apply_kinds(GpuKinds kinds, bool between_steps);
  bool rests(bool window) const;
  void prepare_counters();
  void start_counters() noexcept;
  void take_samples(bool last);
  void on_step(int64_t step);
  void set_quiet(bool nothing, int64_t now);
  void follow_clock(int64_t since_begin);
  bool sleep_until_cycle();  // whether it is the last
  void loop();
  void take_marks();
  void cycle(bool last);
  void housekeeping();
  void flush_regularly();
  void watch_memory();
  void learn_device();
  void draw_pauses(bool last);
  void draw_stamps(bool last);
  void draw(const StampedLaunch& launch, const ResidentKernel& kernel);
  void publish(bool last);
};

}  // namespace ws::prof
