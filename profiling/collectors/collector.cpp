#include "profiling/collectors/collector.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <system_error>
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
#include "profiling/collectors/recording_gate.h"
#include "profiling/collectors/stamp_spans.h"

namespace ws::prof {

namespace {
std::atomic<bool> g_running{false};  // one per process
}

struct Collector::Impl final : GateParts {
  CollectorOptions options;
  TraceContext context;
  std::unique_ptr<HostSpans> host;
  Listener* listened_before = nullptr;
  GpuTracer* gpu = nullptr;
  std::string gpu_refused;
  std::unique_ptr<HardwareCounters> counters;  // guarded by mutex
  bool sampling_over = false;                  // guarded by mutex; true: too late to start counters
  bool sampled = false;                        // the counters gave samples
  std::atomic<bool> counters_prepared{false};
  std::unique_ptr<OverheadMeter> meter;

  SmallThread thread, flush_thread, memory_thread;
  mutable std::mutex mutex;  // guards what follows; held only briefly
  std::condition_variable wake;
  bool stop_asking = false, stopping = false, pausing = false;
  std::deque<TraceBatch> ready;
  CollectorStatus status;

  std::atomic<bool> running{false};
  RecordingGate gate{*this, context.gaps};
  std::atomic<int64_t> capture_changed{0};
  std::atomic<bool> gpu_worked{false};  // according to the batches
  std::mutex step_mutex;
  int64_t hooked_step = -1;
  XrayPace xray{options.xray};  // by steps: used by the program's thread; by the clock: by the flushing thread
  XrayResult sampled_so_far;  // used by the collecting thread
  std::vector<int64_t> captures_ended;  // since the last marks were taken; guarded by mutex
  int64_t last_clock = 0;
  std::vector<GpuTracer::MemoryReading> memory_readings;  // guarded by mutex
  StampSpans inner{context};

