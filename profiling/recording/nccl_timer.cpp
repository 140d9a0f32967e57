#include "profiling/recording/nccl_timer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <unordered_set>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/collectors/marks.h"
#include "profiling/collectors/nccl_calls.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

namespace {

constexpr size_t kMostEvents = 32'768;  // of a GPU that does not complete its calls
constexpr size_t kMostUnplaced = kMostEvents / 8;
constexpr size_t kMostAnchors = 64;
constexpr int kTries = 5;
// Rarely: each question to the driver may hold up a thread of the program that launches at that moment.
constexpr int64_t kReadEvery = 500'000'000;
// Outside of capture ranges. The driver returns times with 24 bits: of 10 s, to 1 µs.
constexpr int64_t kReadEveryAtRest = 10'000'000'000;
constexpr int64_t kPatience = 2'000'000, kUnknownWidth = 1'000'000;
constexpr double kMostDrift = 50e-6;  // of the clocks of GPU and host; some µs in a second are usual

}  // namespace

// One CUDA context. The driver returns only differences between events. So a stream of ours records anchors, whose times on
// the host's clock lie between two reads of it, and each call is placed between the anchors around it.
struct NcclTimer::Gpu {
  struct Anchor {
    void* event;
    int64_t host;  // steady clock
    double gpu;    // ns since the first anchor
    int64_t width; // between the two reads
    bool sure;     // no anchor beside it has a better time
  };
  struct Place {
    int64_t host;
    double width;
  };

  void* context = nullptr;
  void* own_stream = nullptr;
  int number = 0;
  std::atomic<bool> failed{false};
  std::vector<void*> spare;    // events; guarded by mutex_
  size_t made = 0;             // events; guarded by mutex_
  std::vector<Timed> ended;    // calls that were made since the last read; guarded by mutex_
  // Only the collector's thread uses what follows.
  std::deque<Timed> waiting;
  std::deque<Anchor> anchors;
  std::vector<void*> streams;
  Place place(double gpu) const;
  void add(Anchor anchor);
};

NcclTimer::Gpu::Place NcclTimer::Gpu::place(double gpu) const {
  const Anchor *before = nullptr, *after = nullptr;
  for (const Anchor& anchor : anchors) {
    if (!anchor.sure) continue;
    if (anchor.gpu <= gpu) before = &anchor;
    if (anchor.gpu > gpu && !after) after = &anchor;
  }
  if (before && after) {
    const double rate = static_cast<double>(after->host - before->host) / (after->gpu - before->gpu);
    return {before->host + static_cast<int64_t>(rate * (gpu - before->gpu)), static_cast<double>(std::max(before->width, after->width))};
  }
  const Anchor& near = before ? *before : after ? *after : anchors.front();
  return {near.host + static_cast<int64_t>(gpu - near.gpu), static_cast<double>(near.width) + 2 * kMostDrift * std::abs(gpu - near.gpu)};
}

// A busy machine can interrupt us between the two reads. Then the anchor before it, or the one after it, says more.
void NcclTimer::Gpu::add(Anchor anchor) {
  const auto last = std::ranges::find_if(anchors.rbegin(), anchors.rend(), &Anchor::sure);
  if (last != anchors.rend()) {
    const auto drift = static_cast<int64_t>(2 * kMostDrift * (anchor.gpu - last->gpu));
    anchor.sure = anchor.width <= last->width + drift;
    last->sure = last->width <= anchor.width + drift;
  }
  anchors.push_back(anchor);
}

NcclTimer::NcclTimer() = default;
NcclTimer::NcclTimer(const CudaEvents& cuda) : cuda_(cuda), found_(true) {}
NcclTimer::~NcclTimer() = default;

std::string NcclTimer::open(bool) {
  if (!found_) found_ = find_cuda_events(cuda_);
  return found_ ? "" : "the CUDA driver lacks a call that times collectives";
}

// The times of calls are on the host's clock already.
ClockOffset NcclTimer::calibrate_clock() { return {0, context_ ? context_->gpu_clock.width : 0}; }

void NcclTimer::begin(TraceContext& context) {
  context_ = &context;
  active_.store(true, std::memory_order_release);
}

// What a capture range has left is read as soon as usual, and the first calls of a range are placed after an anchor as usual.
void NcclTimer::apply(const GpuKinds& kinds, bool) {
  paused_.store(kinds.nothing(), std::memory_order_relaxed);
  switched_.store(true, std::memory_order_relaxed);
}

