#include "profiling/collectors/collector.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "profiling/clock.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/host_spans.h"
#include "profiling/collectors/nvtx_ranges.h"
#include "profiling/collectors/overhead_meter.h"
#include "profiling/collectors/trace_levels.h"
#include "profiling/failure.h"

namespace ws::prof {

namespace {
std::atomic<bool> g_running{false};  // of the process
}

struct Collector::Impl {
  CollectorOptions options;
  TraceContext context;
  std::unique_ptr<HostSpans> host;
  GpuTracer* gpu = nullptr;
  std::string gpu_refused;
  std::unique_ptr<HardwareCounters> counters;
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
  std::atomic<bool> window_open{false}, paused{false}, quiet{false};  // quiet: paused, or between windows
  std::atomic<int> settle_steps{0};
  std::mutex step_mutex;
  int64_t hooked_step = -1;
  int64_t quiet_since = 0;
  std::vector<std::pair<int64_t, int64_t>> pauses;
  int64_t last_clock = 0;
  std::vector<GpuTracer::MemorySample> memory_samples;  // guarded by mutex
  std::vector<StampedLaunch> unmatched;

  void begin();
  void signal(bool& flag);
  void configure();
  void apply_kinds(GpuKinds kinds);
  bool rests(bool window) const;
  void start_counters();
  void on_step(int64_t step);
  bool sleep_until_cycle();  // whether it is the last
  void loop();
  void take_marks();
  void cycle(bool last);
  void housekeeping();
  void flush_regularly();
  void watch_memory();
  void learn_device();
  void draw_pauses();
  void draw_stamps(bool last);
  void draw(const StampedLaunch& launch, const ResidentKernel& kernel);
  void publish(bool last);
};

void Collector::Impl::signal(bool& flag) {
  {
    std::lock_guard lock(mutex);
    flag = true;
  }
  wake.notify_all();
}

// Applies level, node window and pause to the marks and the GPU tracer. The caller holds switch_mutex.
void Collector::Impl::configure() {
  const TraceLevel now = quiet ? std::min(level.load(), TraceLevel::Steps) : level.load();
  Marks::Config config;
  config.ops = now >= TraceLevel::Graph;
  config.nvtx = nvtx::listened_to() && !options.nvtx_ranges;
  if (gpu) {
    GpuKinds kinds = kinds_of(now, window_open, options.nvtx_ranges);
    kinds.whole_graphs = level == TraceLevel::Graph;
    apply_kinds(kinds);
  }
  Marks::instance().configure(config);
}

// After node records, graphs are launched once with no records at all before they are recorded as a whole.
void Collector::Impl::apply_kinds(GpuKinds kinds) {
  const bool settle = kinds.graph_runs && gpu->graphs_unsettled() && settle_steps < 2;
  settle_steps = settle ? settle_steps + 1 : 0;
  if (settle) kinds.kernels = kinds.graph_runs = false;
  gpu->apply(kinds);
}

// On the thread that trains, so that a window or a pause begins exactly with its step.
void Collector::Impl::on_step(int64_t step) {
  const std::unique_lock only(step_mutex, std::try_to_lock);  // where several threads mark steps, one of them leads
  if (!only || step == hooked_step) return;                   // told twice: by the launch and by the scope around it
  hooked_step = step;
  const int64_t now = steady_ns();
  const bool pause = meter && meter->step(step, now);
  const bool window = options.node_every > 0 && step % options.node_every < options.node_window;
  const bool nothing = pause || rests(window);
  if (pause == paused && window == window_open && nothing == quiet && settle_steps == 0) return;
  std::lock_guard lock(switch_mutex);
  if (nothing && !quiet) quiet_since = now;
  if (!nothing && quiet) pauses.emplace_back(quiet_since, now);
  paused = pause;
  window_open = window;
  quiet = nothing;
  configure();
}

// Between the windows graphs go on with a record a launch; eager kernels would cost as much there as inside.
bool Collector::Impl::rests(bool window) const {
  return options.node_every > 0 && level == TraceLevel::Graph && !window && !(gpu && gpu->graphs_seen());
}

// Where the driver loaded us while it started, it is asked only once the program has begun to use it.
void Collector::Impl::start_counters() {
  counters = make_hardware_counters();
  const std::string why = counters->start(options.counter_interval_ns);
  if (!why.empty()) counters.reset();
  const std::lock_guard lock(mutex);
  status.counters = why.empty() ? "Samples hardware counters." : "No hardware counters: " + why + ".";
}

void Collector::Impl::begin() {
  context.origin = options.origin_ns ? options.origin_ns : steady_ns();
  host = std::make_unique<HostSpans>(context);
  gpu = level == TraceLevel::Off ? nullptr : gpu_tracer();
  gpu_refused = gpu ? gpu->open(options.inside_driver_start) : "built without CUDA";
  if (!gpu_refused.empty()) gpu = nullptr;
  if (gpu) {
    context.gpu_clock = gpu->calibrate_clock();
    gpu->begin(context);
  }
  if (options.untraced_share > 0)
    meter = std::make_unique<OverheadMeter>(options.untraced_share, OverheadMeter::Limits{});
  if (options.hardware_counters && !gpu)
    status.counters = "No hardware counters: " + (level == TraceLevel::Off ? "tracing is off" : gpu_refused) + ".";
  if (gpu && options.hardware_counters && !options.inside_driver_start) start_counters();
  context.before_buffer = [this] { take_marks(); };
  Marks::instance().drain([](const MarkedThread&, const HostEvent&) {});  // of a collection before
  std::lock_guard lock(switch_mutex);
  configure();
}

Collector::Collector() : impl_(std::make_unique<Impl>()) {}
Collector::~Collector() { stop(); }

CollectorStatus Collector::start(const CollectorOptions& options) {
  if (g_running.exchange(true)) throw Failure("A trace is being gathered already: stop it before another one begins.");
  impl_ = std::make_unique<Impl>();
  impl_->options = options;
  impl_->level = options.level;
  impl_->begin();
  impl_->status.running = true;
  impl_->status.gpu = impl_->gpu != nullptr;
  impl_->status.sentence = describe(options, options.level, impl_->gpu_refused);
  impl_->status.origin_ns = impl_->context.origin;
  impl_->running = true;
  Marks& marks = Marks::instance();
  marks.on_step([impl = impl_.get()](int64_t step) { impl->on_step(step); });
  if (options.level != TraceLevel::Off) set_listener(&marks);
  impl_->thread = std::thread([impl = impl_.get()] { impl->loop(); });
  if (impl_->gpu) impl_->flush_thread = std::thread([impl = impl_.get()] { impl->flush_regularly(); });
  if (impl_->gpu && options.poll_memory)
    impl_->memory_thread = std::thread([impl = impl_.get()] { impl->watch_memory(); });
  return status();
}

void Collector::stop() {
  if (!impl_->running) return;
  set_listener(nullptr);
  // First those that ask the driver, while the records that this brings are still read.
  impl_->signal(impl_->stop_asking);
  for (std::thread* asking : {&impl_->memory_thread, &impl_->flush_thread}) {
    if (asking->joinable()) asking->join();
  }
  impl_->signal(impl_->stopping);
  impl_->thread.join();
  if (impl_->gpu && !impl_->options.inside_driver_start) impl_->gpu->detach();
  impl_->running = false;
  g_running.store(false);
}

void Collector::set_level(TraceLevel level) {
  std::lock_guard lock(impl_->switch_mutex);
  if (!impl_->running || level == impl_->level) return;
  impl_->level = level;
  if (!impl_->gpu && level != TraceLevel::Off && impl_->gpu_refused.empty())
    impl_->gpu_refused = "tracing began switched off";
  impl_->configure();
  set_listener(level == TraceLevel::Off ? nullptr : &Marks::instance());
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
  if (impl_->meter) status.overhead = impl_->meter->result();
  return status;
}

TraceBatch Collector::take() {
  std::lock_guard lock(impl_->mutex);
  if (impl_->ready.empty()) return {};
  TraceBatch batch = std::move(impl_->ready.front());
  impl_->ready.pop_front();
  return batch;
}

void Collector::add_stamps(StampedLaunch launch) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->stamps.size() < 4096) impl_->stamps.push_back(std::move(launch));
}