  void begin();
  void begin_gpu(TraceLevel level);
  void start_threads();
  void stop_asking_driver();
  void signal(bool& flag);
  void set_gpu(const GpuKinds& kinds, bool may_wait) override { gpu->apply(kinds, may_wait); }
  void set_marks(const Marks::Config& config) override { Marks::instance().configure(config); }
  void set_stamps(int64_t steps) override { StampBoard::instance().want(steps); }
  void set_listener(bool on) override { prof::set_listener(on ? &Marks::instance() : listened_before); }
  void set_hooks(bool on, int64_t now) override { ProgramRanges::instance().pause(!on, now); }
  int64_t time_after(int64_t) const override { return steady_ns(); }
  bool graphs_seen() const override { return gpu && gpu->graphs_seen(); }
  bool graphs_unsettled() const override { return gpu->graphs_unsettled(); }
  bool settles() const;
  void capture(bool on);
  void prepare_counters();
  void start_counters() noexcept;
  void take_samples(bool last);
  void on_step(int64_t step);
  int64_t steps_alike(int64_t step);
  void begin_xray();
  int64_t follow_xray(int64_t since_begin);
  void describe_xray(bool last);
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

void Collector::Impl::on_step(int64_t step) {
  const std::unique_lock only(step_mutex, std::try_to_lock);  // if several threads mark steps, one of them leads
  // reported twice: by the launch and by the scope around it
  if (!only || step == hooked_step) return;
  hooked_step = step;
  const int64_t now = steady_ns();
  context.step_now.store(static_cast<uint32_t>(step + 1), std::memory_order_relaxed);
  const uint32_t sampling = !gpu ? 0 : options.xray.by_time ? gate.state().sampling : xray.at_step(step, now);
  if (sampling > 0 && meter) meter->interrupted();
  const bool pause = sampling == 0 && meter && meter->step(step, now);
  gate.step(pause, options.node_every > 0 && step % options.node_every < options.node_window, now, sampling);
}

int64_t Collector::Impl::steps_alike(int64_t step) {
  on_step(step);
  if (gate.state().settling) return 1;
  const int64_t until_xray = options.xray.by_time ? std::numeric_limits<int64_t>::max() : xray.until_change(step);
  if (options.node_every <= 0) return until_xray;
  const int64_t at = step % options.node_every;
  return std::min(until_xray, (at < options.node_window ? options.node_window : options.node_every) - at);
}

void Collector::Impl::follow_clock(int64_t since_begin) {
  const bool open = options.clock.open(since_begin);
  if (open != gate.state().clock_open) gate.set_clock(open, steady_ns());
}

// By the clock: it begins and ends at a call of the program that works on the GPU. Elsewhere the driver would be inside of
// calls while records go off and on. Returns when to look again.
int64_t Collector::Impl::follow_xray(int64_t since_begin) {
  const XrayPace::Turn turn = xray.by_clock(since_begin, steady_ns());
  if (turn.changes) gpu->at_next_call([this, opens = turn.opens] {
    gate.set_sampling(opens ? sampling_period(options.xray.length) : 0, steady_ns());
    if (opens) xray.began(steady_ns());
  });
  return turn.look_again;
}

void Collector::Impl::begin_xray() {
  if (!options.xray.any()) return;
  std::string refused = gpu ? "" : gpu_refused;
  if (options.level == TraceLevel::Off) refused = "tracing is off";
  if (options.gpu_is_rank) refused = "several GPUs of one process cannot be sampled; give each GPU a process of its own";
  const std::lock_guard lock(mutex);
  status.xray = describe(options.xray, {}, refused);
  status.xray_refused = !refused.empty();
  if (refused.empty())
    gpu->keep_modules();
  else
    options.xray = {};
}

void Collector::Impl::describe_xray(bool last) {
  if (!options.xray.any() || !gpu) return;
  std::string refused = gpu->sampling_refused();
  if (last && refused.empty() && sampled_so_far.windows == 0)
    refused = options.xray.by_time ? "the program ended before the first window" : "the run ended before step " + std::to_string(XrayWindow::kFirstStep);
  const std::lock_guard lock(mutex);
  status.xray = describe(options.xray, sampled_so_far, refused);
  status.xray_refused = sampled_so_far.windows == 0 && !refused.empty();
}

void Collector::Impl::capture(bool on) {
  const int64_t now = steady_ns();
  if (!options.captures || !gate.set_capturing(on, now)) return;
  capture_changed = now;
  {
    const std::lock_guard lock(mutex);
    if (!on) captures_ended.push_back(now);
    if (on) ++status.captures;
  }
  if (on && options.hardware_counters && !counters_prepared.exchange(true)) prepare_counters();
}

// The last records of a capture range are still asked for.
bool Collector::Impl::settles() const {
  constexpr int64_t kSettles = 1'000'000'000;
  return gate.state().capturing || steady_ns() - capture_changed < kSettles;
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
  status.counters = "No hardware counters: " + (gate.state().level == TraceLevel::Off ? "tracing is off" : gpu_refused) + ".";
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
    begin_gpu(options.level);
  if (!options.gpu_later) begin_xray();
  if (options.untraced_share > 0 && !options.gpu_is_rank)
    meter = std::make_unique<OverheadMeter>(options.untraced_share, OverheadMeter::Limits{});
  if (options.hardware_counters && !options.gpu_later && !options.captures) prepare_counters();
  context.before_buffer = [this] { take_marks(); };
  Marks& marks = Marks::instance();
  marks.drain([](const HostEvent&) {});  // left over from a previous collection
  marks.on_step([this](int64_t step) { on_step(step); });
  marks.on_shared_steps([this](int64_t step) { return steps_alike(step); });
  listened_before = listener();
  const GateSetting setting{.gpu = gpu != nullptr,
                            .program_ranges = options.program_ranges,
                            .nvtx = nvtx::listened_to(),
                            .by_clock = !options.clock.always(),
                            .node_windows = options.node_every > 0,
                            .whole_graphs = options.whole_graphs};
  gate.begin(setting, {.level = options.level, .capturing = !options.captures}, context.origin);
}

void Collector::Impl::begin_gpu(TraceLevel level) {
  gpu = level == TraceLevel::Off || !options.gpu.tracer ? nullptr : options.gpu.tracer();
  gpu_refused = gpu ? gpu->open(options.inside_driver_start) : "built without CUDA";
  if (!gpu_refused.empty()) gpu = nullptr;
  if (!gpu) return;
  context.gpu_clock = gpu->calibrate_clock();
  gpu->begin(context);
  if (options.captures) gpu->watch_captures([this](bool on) { capture(on); });
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
  constexpr int64_t kLongest = int64_t{1} << 39;  // a span lasts up to 18 minutes
  for (const auto& [begin_ns, end_ns] : gate.take_gaps(steady_ns(), last))
    for (int64_t at = begin_ns; at < end_ns; at += kLongest) {
      Span span;
      span.start = context.from_steady(at);
      span.duration = static_cast<uint64_t>(std::min(end_ns - at, kLongest));
      span.kind = static_cast<uint64_t>(SpanKind::Overhead);
      span.meaning = static_cast<uint64_t>(Meaning::Other);
      span.name = context.batch.id(context.batch.name("untraced on purpose"));
      context.batch.row(TrackKind::Untraced, kUntracedTrack, "CPU").spans.push_back(span);
    }
}

void keep_status(const CollectorStatus& status, std::map<std::string, std::string>& extra) {
  extra["traced"] = status.sentence;
  if (!status.gpu && status.level > TraceLevel::Off) extra["cpu_only"] = "yes";
  if (!status.counters.empty()) extra["counters"] = status.counters;
  if (!status.kernel_ranges.empty()) extra["kernel_ranges"] = status.kernel_ranges;
  if (status.counters_refused) extra["counters_refused"] = "yes";
  if (!status.xray.empty()) extra[kXrayKey] = status.xray;
  if (status.xray_refused) extra[kXrayRefusedKey] = "yes";
}

Collector::Collector() : impl_(std::make_unique<Impl>()) {}
Collector::~Collector() { stop(); }

CollectorStatus Collector::start(const CollectorOptions& options) {
  if (g_running.exchange(true)) throw Failure("A trace is being gathered already: stop it before another one begins.");
  impl_ = std::make_unique<Impl>();
  impl_->options = options;
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
  const TraceLevel level = impl_->gate.state().level;
  impl_->begin_gpu(level);
  impl_->begin_xray();
  if (impl_->options.hardware_counters && !impl_->options.captures) impl_->prepare_counters();
  impl_->gate.add_gpu(impl_->gpu != nullptr, steady_ns());
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->status.gpu = impl_->gpu != nullptr;
    impl_->status.sentence = describe(impl_->options, level, impl_->gpu_refused);
  }
  impl_->start_threads();
}

void Collector::stop() {
  if (!impl_->running) return;
  impl_->running = false;
  impl_->gate.end();
  // First stop the threads that call the driver, while the resulting records are still read.
  impl_->stop_asking_driver();
  impl_->signal(impl_->stopping);
  if (impl_->thread.joinable()) impl_->thread.join();
  Marks::instance().configure({});
  if (impl_->gpu && !impl_->options.inside_driver_start) impl_->gpu->detach();
  g_running.store(false);
}

void Collector::capture(bool on) { impl_->capture(on); }

void Collector::set_level(TraceLevel level) {
  constexpr int64_t kWithin = 250'000'000;  // a run that pauses has no next step
  const bool soon = impl_->gpu && impl_->gpu->graph_kernels_recorded() && !impl_->options.gpu_is_rank;
  const int64_t now = steady_ns();
  if (!impl_->gate.set_level(level, now, soon ? now + kWithin : 0)) return;
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->gpu && level != TraceLevel::Off && impl_->gpu_refused.empty())
    impl_->gpu_refused = "tracing began switched off";
  impl_->status.sentence = describe(impl_->options, level, impl_->gpu_refused);
}

