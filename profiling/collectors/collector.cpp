#include "profiling/collectors/collector.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "profiling/trace/span_walk.h"
#include "profiling/base/clock.h"
#include "profiling/annotate/nvtx_ranges.h"
#include "profiling/collectors/trace_levels.h"
#include "profiling/base/failure.h"
#include "profiling/base/small_thread.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/host_spans.h"
#include "profiling/collectors/overhead_meter.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/collectors/stamp_spans.h"

namespace ws::prof {

namespace {
std::atomic<bool> g_running{false};  // one per process
}

struct Collector::Impl {
  CollectorOptions options;
  TraceContext context;
  std::unique_ptr<HostSpans> host;
  Listener* listened_before = nullptr;
  GpuTracer* gpu = nullptr;
  std::string gpu_refused;
  std::unique_ptr<HardwareCounters> counters;  // guarded by mutex
  bool sampling_over = false;                  // guarded by mutex; true: too late to start counters
  bool sampled = false;                        // the counters gave samples
  bool counters_prepared = false;              // guarded by switch_mutex
  bool captured_before = false;                // likewise
  std::unique_ptr<OverheadMeter> meter;

  SmallThread thread, flush_thread, memory_thread;
  mutable std::mutex mutex;  // guards what follows; held only briefly
  std::condition_variable wake;
  bool stop_asking = false, stopping = false, pausing = false;
  std::deque<TraceBatch> ready;
  CollectorStatus status;

  std::atomic<bool> running{false};
  std::mutex switch_mutex;  // guards level, window and pause; they change at step boundaries and in set_level
  std::atomic<TraceLevel> level{TraceLevel::Off};
  std::atomic<bool> window_open{false}, clock_shut{false}, paused{false};
  std::atomic<bool> capturing{true};  // false: outside of a capture range
  std::atomic<int64_t> capture_changed{0};
  std::atomic<bool> quiet{false};  // paused, between windows or outside of a capture range
  std::atomic<int> settle_steps{0};
  std::atomic<int64_t> relevel_by{0};   // a level will be applied at the next step, at the latest at this time; 0: none
  std::atomic<bool> gpu_worked{false};  // according to the batches
  std::mutex step_mutex;
  int64_t hooked_step = -1;
  int64_t quiet_since = 0;
  std::vector<std::pair<int64_t, int64_t>> pauses;
  std::vector<int64_t> captures_ended;  // since the last marks were taken; guarded by switch_mutex
  int64_t last_clock = 0;
  std::vector<GpuTracer::MemoryReading> memory_readings;  // guarded by mutex
  StampSpans inner{context};

