// Names what a CUDA kernel does inside. `warpsight record -- program` shows the ranges as lanes by multiprocessor.
// Copy this one file into any program: C++17, nvcc or NVRTC, no dependency. Host code that another compiler builds
// includes <cuda_runtime_api.h> first.
//
//   __global__ void kernel(float* x, warpsight::Ranges ranges) {
//     ranges.begin(0);                          // the first name; or warpsight::Range load(ranges, 0);
//     ...
//     ranges.end(0);
//   }
//   warpsight::KernelRanges inside({"load", "multiply", "store"});     // lives longer than the launches
//   kernel<<<blocks, threads>>>(x, inside.ranges());
//
// Cost. Not recorded: one uniform branch for each begin or end, and no memory. Recorded: a block reserves a segment at
// its first stamp, by one atomic addition. Each stamp then reads two clocks and stores 16 bytes; nobody waits for the
// store. On an H200 a begin or end takes 15 to 22 ns when not recorded and 56 to 66 ns when recorded, in a block that
// does nothing else meanwhile (tests/gpu/kernel_ranges_gpu_test). WARPSIGHT_NO_RANGES compiles everything out.
//
// Who writes. Thread 0 of each block, or lane 0 of each warp that calls (Each::Warp). That thread has to take part.
// Ranges may nest; a lane shows the innermost one. A range without any stamp inside must be shorter than 4 s.
//
// Layout of a ring: RingHead, then `segments` segments. A segment is a RangeSegment and `stamps` RangeStamps. Segment t
// of all that were ever reserved lies at place t % segments, so the newest stay. Each stamp names its ticket (t + 1),
// so a reader sees which ones belong to the segment's present owner.
#pragma once

#if defined(__CUDACC__)
#define WARPSIGHT_DEVICE __device__ __forceinline__
#endif

namespace warpsight {

constexpr unsigned kRingVersion = 1;

struct RingHead {
  unsigned tickets;   // segments reserved so far
  unsigned segments;  // only in rings of the Python package
  unsigned unused[14];
};
struct RangeSegment {
  unsigned long long ns;  // globaltimer when it was reserved
  unsigned clock;         // %clock at the same time
  unsigned ticket;        // number of the reservation + 1
  unsigned block, warp, multiprocessor;
  unsigned before;  // stamps that the same writer put into earlier segments during this launch
};
struct RangeStamp {
  unsigned clock, ns;  // low halves of %clock64 and globaltimer
  unsigned ticket;
  unsigned what;  // 2 · name; + 1 for an end
};
static_assert(sizeof(RingHead) == 64 && sizeof(RangeSegment) == 32 && sizeof(RangeStamp) == 16, "a fixed layout");

// What a program reports to the recorder. Names are copied.
struct Ring {
  unsigned version, name_count;
  void* memory;  // on the GPU, zero at first
  unsigned segments, stamps;  // segments: a power of two
  unsigned by_warp;           // 1: warps write, 0: blocks
  const char* const* names;
};

// Passed to a kernel by value.
class Ranges {
 public:
#if !defined(__CUDACC_RTC__)
  Ranges() = default;
  Ranges(void* ring, unsigned segments, unsigned stamps, unsigned thread_mask)
      : ring_(static_cast<char*>(ring)), segments_(segments), stamps_(stamps), thread_mask_(thread_mask) {}
#endif

#if defined(__CUDACC__)
  WARPSIGHT_DEVICE void begin(unsigned name) { stamp(2 * name); }
  WARPSIGHT_DEVICE void end(unsigned name) { stamp(2 * name + 1); }

 private:
  WARPSIGHT_DEVICE void stamp(unsigned what) {
#if !defined(WARPSIGHT_NO_RANGES)
    if (!ring_) return;
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (thread & thread_mask_) return;
    if (left_ == 0) reserve(thread / 32);
    unsigned clock, ns;
    asm volatile("mov.u32 %0, %%clock;\n\tmov.u32 %1, %%globaltimer_lo;" : "=r"(clock), "=r"(ns)::"memory");
    *next_++ = make_uint4(clock, ns, ticket_, what);
    --left_, ++written_;
#else
    (void)what;
#endif
  }
  WARPSIGHT_DEVICE void reserve(unsigned warp) {
    ticket_ = atomicAdd(&reinterpret_cast<RingHead*>(ring_)->tickets, 1u) + 1;
    const unsigned long long each = sizeof(RangeSegment) + sizeof(RangeStamp) * static_cast<unsigned long long>(stamps_);
    auto* to = reinterpret_cast<uint4*>(ring_ + sizeof(RingHead) + each * ((ticket_ - 1) % segments_));
    unsigned clock, multiprocessor;
    unsigned long long ns;
    asm volatile("mov.u32 %0, %%clock;\n\tmov.u64 %1, %%globaltimer;\n\tmov.u32 %2, %%smid;"
                 : "=r"(clock), "=l"(ns), "=r"(multiprocessor));
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    to[0] = make_uint4(static_cast<unsigned>(ns), static_cast<unsigned>(ns >> 32), clock, ticket_);
    to[1] = make_uint4(block, warp, multiprocessor, written_);
    next_ = to + 2;
    left_ = stamps_;
  }
#endif