// The usual call: one lock, and no question to the driver.
NcclTimer::Gpu* NcclTimer::known_gpu(void* stream, Call& call) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(streams_, stream, &KnownStream::stream);
  if (known == streams_.end()) return nullptr;
  if (!known->gpu->failed.load(std::memory_order_relaxed)) take_spare(*known->gpu, call);
  return known->gpu;
}

void NcclTimer::take_spare(Gpu& gpu, Call& call) {
  for (void** event : {&call.begin, &call.end}) {
    if (*event || gpu.spare.empty()) continue;
    *event = gpu.spare.back();
    gpu.spare.pop_back();
  }
}

// The driver is asked once for each stream. A default stream belongs to the context that is current.
NcclTimer::Gpu* NcclTimer::gpu_of(void* stream) {
  constexpr size_t kMostStreams = 64;
  const bool one_context = reinterpret_cast<uintptr_t>(stream) > CudaEvents::kLastDefaultStream;
  void* context = nullptr;
  if (cuda_.stream_context(stream, &context) != 0 || !context) return nullptr;
  const std::lock_guard lock(mutex_);
  Gpu* const gpu = gpu_of_context(context);
  if (one_context && streams_.size() < kMostStreams) streams_.push_back({stream, gpu});
  return gpu;
}

void NcclTimer::forget_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [stream](const KnownStream& known) { return known.stream == stream; });
}

NcclTimer::Gpu* NcclTimer::gpu_of_context(void* context) {
  for (const auto& known : gpus_)
    if (known->context == context) return known.get();
  auto fresh = std::make_unique<Gpu>();
  fresh->context = context;
  const InContext inside(cuda_, context);
  void* first = nullptr;
  const int64_t now = steady_ns();
  if (!inside.entered() || cuda_.context_device(&fresh->number) != 0 ||
      cuda_.stream_create(&fresh->own_stream, CudaEvents::kBesideOthers) != 0 ||
      cuda_.event_create(&first, CudaEvents::kTimed) != 0 || cuda_.event_record(first, fresh->own_stream) != 0)
    fresh->failed = true;
  else
    fresh->anchors.push_back({first, now, 0, std::max(kUnknownWidth, 2 * (steady_ns() - now)), false});
  gpus_.push_back(std::move(fresh));
  return gpus_.back().get();
}

bool NcclTimer::take_events(Gpu& gpu, Call& call) {
  if (call.begin && call.end) return true;
  size_t missing = 0;
  {
    const std::lock_guard lock(mutex_);
    take_spare(gpu, call);
    missing = size_t{!call.begin} + size_t{!call.end};
    if (gpu.made + missing > kMostEvents) {
      ++refused_;
      return false;
    }
    gpu.made += missing;
  }
  if (missing == 0) return true;
  const InContext inside(cuda_, gpu.context);
  for (void** event : {&call.begin, &call.end})
    if (!*event && inside.entered() && cuda_.event_create(event, CudaEvents::kTimed) == 0) --missing;
  if (missing == 0) return true;
  const std::lock_guard lock(mutex_);
  gpu.made -= missing;
  return false;
}

// A captured call runs later, perhaps many times, and an event in a graph would keep only its last time.
NcclTimer::Call NcclTimer::begin_call(void* stream) noexcept {
  if (!active()) return {};
  int captures = 0;
  if (cuda_.stream_captures(stream, &captures) != 0) return {};
  if (captures != 0) {
    captures_.store(true, std::memory_order_relaxed);
    return Call{};
  }
  try {
    for (int tries = 0; tries < 2; ++tries) {
      Call call{nullptr, stream, nullptr, nullptr, steady_ns()};
      call.gpu = known_gpu(stream, call);
      if (!call.gpu) call.gpu = gpu_of(stream);
      if (!call.gpu || call.gpu->failed.load(std::memory_order_relaxed)) return {};
      if (!take_events(*call.gpu, call)) {
        forget_call(call);
        return Call{};
      }
      if (cuda_.event_record(call.begin, stream) == 0) return call;
      forget_call(call);
      forget_stream(stream);  // it may have ended, and another context may have a new one of this address
    }
  } catch (const std::exception&) {  // out of memory: nobody times this call
  }
  return {};
}

void NcclTimer::end_call(const Call& call, const NcclWork& work) noexcept {
  if (!call.gpu) return;
  if (cuda_.event_record(call.end, call.stream) != 0) return forget_call(call);
  try {
    OpAt at = Marks::thread().at();
    if (at.step == 0) at.step = ProgramRanges::instance().open_step();  // PyTorch calls from threads of its own
    const std::lock_guard lock(mutex_);
    call.gpu->ended.push_back({call, work, at});
  } catch (const std::exception&) {
    ++refused_;
  }
}