  void begin();
  void begin_gpu();
  void start_threads();
  void stop_asking_driver();
  void signal(bool& flag);
  void configure(bool between_steps);
  void relevel(bool between_steps);
  void configure_nothing();
  void apply_kinds(GpuKinds kinds, bool between_steps);
  bool rests(bool window) const;
  bool is_quiet(bool pause, bool window) const { return pause || clock_shut || !capturing || rests(window); }
  bool settles() const;
  void capture(bool on);
  void prepare_counters();
  void start_counters() noexcept;
  void take_samples(bool last);
  void on_step(int64_t step);
  int64_t steps_alike(int64_t step);
  void set_quiet(bool nothing, int64_t now);
  void follow_clock(int64_t since_begin);
  bool sleep_until_cycle();  // returns true for the last cycle
  template <class Work>
  void attempt(const Work& work);
  void loop();
  void take_marks(bool last = false);
  void cycle(bool last);
  void housekeeping();
  void flush_regularly();
  void watch_memory();
  void learn_device();
  void draw_pauses(bool last);
  void publish(bool last);
};

void Collector::Impl::signal(bool& flag) {
  {
    std::lock_guard lock(mutex);
    flag = true;
  }
  wake.notify_all();
}

// Applies level, node window and pause to the marks and the GPU tracer. Between clock windows the driver goes on
// recording, and the parser drops those records. Reason: if kernel records are switched on again while the program
// launches, the driver sometimes records no more kernels. The caller holds switch_mutex.
void Collector::Impl::configure(bool between_steps) {
  if (!capturing) return configure_nothing();
  const TraceLevel now = quiet ? std::min(level.load(), TraceLevel::Steps) : level.load();
  Marks::Config config;
  config.ops = now >= TraceLevel::Graph;
  config.ranges = options.program_ranges && level >= TraceLevel::Steps;
  config.nvtx = nvtx::listened_to() && !options.program_ranges;
  if (gpu) {
    const bool by_clock = !options.clock.always();
    GpuKinds kinds = kinds_of(by_clock ? level.load() : now, window_open);
    kinds.whole_graphs = level == TraceLevel::Graph;
    kinds.resting = by_clock && quiet;
    apply_kinds(kinds, between_steps);
  }
  Marks::instance().configure(config);
  StampBoard::instance().want(gpu ? stamped_steps(level) : 0);
}

void Collector::Impl::configure_nothing() {
  GpuKinds kinds;
  kinds.whole_graphs = level == TraceLevel::Graph;  // graphs that the program makes meanwhile can have such records later
  if (gpu) gpu->apply(kinds, true);
  Marks::instance().configure({});
  StampBoard::instance().want(0);
}

// After node records, graphs run once without any records before they are recorded as a whole. Clock windows have no
// step boundary where this could happen.
void Collector::Impl::apply_kinds(GpuKinds kinds, bool between_steps) {
  const bool settle = options.clock.always() && kinds.graph_runs && gpu->graphs_unsettled() && settle_steps < 2;
  settle_steps = settle ? settle_steps + 1 : 0;
  if (settle) kinds.kernels = kinds.graph_runs = false;
  gpu->apply(kinds, between_steps);
}

// The caller holds switch_mutex.
void Collector::Impl::relevel(bool between_steps) {
  relevel_by = 0;
  configure(between_steps);
  set_listener(level == TraceLevel::Off ? listened_before : &Marks::instance());
}

// Runs on the training thread, so that a window or a pause begins exactly with its step.
void Collector::Impl::on_step(int64_t step) {
  const std::unique_lock only(step_mutex, std::try_to_lock);  // if several threads mark steps, one of them leads
  // reported twice: by the launch and by the scope around it
  if (!only || step == hooked_step) return;
  hooked_step = step;
  const int64_t now = steady_ns();
  const bool pause = meter && meter->step(step, now);
  const bool window = options.node_every > 0 && step % options.node_every < options.node_window;
  const bool nothing = is_quiet(pause, window);
  if (pause == paused && window == window_open && nothing == quiet && settle_steps == 0 && relevel_by == 0) return;
  std::lock_guard lock(switch_mutex);
  set_quiet(is_quiet(pause, window), now);  // the clock window may have changed meanwhile
  paused = pause;
  window_open = window;
  relevel_by != 0 ? relevel(true) : configure(true);
}

int64_t Collector::Impl::steps_alike(int64_t step) {
  on_step(step);
  if (settle_steps != 0) return 1;
  if (options.node_every <= 0) return std::numeric_limits<int64_t>::max();
  const int64_t at = step % options.node_every;
  return (at < options.node_window ? options.node_window : options.node_every) - at;
}

// The caller holds switch_mutex.
void Collector::Impl::set_quiet(bool nothing, int64_t now) {
  if (nothing && !quiet) quiet_since = now;
  if (!nothing && quiet) pauses.emplace_back(quiet_since, now);
  quiet = nothing;
}

// Runs at any point of the program, possibly during a graph capture. So it must not wait for anything.
void Collector::Impl::follow_clock(int64_t since_begin) {
  const bool shut = !options.clock.open(since_begin);
  if (shut == clock_shut) return;
  std::lock_guard lock(switch_mutex);
  clock_shut = shut;
  const int64_t now = steady_ns();
  set_quiet(is_quiet(paused, window_open), now);
  shut ? context.shut.shut(now) : context.shut.open(now);
  configure(false);
}

// The program's own thread is here, so no step is open on it that launches meanwhile.
void Collector::Impl::capture(bool on) {
  std::lock_guard lock(switch_mutex);
  if (!running || !options.captures || on == capturing) return;
  const int64_t now = steady_ns();
  if (!std::exchange(captured_before, true)) quiet_since = now;  // nothing is drawn before the first range
  capturing = on, capture_changed = now;
  set_quiet(is_quiet(paused, window_open), now);
  on ? context.uncaptured.open(now) : context.uncaptured.shut(now);
  if (!on) ProgramRanges::instance().rest(true, now);
  configure(true);
  if (!on) return captures_ended.push_back(now);
  ProgramRanges::instance().rest(false, now);
  {
    const std::lock_guard status_lock(mutex);
    ++status.captures;
  }
  if (options.hardware_counters && !std::exchange(counters_prepared, true)) prepare_counters();
}

// The last records of a capture range are still asked for.
bool Collector::Impl::settles() const {
  constexpr int64_t kSettles = 1'000'000'000;
  return capturing || steady_ns() - capture_changed < kSettles;
}

// Between windows, graphs keep one record per launch. Eager kernels rest, because they would cost as much as inside.
bool Collector::Impl::rests(bool window) const {
  return options.node_every > 0 && level == TraceLevel::Graph && !window && !(gpu && gpu->graphs_seen());
}

// The driver also calls this, so it must not throw.
void Collector::Impl::start_counters() noexcept {
  auto sampling = options.gpu.make_counters();
  std::string why;
  try {
    why = sampling->start(gpu->device_number(), options.counter_interval_ns);
    if (options.libraries_loaded) options.libraries_loaded();
  } catch (const std::exception& failure) {
    why = failure.what();
  }
  const std::lock_guard lock(mutex);
  if (sampling_over) return;
  if (why.empty()) counters = std::move(sampling);
  status.counters_refused = !why.empty();
  status.counters = why.empty() ? "Samples hardware counters." : "No hardware counters: " + why + ".";
}

// If the driver loaded us while it started, counters start only when the program first uses the driver. This runs on
// the program's own thread, so that the program cannot exit meanwhile.
void Collector::Impl::prepare_counters() {
  if (gpu && options.inside_driver_start) return gpu->at_first_call([this] { start_counters(); });
  if (gpu) return start_counters();
  const std::lock_guard lock(mutex);
  status.counters_refused = true;
  status.counters = "No hardware counters: " + (level == TraceLevel::Off ? "tracing is off" : gpu_refused) + ".";
}

void Collector::Impl::take_samples(bool last) {
  HardwareCounters* sampling = nullptr;
  {
    const std::lock_guard lock(mutex);
    sampling = counters.get();
    sampling_over = last;
  }
  if (!sampling) return;
  if (sampling->drain(context) && !std::exchange(sampled, true) && options.libraries_loaded)
    options.libraries_loaded();  // the decoder library is loaded with the first sample
  if (!last) return;
  const std::string trouble = sampling->stop();
  sampling->drain(context);
  const std::lock_guard lock(mutex);
  if (!trouble.empty()) status.counters = "Hardware counters ended early: " + trouble + ".";
}

void Collector::Impl::begin() {
  context.origin = options.origin_ns ? options.origin_ns : steady_ns();
  context.program_ranges = options.program_ranges;
  context.gpu_is_rank = options.gpu_is_rank;
  context.captures = options.captures;
  host = std::make_unique<HostSpans>(context);
  if (options.program_ranges) ProgramRanges::instance().forget_steps();
  if (options.gpu_later)
    gpu_refused = "the program has not started CUDA";
  else
    begin_gpu();
  if (options.untraced_share > 0 && !options.gpu_is_rank)
    meter = std::make_unique<OverheadMeter>(options.untraced_share, OverheadMeter::Limits{});
  if (options.hardware_counters && !options.gpu_later && !options.captures) prepare_counters();
  context.before_buffer = [this] { take_marks(); };
  Marks::instance().drain([](const HostEvent&) {});  // left over from a previous collection
  std::lock_guard lock(switch_mutex);
  ProgramRanges::instance().rest(options.captures, context.origin);
  if (options.captures) {
    capturing = false;
    quiet = true, quiet_since = context.origin;
    context.uncaptured.shut(context.origin);
  }
  configure(false);
}

void Collector::Impl::begin_gpu() {
  gpu = level == TraceLevel::Off || !options.gpu.tracer ? nullptr : options.gpu.tracer();
  gpu_refused = gpu ? gpu->open(options.inside_driver_start) : "built without CUDA";
  if (!gpu_refused.empty()) gpu = nullptr;
  if (!gpu) return;
  context.gpu_clock = gpu->calibrate_clock();
  gpu->begin(context);
  if (options.captures) gpu->hear_captures([this](bool on) { capture(on); });
}

void Collector::Impl::start_threads() {
  thread = SmallThread([this] { loop(); });
  if (gpu || !options.clock.always()) flush_thread = SmallThread([this] { flush_regularly(); });
  if (gpu && options.poll_memory) memory_thread = SmallThread([this] { watch_memory(); });
}

void Collector::Impl::stop_asking_driver() {
  signal(stop_asking);
  for (SmallThread* asking : {&memory_thread, &flush_thread}) {
    if (asking->joinable()) asking->join();
  }
}

// Marks the gaps that we made in the trace ourselves.
void Collector::Impl::draw_pauses(bool last) {
  std::vector<std::pair<int64_t, int64_t>> done;
  {
    std::lock_guard lock(switch_mutex);
    done.swap(pauses);
    // A stretch between windows is long, so it is drawn in parts: otherwise its steps would look idle. A stretch that
    // is still open at the end of the trace ends there.
    if (quiet && capturing && (last || !paused)) {
      const int64_t now = steady_ns();
      done.emplace_back(std::exchange(quiet_since, now), now);
    }
  }
  constexpr int64_t kLongest = int64_t{1} << 39;  // a span lasts up to 18 minutes
  for (const auto& [begin_ns, end_ns] : done)
    for (int64_t at = begin_ns; at < end_ns; at += kLongest) {
      Span span;
      span.start = context.from_steady(at);
      span.duration = static_cast<uint64_t>(std::min(end_ns - at, kLongest));
      span.kind = static_cast<uint64_t>(SpanKind::Overhead);
      span.meaning = static_cast<uint64_t>(Meaning::Other);
      span.name = context.batch.id(context.batch.name("untraced on purpose"));
      context.batch.row(TrackKind::Overhead, kUntracedTrack, "CPU").spans.push_back(span);
    }
}

void keep_status(const CollectorStatus& status, std::map<std::string, std::string>& extra) {
  extra["traced"] = status.sentence;
  if (!status.gpu && status.level > TraceLevel::Off) extra["cpu_only"] = "yes";
  if (!status.counters.empty()) extra["counters"] = status.counters;
  if (!status.kernel_ranges.empty()) extra["kernel_ranges"] = status.kernel_ranges;
  if (status.counters_refused) extra["counters_refused"] = "yes";
}

Collector::Collector() : impl_(std::make_unique<Impl>()) {}
Collector::~Collector() { stop(); }

CollectorStatus Collector::start(const CollectorOptions& options) {
  if (g_running.exchange(true)) throw Failure("A trace is being gathered already: stop it before another one begins.");
  impl_ = std::make_unique<Impl>();
  impl_->options = options;
  impl_->level = options.level;
  try {
    impl_->begin();
  } catch (...) {
    g_running.store(false);
    throw;
  }
  impl_->status.running = true;
  impl_->status.gpu = impl_->gpu != nullptr;
  impl_->status.sentence = describe(options, options.level, impl_->gpu_refused);
  impl_->status.origin_ns = impl_->context.origin;
  impl_->running = true;
  Marks& marks = Marks::instance();
  marks.on_step([impl = impl_.get()](int64_t step) { impl->on_step(step); });
  marks.on_shared_steps([impl = impl_.get()](int64_t step) { return impl->steps_alike(step); });
  impl_->listened_before = listener();
  if (options.level != TraceLevel::Off) set_listener(&marks);
  try {
    impl_->start_threads();
  } catch (const std::system_error&) {
    stop();
    throw Failure("Nothing is traced: no further thread could be started.");
  }
  return status();
}

// Only our own threads use the tracer, and they are stopped meanwhile.
void Collector::add_gpu() {
  if (!impl_->running || impl_->gpu || !impl_->options.gpu_later) return;
  impl_->options.gpu_later = false;
  impl_->signal(impl_->pausing);
  impl_->thread.join();
  impl_->stop_asking_driver();
  impl_->pausing = impl_->stop_asking = false;
  impl_->begin_gpu();
  if (impl_->options.hardware_counters && !impl_->options.captures) impl_->prepare_counters();
  impl_->follow_clock(0);  // while the window is closed, the work that begins the clock would not be seen
  {
    const std::lock_guard lock(impl_->switch_mutex);
    impl_->configure(false);
  }
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->status.gpu = impl_->gpu != nullptr;
    impl_->status.sentence = describe(impl_->options, impl_->level, impl_->gpu_refused);
  }
  impl_->start_threads();
}