CollectorStatus Collector::status() const {
  CollectorStatus status;
  {
    std::lock_guard lock(impl_->mutex);
    status = impl_->status;
  }
  status.level = impl_->gate.state().level;
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
  const GateState now = gate.state();
  const int slice_ms = now.level <= TraceLevel::Collectives || !now.capturing ? options.flush_ms : 10;
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
    const std::lock_guard lock(mutex);
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
  gate.apply_overdue(now);
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
    nap = usual;
    if (began != 0 && !options.clock.always()) {
      follow_clock(steady_ns() - began);
      nap = std::min(usual, options.clock.until_change(steady_ns() - began));
    }
    if (gpu && began != 0 && options.xray.by_time) nap = std::min(nap, follow_xray(steady_ns() - began));
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
    if (!gate.state().capturing) continue;
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
    if (std::string other = describe_exception(gate.state().level, *gpu); !other.empty()) status.sentence = std::move(other);
  }
  if (!takes_more) return;
  lock.unlock();
  TraceBatch batch = context.batch.finish();
  for (const SampledWindow& window : batch.sampled_windows) {
    ++sampled_so_far.windows, sampled_so_far.period = window.period;
    sampled_so_far.samples += window.samples, sampled_so_far.dropped += window.dropped, sampled_so_far.hidden += window.hidden;
  }
  describe_xray(last);
  gpu_worked = gpu_worked || std::ranges::any_of(batch.tracks, runs_on_gpu, &BatchTrack::kind);
  lock.lock();
  status.losses.dropped_records += batch.losses.dropped_records;
  status.losses.invalid_records += batch.losses.invalid_records;
  status.losses.unjoined_kernels += batch.losses.unjoined_kernels;
  if (!batch.empty()) ready.push_back(std::move(batch));
}

}  // namespace ws::prof