// Marks and records come faster than a live view looks, so their queues are emptied in between.
bool Collector::Impl::sleep_until_cycle() {
  constexpr int kSliceMs = 10;
  std::unique_lock lock(mutex);
  for (int slept = 0; slept < options.flush_ms; slept += kSliceMs) {
    if (wake.wait_for(lock, std::chrono::milliseconds(kSliceMs), [this] { return stopping; })) return true;
    lock.unlock();
    take_marks();
    if (gpu) gpu->drain(false);
    lock.lock();
  }
  return stopping;
}

void Collector::Impl::loop() {
  for (bool last = false; !last;) {
    last = sleep_until_cycle();
    cycle(last);
  }
}

void Collector::Impl::take_marks() {
  Marks& marks = Marks::instance();
  context.expects_ops = marks.ops_seen();
  context.batch.losses().dropped_records +=
      marks.drain([this](const MarkedThread& from, const HostEvent& event) { host->take(from, event); });
}

void Collector::Impl::cycle(bool last) {
  housekeeping();
  take_marks();
  if (gpu) gpu->drain(last);
  if (gpu && options.hardware_counters && status.counters.empty() && gpu->counts().records > 0) start_counters();
  if (counters) counters->drain(context);
  draw_pauses();
  draw_stamps(last);
  if (last && counters) {
    const std::string trouble = counters->stop();
    counters->drain(context);
    const std::lock_guard lock(mutex);
    if (!trouble.empty()) status.counters = "Hardware counters ended early: " + trouble + ".";
  }
  publish(last);
  if (gpu && last) gpu->end();
}