void Collector::stop() {
  if (!impl_->running) return;
  {  // a level that still waits for its step would register the marks again after the end
    std::lock_guard lock(impl_->switch_mutex);
    impl_->running = false;
    impl_->relevel_by = 0;
    StampBoard::instance().want(0);
    set_listener(impl_->listened_before);
  }
  // First stop the threads that call the driver, while the resulting records are still read.
  impl_->stop_asking_driver();
  impl_->signal(impl_->stopping);
  if (impl_->thread.joinable()) impl_->thread.join();
  Marks::instance().configure({});
  if (impl_->gpu && !impl_->options.inside_driver_start) impl_->gpu->detach();
  g_running.store(false);
}

void Collector::capture(bool on) { impl_->capture(on); }
bool Collector::is_uncaptured(int64_t time) const { return impl_->context.uncaptured.at(time); }

void Collector::set_level(TraceLevel level) {
  std::lock_guard lock(impl_->switch_mutex);
  if (!impl_->running || level == impl_->level) return;
  impl_->level = level;
  if (!impl_->gpu && level != TraceLevel::Off && impl_->gpu_refused.empty())
    impl_->gpu_refused = "tracing began switched off";
  constexpr int64_t kWithin = 250'000'000;  // a run that pauses has no next step
  if (impl_->gpu && impl_->gpu->graph_kernels_recorded() && !impl_->options.gpu_is_rank)
    impl_->relevel_by = steady_ns() + kWithin;
  else
    impl_->relevel(false);
  std::lock_guard status_lock(impl_->mutex);
  impl_->status.sentence = describe(impl_->options, level, impl_->gpu_refused);
}