void NcclTimer::forget_call(const Call& call) noexcept {
  if (!call.gpu) return;
  try {
    const std::lock_guard lock(mutex_);
    for (void* event : {call.begin, call.end})
      if (event) call.gpu->spare.push_back(event);
  } catch (const std::exception&) {  // out of memory: the events are lost
  }
}

void NcclTimer::drain(bool last) {
  const int64_t now = steady_ns();
  const bool paused = paused_.load(std::memory_order_relaxed) && !switched_.load(std::memory_order_relaxed);
  if (!context_ || (!last && now - last_read_ < (paused ? kReadEveryAtRest : kReadEvery))) return;
  last_read_ = now;
  switched_.store(false, std::memory_order_relaxed);
  std::vector<Gpu*> gpus;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : gpus_)
      if (!each->failed) gpus.push_back(each.get());
  }
  for (Gpu* gpu : gpus) {
    const InContext inside(cuda_, gpu->context);
    if (!inside.entered()) {
      stop_timing(*gpu);
      continue;
    }
    calibrate(*gpu);
    read(*gpu, last);
  }
  context_->batch.losses().dropped_records += refused_.exchange(0, std::memory_order_relaxed);
}

// Records an event on our own stream and asks until it is complete. Returns false if that takes long: the stream may wait
// behind work of the program.
bool NcclTimer::try_calibration(Gpu& gpu, void*& best, int64_t& middle, int64_t& width) {
  Call call{.gpu = &gpu};
  if (!take_events(gpu, call)) {
    forget_call(call);
    return false;
  }
  void* const event = std::exchange(call.begin, nullptr);
  const int64_t before = steady_ns();
  int64_t after = before;
  int answer = cuda_.event_record(event, gpu.own_stream);
  while (answer == 0) {
    answer = cuda_.event_query(event);
    after = steady_ns();
    if (answer != CudaEvents::kNotReady || after - before >= kPatience) break;
    answer = 0;
  }
  const bool complete = answer == 0 && after - before < kPatience;
  const bool better = complete && after - before < width;
  call.begin = better ? best : event;
  if (better) best = event, middle = before + (after - before) / 2, width = after - before;
  forget_call(call);
  return complete;
}

void NcclTimer::calibrate(Gpu& gpu) {
  void* best = nullptr;
  int64_t middle = 0, width = kUnknownWidth;
  for (int i = 0; i < kTries; ++i)
    if (!try_calibration(gpu, best, middle, width)) break;
  float ms = 0;
  if (!best) return;
  const Gpu::Anchor& newest = gpu.anchors.back();
  if (cuda_.event_elapsed(&ms, newest.event, best) != 0) return stop_timing(gpu);
  const double since = newest.gpu + std::round(1e6 * static_cast<double>(ms));
  gpu.add({best, middle, since, width, true});
  if (read_.load(std::memory_order_relaxed) == 0) context_->gpu_clock.width = width;
  if (gpu.anchors.size() <= kMostAnchors) return;
  forget_call({&gpu, nullptr, gpu.anchors.front().event, nullptr, 0});
  gpu.anchors.pop_front();
}

// Calls of one stream are complete in their order. Returns how many are, or nullopt after an error of the GPU.
std::optional<size_t> NcclTimer::completed(const std::vector<const Timed*>& of_stream) const {
  bool failed = false;
  const auto complete = [&](const Timed* timed) {
    const int answer = failed ? 0 : cuda_.event_query(timed->call.end);
    failed = failed || (answer != 0 && answer != CudaEvents::kNotReady);
    return answer == 0;
  };
  const bool all = complete(of_stream.back());
  const auto end = all ? of_stream.end() : std::ranges::partition_point(of_stream, complete);
  return failed ? std::nullopt : std::optional(static_cast<size_t>(end - of_stream.begin()));
}