void Collector::Impl::housekeeping() {
  const int64_t now = steady_ns();
  if (gpu && now - last_clock > 1'000'000'000) {
    context.gpu_clock = gpu->calibrate_clock();
    last_clock = now;
  }
  std::vector<GpuTracer::MemorySample> samples;
  {
    std::lock_guard lock(mutex);
    samples.swap(memory_samples);
  }
  for (const auto& sample : samples) {
    context.batch.counter(sample.counter, "B", {context.from_steady(sample.time), sample.bytes});
  }
}

// On a thread of its own: a flush can wait for as long as launches queue up, and the buffers that the driver fills
// meanwhile have to be read and given back.
void Collector::Impl::flush_regularly() {
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(options.flush_ms), [this] { return stop_asking; })) {
    lock.unlock();
    gpu->flush();
    lock.lock();
  }
  lock.unlock();
  learn_device();
  gpu->finish();
}

// On a thread that may wait for the driver.
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

// On a thread of its own: while launches queue up, the driver can keep a question about memory waiting for seconds, and
// records would be lost meanwhile.
void Collector::Impl::watch_memory() {
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(250), [this] { return stop_asking; })) {
    lock.unlock();
    const auto samples = gpu->read_memory();
    learn_device();
    lock.lock();
    memory_samples.insert(memory_samples.end(), samples.begin(), samples.end());
  }
}

// A gap in the trace that we made ourselves says so.
void Collector::Impl::draw_pauses() {
  std::vector<std::pair<int64_t, int64_t>> done;
  {
    std::lock_guard lock(switch_mutex);
    done.swap(pauses);
    // A stretch between windows is long: what there is of it is said at once, so that its steps are not taken for idle.
    if (quiet && !paused) {
      const int64_t now = steady_ns();
      done.emplace_back(std::exchange(quiet_since, now), now);
    }
  }
  for (const auto& [begin_ns, end_ns] : done) {
    Span span;
    span.start = context.from_steady(begin_ns);
    span.duration = static_cast<uint64_t>(end_ns - begin_ns);
    span.kind = static_cast<uint64_t>(SpanKind::Overhead);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.name = context.batch.id(context.batch.name("untraced on purpose"));
    context.batch.row(TrackKind::Overhead, kUntracedTrack, "CPU").spans.push_back(span);
  }
}

void Collector::Impl::draw_stamps(bool last) {
  {
    std::lock_guard lock(mutex);
    std::ranges::move(stamps, std::back_inserter(unmatched));
    stamps.clear();
  }
  std::erase_if(unmatched, [&](const StampedLaunch& launch) {
    for (const ResidentKernel& kernel : context.resident_kernels) {
      if (kernel.op != launch.kernel_op || kernel.step != launch.first_step) continue;
      draw(launch, kernel);
      return true;
    }
    return last;
  });
  if (unmatched.size() > 1024) unmatched.erase(unmatched.begin(), unmatched.end() - 1024);
}

void Collector::Impl::draw(const StampedLaunch& launch, const ResidentKernel& kernel) {
  const StampMap map = map_stamps(launch.stamps, kernel.start, kernel.end);
  for (BlockSpans& block : spans_of_stamps(launch.stamps, map)) {
    auto& row = context.batch.row(TrackKind::Inner, "block " + std::to_string(block.block),
                                  "GPU " + std::to_string(kernel.device));
    for (Span& span : block.spans) {
      span.name = context.batch.id(context.name_of(span.op));
      span.meaning = static_cast<uint64_t>(context.meaning_of(span.op));
      row.spans.push_back(span);
    }
  }
}

void Collector::Impl::publish(bool last) {
  std::unique_lock lock(mutex);
  const bool room = ready.empty() || last;
  context.full = !room && context.batch.spans() > options.max_waiting_spans;
  if (gpu) {
    const GpuCounts counts = gpu->counts();
    status.records = counts.records;
    status.buffers = counts.buffers;
    status.buffers_peak = counts.buffers_peak;
    status.clock_width_ns = context.gpu_clock.width;
    if (std::string other = describe_exception(level, *gpu); !other.empty()) status.sentence = std::move(other);
  }
  if (!room) return;
  lock.unlock();
  TraceBatch batch = context.batch.finish();
  lock.lock();
  status.losses.dropped_records += batch.losses.dropped_records;
  status.losses.invalid_records += batch.losses.invalid_records;
  status.losses.unjoined_kernels += batch.losses.unjoined_kernels;
  if (!batch.empty()) ready.push_back(std::move(batch));
}

}  // namespace ws::prof