CollectorStatus Collector::status() const {
  CollectorStatus status;
  {
    std::lock_guard lock(impl_->mutex);
    status = impl_->status;
  }
  status.level = impl_->level;
  status.running = impl_->running;
  if (impl_->meter) status.tracing_cost = impl_->meter->result();
  return status;
}

TraceBatch Collector::take() {
  std::lock_guard lock(impl_->mutex);
  if (impl_->ready.empty()) return {};
  TraceBatch batch = std::move(impl_->ready.front());
  impl_->ready.pop_front();
  return batch;
}

// Marks and records come faster than a live view reads, so their queues are emptied in between. Without launches and ops
// they come slowly, and this thread wakes up as rarely as it can.
bool Collector::Impl::sleep_until_cycle() {
  const int slice_ms = level <= TraceLevel::Collectives || !capturing ? options.flush_ms : 10;
  std::unique_lock lock(mutex);
  for (int slept = 0; slept < options.flush_ms; slept += slice_ms) {
    if (wake.wait_for(lock, std::chrono::milliseconds(slice_ms), [this] { return stopping || pausing; })) return stopping;
    lock.unlock();
    take_marks();
    if (gpu) gpu->drain(false);
    lock.lock();
  }
  return stopping;
}

// If memory runs out, new data is lost and counted. The program and the collector continue.
template <class Work>
void Collector::Impl::attempt(const Work& work) {
  try {
    work();
  } catch (const std::exception&) {
    ++context.batch.losses().dropped_records;
  }
}