void NcclTimer::read(Gpu& gpu, bool last) {
  {
    const std::lock_guard lock(mutex_);
    gpu.waiting.insert(gpu.waiting.end(), gpu.ended.begin(), gpu.ended.end());
    gpu.ended.clear();
  }
  // Without a reading of the clocks a call has a time, but no place. The first reading can come later.
  const bool places = last || gpu.waiting.size() >= kMostUnplaced || std::ranges::any_of(gpu.anchors, &Gpu::Anchor::sure);
  std::map<void*, std::vector<const Timed*>> streams;
  for (const Timed& timed : gpu.waiting) streams[timed.call.stream].push_back(&timed);
  std::unordered_set<const Timed*> drawn;
  for (const auto& [stream, calls] : streams) {
    const auto complete = completed(calls);
    if (!complete) return stop_timing(gpu);
    if (!places) continue;
    for (size_t i = 0; i < *complete; ++i) {
      const int answer = draw(gpu, *calls[i]);
      // One handle may stand for the default stream of each thread: a later call may be complete before an earlier one.
      if (answer == CudaEvents::kNotReady) continue;
      if (answer != 0) return stop_timing(gpu);
      forget_call(calls[i]->call);
      drawn.insert(calls[i]);
    }
  }
  std::deque<Timed> later;
  for (const Timed& timed : gpu.waiting)
    if (!drawn.contains(&timed)) later.push_back(timed);
  if (last) context_->batch.losses().dropped_records += later.size();
  gpu.waiting = std::move(later);
}

int NcclTimer::draw(Gpu& gpu, const Timed& timed) {
  const Call& call = timed.call;
  const auto after = std::ranges::find_if(gpu.anchors, [&](const auto& a) { return a.host > call.made; });
  const Gpu::Anchor& anchor = after == gpu.anchors.begin() ? *after : *std::prev(after);
  float since = 0, lasts = 0;
  if (const int answer = cuda_.event_elapsed(&since, anchor.event, call.begin); answer != 0) return answer;
  if (const int answer = cuda_.event_elapsed(&lasts, call.begin, call.end); answer != 0) return answer;
  auto at = std::ranges::find(gpu.streams, call.stream);
  if (at == gpu.streams.end()) at = gpu.streams.insert(at, call.stream);
  const auto stream = at - gpu.streams.begin();
  Detail detail;
  detail.bytes = timed.work.bytes;
  detail.copy_kind = NcclCalls::instance().text(timed.work);
  const std::string name = detail.copy_kind.substr(0, detail.copy_kind.find(" · "));
  BatchBuilder& batch = context_->batch;
  Span span;
  const Gpu::Place place = gpu.place(anchor.gpu + 1e6 * static_cast<double>(since));
  span.start = context_->from_steady(place.host);
  span.duration = static_cast<uint64_t>(std::max(0.0, 1e6 * static_cast<double>(lasts)));
  span.kind = static_cast<uint64_t>(SpanKind::Op);
  span.meaning = static_cast<uint64_t>(Meaning::Communication);
  span.op = timed.at.op;
  span.step = timed.at.step;
  span.name = batch.id(batch.name(name.empty() ? "NCCL" : name));
  span.detail = batch.id(batch.shape(detail));
  const std::string row = "collectives" + (stream > 0 ? ", stream " + std::to_string(stream + 1) : std::string());
  const int rank = context_->rank_of_gpu(static_cast<uint32_t>(gpu.number));
  batch.row(TrackKind::Collectives, row, "GPU " + std::to_string(gpu.number), 0, rank).spans.push_back(span);
  widths_ += place.width;
  context_->gpu_clock.width = static_cast<int64_t>(widths_ / static_cast<double>(read_.fetch_add(1, std::memory_order_relaxed) + 1));
  return 0;
}

// After an error of the GPU or the end of its context no event says anything more.
void NcclTimer::stop_timing(Gpu& gpu) {
  gpu.failed = true;
  const std::lock_guard lock(mutex_);
  context_->batch.losses().dropped_records += gpu.waiting.size() + gpu.ended.size();
  gpu.waiting.clear(), gpu.ended.clear();
}

int NcclTimer::device_number() const {
  const std::lock_guard lock(mutex_);
  return gpus_.empty() ? 0 : gpus_[0]->number;
}

GpuTracer::Device NcclTimer::device() const {
  {
    const std::lock_guard lock(mutex_);
    if (gpus_.empty()) return {};
  }
  char name[256] = {};
  int driver = 0, major = 0, minor = 0;
  const int device = device_number();
  if (cuda_.device_name(name, sizeof name, device) != 0) return {};
  cuda_.driver_version(&driver);
  cuda_.device_attribute(&major, CudaEvents::kMajor, device);
  cuda_.device_attribute(&minor, CudaEvents::kMinor, device);
  return {name, std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10),
          std::to_string(major) + "." + std::to_string(minor)};
}

}  // namespace ws::prof
