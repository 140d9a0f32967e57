#include "profiling/cupti/ring_copier.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/cupti/late_calls.h"

namespace ws::prof {
namespace {

constexpr int kOldAfter = 16;  // copies, about a second
constexpr size_t kMostBytes = size_t{1} << 30;

// Writes the timer again and again until the host answers in the next word, for 20 ms at most. At the end it writes all
// ones.
constexpr const char* kClockKernel = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry warpsight_clock(.param .u64 out)
{
  .reg .u64 %rd<5>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd3, %globaltimer;
  add.u64 %rd3, %rd3, 20000000;
again:
  mov.u64 %rd2, %globaltimer;
  st.volatile.global.u64 [%rd1], %rd2;
  membar.sys;
  ld.volatile.global.u64 %rd4, [%rd1+8];
  setp.ne.u64 %p1, %rd4, 0;
  @%p1 bra ended;
  setp.lt.u64 %p2, %rd2, %rd3;
  @%p2 bra again;
ended:
  mov.u64 %rd2, -1;
  st.volatile.global.u64 [%rd1], %rd2;
  ret;
}
)";

constexpr size_t kMostStreams = 64;
std::array<std::atomic<uint64_t>, kMostStreams> g_streams{};
std::atomic<size_t> g_stream_count{0};

uint64_t stream_key(uint32_t context, uint32_t stream) { return (uint64_t{context} << 32) | stream; }

bool done(cudaError_t result) {
  if (result != cudaSuccess) cudaGetLastError();
  return result == cudaSuccess;
}

// Another thread of the program may be capturing a graph.
class AllowedDuringCapture {
 public:
  AllowedDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~AllowedDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

bool launch_clock(cudaStream_t stream, uint64_t* out) {
  static cudaLibrary_t library = nullptr;  // RingCopier's mutex guards it
  cudaKernel_t kernel = nullptr;
  if (!library && !done(cudaLibraryLoadData(&library, kClockKernel, nullptr, nullptr, 0, nullptr, nullptr, 0)))
    return false;
  if (!done(cudaLibraryGetKernel(&kernel, library, "warpsight_clock"))) return false;
  void* arguments[] = {&out};
  return done(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, stream));
}

constexpr uint64_t kEnded = ~uint64_t{0};

// Returns globaltimer - steady clock, or nothing if the GPU does not answer soon. The host reads many times, because it
// may be interrupted between two readings.
std::optional<int64_t> try_clock(cudaStream_t stream, uint64_t* shared) {
  constexpr int64_t kAnswersWithin = 100'000'000;
  constexpr int kReadings = 300;
  volatile uint64_t *timer = shared, *enough = shared + 1;
  *timer = 0;
  *enough = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  const bool runs = launch_clock(stream, shared);
  const int64_t until = steady_ns() + kAnswersWithin;  // the first launch takes longer than that
  uint64_t before = 0;
  for (int readings = 0; runs && before != kEnded && steady_ns() < until;) {
    const uint64_t now = *timer;
    const int64_t here = steady_ns();
    if (now == before) continue;
    if (now != kEnded) least = std::min(least, here - static_cast<int64_t>(now));
    if (++readings == kReadings) *enough = 1;
    before = now;
  }
  *enough = 1;
  if (least == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return -least;
}

// The kernel ends by itself if the host comes late, as it may after the first launch: then it is launched again. If the
// GPU never answers, its timer is taken as set to the time of day.
int64_t measure_clock(cudaStream_t stream, uint64_t* shared) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    if (const std::optional<int64_t> offset = try_clock(stream, shared)) return *offset;
    if (*static_cast<volatile uint64_t*>(shared) != kEnded) break;  // it waits behind kernels that may never end
    if (!done(cudaStreamSynchronize(stream))) break;
  }
  timespec day{};
  clock_gettime(CLOCK_REALTIME, &day);
  return int64_t{day.tv_sec} * 1'000'000'000 + day.tv_nsec - steady_ns();
}

}  // namespace

struct RingCopier::Live {
  std::shared_ptr<const StampRing> about;
  char* memory = nullptr;
  char* pinned = nullptr;
  cudaStream_t stream = nullptr;
  uint32_t low = 0;                        // every segment before it is full
  std::array<uint32_t, kOldAfter> past{};  // segments reserved at the last copies
  size_t copies = 0;

  Live() = default;
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  ~Live() {
    if (stream) cudaStreamDestroy(stream);
    if (pinned) cudaFreeHost(pinned);
  }
  bool read(size_t to, size_t from, size_t bytes) {
    return done(cudaMemcpyAsync(pinned + to, memory + from, bytes, cudaMemcpyDeviceToHost, stream));
  }
  bool full(const char* segment, uint32_t number) const {
    warpsight::RangeStamp stamp;
    std::memcpy(&stamp, segment + about->segment_bytes() - sizeof stamp, sizeof stamp);
    return stamp.ticket == number + 1;
  }
};