 private:
  // Only device code uses these, which clang does not see in host code.
  [[maybe_unused]] char* ring_ = nullptr;
  [[maybe_unused]] unsigned segments_ = 1, stamps_ = 0, thread_mask_ = 0;
#if defined(__CUDACC__)
  uint4* next_ = nullptr;
#else
  [[maybe_unused]] void* next_ = nullptr;
#endif
  [[maybe_unused]] unsigned left_ = 0, ticket_ = 0, written_ = 0;
};

#if defined(__CUDACC__)
// A range from here to the end of the scope.
class Range {
 public:
  WARPSIGHT_DEVICE Range(Ranges& ranges, unsigned name) : ranges_(ranges), name_(name) { ranges_.begin(name_); }
  WARPSIGHT_DEVICE ~Range() { ranges_.end(name_); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Ranges& ranges_;
  unsigned name_;
};
#endif

}  // namespace warpsight

#if !defined(__CUDACC_RTC__) && (defined(__CUDACC__) || defined(__CUDA_RUNTIME_API_H__))
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace warpsight {

enum class Each { Block, Warp };

// A ring of stamps on the current GPU, and the names of its ranges. Does nothing if the program is not recorded.
class KernelRanges {
 public:
  // `capacity`: stamps that fit between two readings, which are 60 ms apart; older ones are overwritten.
  // `stamps`: stamps of a segment. A block that writes no more than that reserves memory once.
  explicit KernelRanges(const std::vector<std::string>& names, Each each = Each::Block, unsigned capacity = 1u << 18,
                        unsigned stamps = 254) {
#if !defined(WARPSIGHT_NO_RANGES)
    const auto add = reinterpret_cast<int (*)(const Ring*)>(recorder("warpsight_ring_add"));
    if (!add || stamps == 0) return;
    unsigned segments = 1;
    while (segments * 2ull * stamps <= capacity) segments *= 2;
    const auto bytes = sizeof(RingHead) + segments * (sizeof(RangeSegment) + sizeof(RangeStamp) * size_t{stamps});
    if (cudaMalloc(&memory_, bytes) != cudaSuccess) memory_ = nullptr, cudaGetLastError();
    if (!memory_) return;
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    const Ring ring{kRingVersion, static_cast<unsigned>(texts.size()), memory_, segments, stamps, each == Each::Warp, texts.data()};
    if (cudaMemset(memory_, 0, bytes) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess || !add(&ring)) return;
    ranges_ = Ranges(memory_, segments, stamps, each == Each::Warp ? 31u : ~0u);
#else
    static_cast<void>(names);
    static_cast<void>(each);
    static_cast<void>(capacity);
    static_cast<void>(stamps);
#endif
  }
  // Waits for the GPU, as cudaFree does, so that the last stamps are read.
  ~KernelRanges() {
    if (!memory_) return;
    const auto remove = reinterpret_cast<void (*)(void*)>(recorder("warpsight_ring_remove"));
    if (cudaDeviceSynchronize() == cudaSuccess && remove) remove(memory_);
    cudaFree(memory_);
  }
  KernelRanges(const KernelRanges&) = delete;
  KernelRanges& operator=(const KernelRanges&) = delete;

  const Ranges& ranges() const { return ranges_; }

 private:
  // The driver loads the recorder's library when it starts.
  static void* recorder(const char* function) {
    const char* path = std::getenv("CUDA_INJECTION64_PATH");
    if (!path || cudaFree(nullptr) != cudaSuccess) return nullptr;
    void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    void* found = library ? dlsym(library, function) : nullptr;
    if (library) dlclose(library);  // the driver keeps it
    return found;
  }

  void* memory_ = nullptr;
  Ranges ranges_;
};

}  // namespace warpsight
#endif