void Collector::Impl::loop() {
  for (bool last = false; !last;) {
    attempt([&] { last = sleep_until_cycle(); });
    if (pausing && !last) return;
    attempt([&] { cycle(last); });
  }
  if (gpu) gpu->end();
}

void Collector::Impl::take_marks(bool last) {
  Marks& marks = Marks::instance();
  const int64_t begun = steady_ns();
  std::vector<int64_t> ended;
  {
    const std::lock_guard lock(switch_mutex);
    ended.swap(captures_ended);
  }
  for (const int64_t time : ended) host->range_ended(time);
  context.expects_ops = marks.ops_seen() && !options.program_ranges;
  if (options.program_ranges) context.gpu_is_rank = ProgramRanges::instance().gpus_are_ranks();
  context.batch.losses().dropped_records +=
      marks.drain([this](const HostEvent& event) { host->take(event); });
  host->end_blocks();
  host->pass_memory(last ? std::numeric_limits<int64_t>::max() : begun);
}

void Collector::Impl::cycle(bool last) {
  housekeeping();
  take_marks(last);
  if (gpu) gpu->drain(last);
  take_samples(last);
  draw_pauses(last);
  inner.draw(StampBoard::instance().take(), last);
  inner.draw_rings(RingBoard::instance().take(), last);
  publish(last);
}