bool OwnStreams::contain(uint32_t context, uint32_t stream) {
  const size_t count = std::min(g_stream_count.load(std::memory_order_acquire), kMostStreams);
  return std::any_of(g_streams.begin(), g_streams.begin() + static_cast<std::ptrdiff_t>(count),
                     [key = stream_key(context, stream)](const auto& own) { return own == key; });
}

CUcontext current_context() {
  using Current = CUresult (*)(CUcontext*);
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how{};
  CUcontext context = nullptr;
  if (!done(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &found, 4000, cudaEnableDefault, &how)) || !found) return nullptr;
  return reinterpret_cast<Current>(found)(&context) == CUDA_SUCCESS ? context : nullptr;
}

void OwnStreams::add(void* stream) {
  CUcontext context = current_context();
  uint32_t context_id = 0, stream_id = 0;
  if (!context) return;
  if (cuptiGetContextId(context, &context_id) != CUPTI_SUCCESS) return;
  if (cuptiGetStreamIdEx(context, static_cast<CUstream>(stream), 0, &stream_id) != CUPTI_SUCCESS) return;
  const size_t at = g_stream_count.load(std::memory_order_relaxed);
  if (at >= kMostStreams) return;
  g_streams[at] = stream_key(context_id, stream_id);
  g_stream_count.store(at + 1, std::memory_order_release);
}

RingCopier& RingCopier::instance() {
  static auto* copier = new RingCopier;  // never destroyed: the program may end in any way
  return *copier;
}

bool RingCopier::add(StampRing ring, void* memory) {
  const OwnCalls own;
  cudaPointerAttributes place{};
  const size_t bytes = sizeof(warpsight::RingHead) + ring.segments * ring.segment_bytes();
  if (bytes > kMostBytes || !done(cudaPointerGetAttributes(&place, memory)) || place.type != cudaMemoryTypeDevice)
    return false;
  ring.device = static_cast<uint32_t>(place.device);
  auto live = std::make_unique<Live>();
  live->memory = static_cast<char*>(memory);
  int before = 0;
  cudaGetDevice(&before);
  bool ready = done(cudaSetDevice(place.device)) &&
               done(cudaStreamCreateWithFlags(&live->stream, cudaStreamNonBlocking)) &&
               done(cudaMallocHost(reinterpret_cast<void**>(&live->pinned), bytes));
  const std::lock_guard lock(mutex_);
  if (ready) {
    OwnStreams::add(live->stream);
    ring.clock_offset = measure_clock(live->stream, reinterpret_cast<uint64_t*>(live->pinned));
    ring.number = ++made_;
    live->about = std::make_shared<const StampRing>(std::move(ring));
    rings_.push_back(std::move(live));
    RingBoard::instance().announce();
  }
  cudaSetDevice(before);
  return ready;
}

void RingCopier::remove(void* memory) {
  const std::lock_guard lock(mutex_);
  const OwnCalls own;
  std::erase_if(rings_, [this, memory](const auto& ring) {
    if (ring->memory != memory) return false;
    copy(*ring, true);
    return true;
  });
}

void RingCopier::copy(bool all) {
  const std::lock_guard lock(mutex_);
  if (rings_.empty()) return;
  const OwnCalls own;
  const AllowedDuringCapture allowed;
  // A ring that cannot be read now never can: its context is gone.
  std::erase_if(rings_, [all](const auto& ring) { return !copy(*ring, all); });
}

// Segments reserved more than a second ago are read once a second.
bool RingCopier::copy(Live& ring, bool all) {
  const size_t each = ring.about->segment_bytes(), head = sizeof(warpsight::RingHead);
  const uint32_t segments = ring.about->segments;
  if (!done(cudaSetDevice(static_cast<int>(ring.about->device))) || !ring.read(0, 0, head)) return false;
  if (!done(cudaStreamSynchronize(ring.stream))) return false;
  warpsight::RingHead now;
  std::memcpy(&now, ring.pinned, sizeof now);
  if (now.tickets - ring.low > segments) ring.low = now.tickets - segments;
  const size_t turn = ring.copies++ % kOldAfter;
  const uint32_t old = std::exchange(ring.past[turn], now.tickets);
  const bool from_low = all || turn == 0 || static_cast<int32_t>(old - ring.low) < 0;
  const uint32_t first = from_low ? ring.low : old, count = now.tickets - first, at = first % segments;
  if (count == 0) return true;
  const uint32_t straight = std::min(count, segments - at);
  if (!ring.read(0, head + at * each, straight * each)) return false;
  if (count > straight && !ring.read(straight * each, head, (count - straight) * each)) return false;
  if (!done(cudaStreamSynchronize(ring.stream))) return false;
  const auto* bytes = reinterpret_cast<const std::byte*>(ring.pinned);
  RingBoard::instance().add({ring.about, first, {bytes, bytes + count * each}});
  if (!from_low) return true;
  while (ring.low != now.tickets && ring.full(ring.pinned + (ring.low - first) * each, ring.low)) ++ring.low;
  return true;
}

}  // namespace ws::prof