void Collector::Impl::housekeeping() {
  const int64_t now = steady_ns();
  if (relevel_by != 0 && now > relevel_by) {
    std::lock_guard lock(switch_mutex);
    if (relevel_by != 0) relevel(false);
  }
  if (gpu && now - last_clock > 1'000'000'000) {
    context.gpu_clock = gpu->calibrate_clock();
    last_clock = now;
  }
  std::vector<GpuTracer::MemoryReading> readings;
  {
    std::lock_guard lock(mutex);
    readings.swap(memory_readings);
  }
  for (const auto& reading : readings) {
    const TimeNs time = context.from_steady(reading.time);
    context.batch.counter("device memory used", "B", {time, reading.used_on_device});
    if (const auto pools = context.pools.asked(reading.pools)) context.draw_pools(time, *pools);
  }
}

// Runs on its own thread: a flush can take as long as launches queue up, and meanwhile the buffers that the driver
// fills have to be read and returned. The first clock window begins with the first work on the GPU, so that the
// program's start does not use it up.
void Collector::Impl::flush_regularly() {
  const int64_t usual = int64_t{1'000'000} * options.flush_ms;
  int64_t began = 0, nap = usual;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::nanoseconds(nap), [this] { return stop_asking; })) {
    if (began == 0 && (!gpu || gpu_worked)) began = steady_ns();
    lock.unlock();
    if (began != 0 && !options.clock.always()) {
      follow_clock(steady_ns() - began);
      nap = std::min(usual, options.clock.until_change(steady_ns() - began));
    }
    if (gpu && settles()) gpu->flush();
    lock.lock();
  }
  lock.unlock();
  if (!gpu) return;
  learn_device();
  gpu->finish();
}

// Runs on a thread that may wait for the driver.
void Collector::Impl::learn_device() {
  {
    const std::lock_guard lock(mutex);
    if (!status.device.empty()) return;
  }
  GpuTracer::Device card = gpu->device();
  const std::lock_guard lock(mutex);
  status.device = std::move(card.name);
  status.driver = std::move(card.driver);
  status.compute = std::move(card.compute);
}

// Runs on its own thread: while launches queue up, the driver can delay a memory query for seconds. Records would be
// lost meanwhile.
void Collector::Impl::watch_memory() {
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(250), [this] { return stop_asking; })) {
    if (!capturing) continue;
    lock.unlock();
    auto reading = gpu->read_memory();
    learn_device();
    lock.lock();
    if (reading) memory_readings.push_back(std::move(*reading));
  }
}

void Collector::Impl::publish(bool last) {
  std::unique_lock lock(mutex);
  const bool takes_more = ready.empty() || last;
  context.full = !takes_more && context.batch.spans() > options.max_waiting_spans;
  if (gpu) {
    const GpuCounts counts = gpu->counts();
    status.records = counts.records;
    status.buffers = counts.buffers;
    status.buffers_peak = counts.buffers_peak;
    status.clock_width_ns = context.gpu_clock.width;
    if (last) status.kernel_ranges = inner.ring_problems();
    if (std::string other = describe_exception(level, *gpu); !other.empty()) status.sentence = std::move(other);
  }
  if (!takes_more) return;
  lock.unlock();
  TraceBatch batch = context.batch.finish();
  gpu_worked = gpu_worked || std::ranges::any_of(batch.tracks, runs_on_gpu, &BatchTrack::kind);
  lock.lock();
  status.losses.dropped_records += batch.losses.dropped_records;
  status.losses.invalid_records += batch.losses.invalid_records;
  status.losses.unjoined_kernels += batch.losses.unjoined_kernels;
  if (!batch.empty()) ready.push_back(std::move(batch));
}

}  // namespace ws::prof
