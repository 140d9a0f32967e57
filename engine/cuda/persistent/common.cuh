// Shared by all persistent kernels: PTX in small functions, waits with a time limit, rounding, activations, optimizers.
// The generated head of the source defines the constants in namespace `choice`.
#pragma once

namespace ws::cuda::persistent {

using uint = unsigned int;
using ulong = unsigned long long;
#define WS_DEVICE __device__ __forceinline__
#define WS_BOTH __host__ __device__

enum Activations { kNone, kRelu, kSigmoid, kTanh, kGelu };
enum Losses { kCrossEntropy, kMeanSquared };
enum Optimizers { kSgd, kMomentum, kAdam };
enum Precisions { kFp32, kTf32, kBf16, kFp16 };

// What a thread can wait for. The host has a sentence for each value.
enum Waits { kWaitRows = 1, kWaitPartials, kWaitGradients, kWaitHidden, kWaitWeights, kWaitBuffers, kWaitSums };

constexpr bool kHalves = choice::precision == kBf16 || choice::precision == kFp16;
constexpr bool kClasses = choice::loss == kCrossEntropy;
constexpr bool kMoves = choice::optimizer != kSgd, kSquares = choice::optimizer == kAdam;

// ---- shared memory and clusters ----
WS_DEVICE uint shared_address(const void* p) { return static_cast<uint>(__cvta_generic_to_shared(p)); }
WS_DEVICE float load_f(uint a) {
  float v;
  asm volatile("ld.shared.f32 %0,[%1];" : "=f"(v) : "r"(a) : "memory");
  return v;
}
WS_DEVICE uint load_u(uint a) {
  uint v;
  asm volatile("ld.shared.b32 %0,[%1];" : "=r"(v) : "r"(a) : "memory");
  return v;
}
WS_DEVICE uint load_half(uint a) {
  unsigned short v;
  asm volatile("ld.shared.b16 %0,[%1];" : "=h"(v) : "r"(a) : "memory");
  return v;
}
WS_DEVICE float4 load_f4(uint a) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(a) : "memory");
  return v;
}
WS_DEVICE uint4 load_u4(uint a) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(a) : "memory");
  return v;
}
WS_DEVICE void store_f(uint a, float v) { asm volatile("st.shared.f32 [%0],%1;" ::"r"(a), "f"(v) : "memory"); }
WS_DEVICE void store_u(uint a, uint v) { asm volatile("st.shared.b32 [%0],%1;" ::"r"(a), "r"(v) : "memory"); }
WS_DEVICE void store_f4(uint a, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(a), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
// A barrier for some warps of the block.
WS_DEVICE void warps_meet(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
// Like warps_meet. Returns true if the condition holds for any thread.
WS_DEVICE bool warps_meet_any(int id, int threads, bool condition) {
  uint out;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %3, 0;\nbar.red.or.pred q, %1, %2, p;\nselp.u32 %0, 1, 0, q;\n}\n"
               : "=r"(out)
               : "r"(id), "r"(threads), "r"(static_cast<uint>(condition))
               : "memory");
  return out;
}

#if __CUDA_ARCH__ >= 900
WS_DEVICE uint cluster_rank() {
  uint r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
// Returns the address of `a` in another block of the cluster.
WS_DEVICE uint in_block(uint a, uint rank) {
  uint out;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(rank));
  return out;
}
WS_DEVICE void cluster_meets() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Stores to another block, which count their bytes at a barrier there.
WS_DEVICE void send(uint a, uint barrier, float x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(a), "f"(x),
               "r"(barrier)
               : "memory");
}
WS_DEVICE void send2(uint a, uint barrier, uint x, uint y) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1,%2}, [%3];" ::"r"(a), "r"(x),
               "r"(y), "r"(barrier)
               : "memory");
}
WS_DEVICE void send4(uint a, uint barrier, uint x, uint y, uint z, uint w) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(a),
               "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
               : "memory");
}
// The same if a condition holds, without a branch.
WS_DEVICE void send2_if(bool sends, uint a, uint barrier, uint x, uint y) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\n"
      "@p st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1,%2}, [%3];\n}" ::"r"(a),
      "r"(x), "r"(y), "r"(barrier), "r"(static_cast<uint>(sends))
      : "memory");
}
WS_DEVICE void send4_if(bool sends, uint a, uint barrier, uint x, uint y, uint z, uint w) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %6, 0;\n"
      "@p st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];\n}" ::"r"(a),
      "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "r"(static_cast<uint>(sends))
      : "memory");
}
WS_DEVICE void barrier_init(uint a, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(a), "r"(arrivals) : "memory");
}
WS_DEVICE void barriers_are_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
WS_DEVICE void barrier_expect(uint a, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(a), "r"(bytes) : "memory");
}
WS_DEVICE void barrier_arrive(uint a) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(a) : "memory"); }
// Also for data that other blocks sent: a message counts its bytes at the barrier after it has written them to this
// block's shared memory. (An acquire at cluster scope would in addition discard the L1 cache, 0.1 µs each time.)
WS_DEVICE bool barrier_passed(uint a, uint parity) {
  uint passed;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0,1,0,p;\n}\n"
               : "=r"(passed)
               : "r"(a), "r"(parity)
               : "memory");
  return passed;
}

// Ends every wait of the block once one of them has exceeded its limit. The warps then leave together, the block stores
// no state, and the host reads the report.
struct Watch {
  volatile int* dead;  // in shared memory
  ulong limit;
  FaultReport* report;
};

// Reports the first wait that exceeded its limit.
static __device__ __noinline__ void time_out(volatile int* dead, FaultReport* report, int what, int step) {
  *dead = 1;
  if (atomicCAS_system(&report->code, 0u, static_cast<uint>(what)) != 0u) return;
  report->block = blockIdx.x;
  report->thread = threadIdx.x;
  report->step = static_cast<uint>(step);
  __threadfence_system();
}
// Returns false if the wait timed out.
static __device__ __noinline__ bool wait_on(volatile int* dead, ulong limit, FaultReport* report, uint barrier,
                                            uint parity, int what, int step) {
  const long long begin = clock64();
  while (!barrier_passed(barrier, parity)) {
    if (*dead) return false;
    if (static_cast<ulong>(clock64() - begin) < limit) continue;
    time_out(dead, report, what, step);
    return false;
  }
  return true;
}

WS_DEVICE bool wait(const Watch& watch, uint barrier, uint parity, int what, int step) {
#pragma unroll 1
  for (int i = 0; i < 64; ++i)
    if (barrier_passed(barrier, parity)) return true;
  return wait_on(watch.dead, watch.limit, watch.report, barrier, parity, what, step);
}

// ---- messages through the L2 cache, between all blocks of a grid ----
constexpr int kFlagBytes = 16384;  // the exchange buffer begins with flags; the data follows
// Writes a value and the number of its step. The eight bytes are written and read together.
WS_DEVICE void write_numbered(uint2* to, float value, uint number) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(to), "r"(__float_as_uint(value)), "r"(number)
               : "memory");
}
// The same for three values.
WS_DEVICE void write_packet(uint4* to, float x, float y, float z, uint number) {
  asm volatile(
      "{\n.reg .b64 l, h;\n.reg .b128 q;\nmov.b64 l, {%1,%2};\nmov.b64 h, {%3,%4};\nmov.b128 q, {l,h};\n"
      "st.relaxed.gpu.global.b128 [%0], q;\n}"
      :
      : "l"(to), "f"(x), "f"(y), "f"(z), "r"(number)
      : "memory");
}
// Polls until `ready` returns true. Returns false if the wait timed out.
template <class Ready>
WS_DEVICE bool wait_until(const Watch& watch, int what, int step, Ready ready) {
  long long begin = 0;
#pragma unroll 1
  for (int i = 0; !ready(); ++i) {
    if ((i & 63) != 63) continue;
    if (*watch.dead) return false;
    if (begin == 0) begin = clock64();
    if (static_cast<ulong>(clock64() - begin) < watch.limit) continue;
    time_out(watch.dead, watch.report, what, step);
    return false;
  }
  return true;
}
WS_DEVICE bool peek_numbered(const uint2* from, uint number, float& value) {
  uint bits, found;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];" : "=r"(bits), "=r"(found) : "l"(from) : "memory");
  value = __uint_as_float(bits);
  return found == number;
}
WS_DEVICE bool peek_packet(const uint4* from, uint number, float& x, float& y, float& z) {
  uint found;
  asm volatile(
      "{\n.reg .b64 l, h;\n.reg .b128 q;\nld.relaxed.gpu.global.b128 q, [%4];\nmov.b128 {l,h}, q;\n"
      "mov.b64 {%0,%1}, l;\nmov.b64 {%2,%3}, h;\n}"
      : "=f"(x), "=f"(y), "=f"(z), "=r"(found)
      : "l"(from)
      : "memory");
  return found == number;
}
// Four values that are written and read together.
WS_DEVICE void write_quad(uint4* to, const uint4& q) {
  asm volatile(
      "{\n.reg .b64 l, h;\n.reg .b128 q;\nmov.b64 l, {%1,%2};\nmov.b64 h, {%3,%4};\nmov.b128 q, {l,h};\n"
      "st.relaxed.gpu.global.b128 [%0], q;\n}"
      :
      : "l"(to), "r"(q.x), "r"(q.y), "r"(q.z), "r"(q.w)
      : "memory");
}
WS_DEVICE uint4 read_quad(const uint4* from) {
  uint4 q;
  asm volatile(
      "{\n.reg .b64 l, h;\n.reg .b128 q;\nld.relaxed.gpu.global.b128 q, [%4];\nmov.b128 {l,h}, q;\n"
      "mov.b64 {%0,%1}, l;\nmov.b64 {%2,%3}, h;\n}"
      : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
      : "l"(from)
      : "memory");
  return q;
}
WS_DEVICE uint read_word(const uint* from) {
  uint v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
// Like wait_until, for a whole warp: its lanes leave together. Products on tensor cores and barriers of the block need
// that; lanes that leave one after the other can hang them.
template <class Ready>
WS_DEVICE bool warp_waits_until(const Watch& watch, int what, int step, Ready ready) {
  long long begin = 0;
#pragma unroll 1
  for (int i = 0; !__all_sync(~0u, ready()); ++i) {
    if ((i & 63) != 63) continue;
    if (__any_sync(~0u, *watch.dead)) return false;
    if (begin == 0) begin = clock64();
    if (!__any_sync(~0u, static_cast<ulong>(clock64() - begin) >= watch.limit)) continue;
    time_out(watch.dead, watch.report, what, step);
    __syncwarp();
    return false;
  }
  return true;
}
// A flag holds the number of the last step whose data is ready. One thread writes it after a barrier of its block.
WS_DEVICE void raise(uint* flag, uint number) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(number) : "memory");
}
WS_DEVICE bool wait_for_flag(const Watch& watch, const uint* flag, uint number, int what, int step) {
  return wait_until(watch, what, step, [&] {
    uint found;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
    return found - number < 1u << 20;
  });
}

// ---- values tagged with their step ----
// If operands are rounded, the last bits of a value carry a tag of its step. The reader polls the value until the tag
// is right, so no flag has to follow. fp32 needs all bits, so it uses flags.
constexpr bool kTagged = choice::precision != kFp32;
WS_DEVICE uint tag_of(uint number) { return 1 + number % 255; }
WS_DEVICE float tagged(float v, uint tag) { return __uint_as_float((__float_as_uint(v) & ~255u) | tag); }
WS_DEVICE bool has_tag(const uint4& q, uint tag) {
  return ((q.x ^ tag) & 255u) == 0 && ((q.y ^ tag) & 255u) == 0 && ((q.z ^ tag) & 255u) == 0 && ((q.w ^ tag) & 255u) == 0;
}
WS_DEVICE uint4 far_words(const float* p) {
  uint4 q;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "l"(p) : "memory");
  return q;
}
WS_DEVICE void set_far(float* p, float4 v, uint tag) {
  if constexpr (kTagged) v = make_float4(tagged(v.x, tag), tagged(v.y, tag), tagged(v.z, tag), tagged(v.w, tag));
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
// The same in half the bytes, rounded to bf16: the range of a float, eight bits of precision. The last bits of two
// values carry a tag.
WS_DEVICE void set_far(uint2* p, const float4& v, uint number) {
  uint x, y;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(x) : "f"(v.y), "f"(v.x));
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(y) : "f"(v.w), "f"(v.z));
  x = (x & ~1u) | (number & 1u), y = (y & ~1u) | (number >> 1 & 1u);
  asm volatile("{\n.reg .b64 q;\nmov.b64 q, {%1,%2};\nst.relaxed.gpu.global.b64 [%0], q;\n}" ::"l"(p), "r"(x), "r"(y)
               : "memory");
}
WS_DEVICE bool has_tag(const uint2& q, uint number) { return ((q.x ^ number) & 1u) == 0 && ((q.y ^ number >> 1) & 1u) == 0; }
WS_DEVICE uint2 far_words(const uint2* p) {
  uint2 q;
  asm volatile("{\n.reg .b64 q;\nld.relaxed.gpu.global.b64 q, [%2];\nmov.b64 {%0,%1}, q;\n}" : "=r"(q.x), "=r"(q.y) : "l"(p) : "memory");
  return q;
}
// The bit that the tag took counts as a half. If it counted as zero, every gradient would be a little too small.
WS_DEVICE float low_half_of(uint q) { return __uint_as_float(__byte_perm(q, 0x8000u, 0x1054) & 0xfffeffffu); }
WS_DEVICE float4 values_of(const uint2& q) {
  return make_float4(low_half_of(q.x), __uint_as_float(q.x & 0xffff0000u), low_half_of(q.y),
                     __uint_as_float(q.y & 0xffff0000u));
}
// Reads N times four values at `from(i)`, which returns an address or null.
template <class Words, int N, class From>
WS_DEVICE void load_far(Words (&words)[N], From from) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    words[i] = Words{};
    if (const auto* p = from(i)) words[i] = far_words(p);
  }
}
template <class Words, int N, class From>
WS_DEVICE bool have_tag(const Words (&words)[N], uint tag, From from) {
  bool all = true;
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (kTagged && from(i)) all &= has_tag(words[i], tag);
  return all;
}
// Reads until all values of a warp have the tag. `loaded`: load_far has read them before. Returns false if the wait timed out.
template <class Words, int N, class From>
WS_DEVICE bool read_far(const Watch& watch, uint tag, int what, int step, Words (&words)[N], From from, bool loaded = false) {
  if (!loaded) load_far(words, from);
  return warp_waits_until(watch, what, step, [&] {
    if (have_tag(words, tag, from)) return true;
    load_far(words, from);
    return false;
  });
}
// Drops the tags. They count the steps of this process, so a training that resumes would else end with other bits.
WS_DEVICE float4 values_of(const uint4& q) {
  constexpr uint kept = kTagged ? ~255u : ~0u;
  return make_float4(__uint_as_float(q.x & kept), __uint_as_float(q.y & kept), __uint_as_float(q.z & kept),
                     __uint_as_float(q.w & kept));
}

WS_DEVICE void copy16(uint to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
WS_DEVICE void copy4(uint to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
WS_DEVICE void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Left>
WS_DEVICE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}
// Makes ordinary stores to shared memory visible to wgmma.
WS_DEVICE void stores_for_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Describes an operand of wgmma in shared memory. `along_k`, `across_k`: bytes from one core matrix to the next.
WS_DEVICE ulong matrix(uint address, uint along_k, uint across_k) {
  return static_cast<ulong>((address & 0x3FFFF) >> 4) | (static_cast<ulong>(along_k >> 4) << 16) |
         (static_cast<ulong>(across_k >> 4) << 32);
}
#endif

// Keeps a value in its register. Otherwise the compiler would read the special register again in every step, which
// takes as long as a message (0.1 µs on an H200).
WS_DEVICE int kept(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

// The low 32 bits of the multiprocessor's clock. Differences are right if they are unsigned, as the counter wraps.
WS_DEVICE uint cycles() {
  uint v;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(v)::"memory");
  return v;
}

// ---- stamps ----
// Records when its lane begins each part of a step. One thread writes. Without choice::stamps none of it is compiled.
class StampLane {
 public:
  WS_DEVICE StampLane(const Arguments& a, int lane, bool writes) : writes_(writes) {
    if constexpr (!choice::stamps) return;
    if (!writes_) return;
    head_ = a.stamp_heads + lane;
    next_ = first_ = a.stamps + static_cast<size_t>(lane) * a.stamps_each;
    last_ = next_ + a.stamps_each;
    steps_ = a.stamped_steps;
    head_->begin_ns = nanoseconds();
    head_->begin_clock = cycles();
    asm("mov.u32 %0, %%smid;" : "=r"(head_->multiprocessor));
  }
  // Also records the start of the step after the last stamped one, which ends the last part.
  WS_DEVICE void begin(int step, int part, int which = 0) {
    if constexpr (!choice::stamps) return;
    if (!writes_ || step > steps_ || next_ == last_) return;
    const uint what = static_cast<uint>(step << 8 | part << 4 | which);
    asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(next_), "r"(cycles()), "r"(what) : "memory");
    ++next_;
    if (part != kPartWait) part_ = what;
  }
  // Records that the part interrupted by a wait continues.
  WS_DEVICE void resume() {
    if constexpr (!choice::stamps) return;
    begin(static_cast<int>(part_ >> 8), static_cast<int>(part_ >> 4 & 15), static_cast<int>(part_ & 15));
  }
  WS_DEVICE void end(int steps) {
    if constexpr (!choice::stamps) return;
    begin(steps, kPartEnd);
    if (!writes_) return;
    head_->end_clock = cycles();
    head_->end_ns = nanoseconds();
    head_->count = static_cast<uint>(next_ - first_);
  }

 private:
  WS_DEVICE static ulong nanoseconds() {
    ulong v;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v)::"memory");
    return v;
  }

  bool writes_;
  StampHead* head_ = nullptr;
  Stamp *next_ = nullptr, *first_ = nullptr, *last_ = nullptr;
  int steps_ = 0;
  uint part_ = 0;
};

// ---- rounding of operands ----
WS_DEVICE uint half_pair(float low, float high) {
  uint v;
  if constexpr (choice::precision == kBf16)
    asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(v) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}
WS_DEVICE uint fp16_pair(float low, float high) {
  uint v;
  asm("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}
// Like fp16_pair, but a value that is too large becomes the largest finite number.
WS_DEVICE uint fp16_pair_limited(float low, float high) {
  uint v;
  asm("cvt.rn.satfinite.f16x2.f32 %0,%1,%2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}
WS_DEVICE float fp16_low(uint pair) {
  float v;
  asm("{.reg .b16 l,h;\nmov.b32 {l,h},%1;\ncvt.f32.f16 %0,l;\n}" : "=f"(v) : "r"(pair));
  return v;
}
// The value of 16 bits in the low half of a word.
WS_DEVICE float from_half(uint low) { return choice::precision == kBf16 ? __uint_as_float(low << 16) : fp16_low(low); }
WS_DEVICE float fp16_high(uint pair) {
  float v;
  asm("{.reg .b16 l,h;\nmov.b32 {l,h},%1;\ncvt.f32.f16 %0,h;\n}" : "=f"(v) : "r"(pair));
  return v;
}
// Returns a byte of ones or zeros for each of the bytes that Select names, by their sign. `Select` has 4 bits for each: 8
// and the number of a byte of the first or, from 4 on, of the second word.
template <uint Select>
WS_DEVICE uint signs_of_bytes(uint first, uint second) {
  uint v;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(first), "r"(second), "n"(Select));
  return v;
}
WS_DEVICE void add_zero_times(uint& sum, uint pair) {
  asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(0u));
}
// The tensor cores drop the low 13 bits of a tf32 operand. Adding half a unit of the last kept bit makes that rounding.
WS_DEVICE float to_tf32(float v) { return __uint_as_float(__float_as_uint(v) + 0x1000u); }
// Returns, as a float, the value that products of this precision use.
WS_DEVICE float rounded(float v) {
  if constexpr (choice::precision == kFp16) return fp16_low(fp16_pair(v, 0.f));
  if constexpr (choice::precision == kBf16) return __uint_as_float(half_pair(v, 0.f) << 16);
  if constexpr (choice::precision == kTf32) return to_tf32(v);
  return v;
}
// fp32 is split into two tf32 values: the tensor cores read the upper one from v; this returns the rest.
WS_DEVICE float below_tf32(float v) { return to_tf32(v - __uint_as_float(__float_as_uint(v) & 0xffffe000u)); }

// ---- mma.sync m16n8k8 ----
WS_DEVICE void mma_tf32(float (&c)[4], uint a0, uint a1, uint a2, uint a3, uint b0, uint b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// The same with 16 values of k, in fp16 or bf16.
WS_DEVICE void mma_halves(float (&c)[4], const uint (&a)[4], uint b0, uint b1) {
  if constexpr (choice::precision == kBf16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
WS_DEVICE uint bits(float v) { return __float_as_uint(v); }
// c += a·b. Operands are already rounded. fp32 operands are split into two tf32 values each.
WS_DEVICE void multiply(float (&c)[4], const float (&a)[4], float b0, float b1) {
  if constexpr (choice::precision == kFp32) {
    const float lb0 = below_tf32(b0), lb1 = below_tf32(b1);
    mma_tf32(c, bits(below_tf32(a[0])), bits(below_tf32(a[1])), bits(below_tf32(a[2])), bits(below_tf32(a[3])),
             bits(b0), bits(b1));
    mma_tf32(c, bits(a[0]), bits(a[1]), bits(a[2]), bits(a[3]), bits(lb0), bits(lb1));
  }
  mma_tf32(c, bits(a[0]), bits(a[1]), bits(a[2]), bits(a[3]), bits(b0), bits(b1));
}

// ---- functions ----
WS_DEVICE float exp_of(float x) {
  if constexpr (choice::precision == kFp32) return expf(x);
  float v;  // unlike __expf, results below 1.2e-38 become zero
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x * 1.4426950408889634f));
  return v;
}
WS_DEVICE float inverse_of(float x) {
  float v;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}
WS_DEVICE float log_of(float x) { return choice::precision == kFp32 ? logf(x) : __logf(x); }

WS_DEVICE float tanh_of(float z) {
  if constexpr (choice::precision == kFp32) return tanhf(z);
  return 1.f - __fdividef(2.f, 1.f + __expf(2.f * fminf(z, 20.f)));
}
WS_DEVICE float sigmoid_of(float z) {
  if constexpr (choice::precision == kFp32) return 1.f / (1.f + expf(-z));
  return __fdividef(1.f, 1.f + __expf(-fmaxf(z, -80.f)));
}
constexpr float kGeluA = 0.7978845608028654f, kGeluB = 0.044715f;  // tanh form
WS_DEVICE float activated(float z) {
  if constexpr (choice::activation == kRelu) return z > 0.f ? z : (z != z ? z : 0.f);
  if constexpr (choice::activation == kSigmoid) return sigmoid_of(z);
  if constexpr (choice::activation == kTanh) return tanh_of(z);
  if constexpr (choice::activation == kGelu) return 0.5f * z * (1.f + tanh_of(kGeluA * (z + kGeluB * z * z * z)));
  return z;
}
// Returns f'(z), where h = f(z).
WS_DEVICE float slope_at(float z, float h) {
  if constexpr (choice::activation == kRelu) return h > 0.f ? 1.f : 0.f;
  if constexpr (choice::activation == kSigmoid) return h * (1.f - h);
  if constexpr (choice::activation == kTanh) return 1.f - h * h;
  if constexpr (choice::activation == kGelu) {
    const float t = tanh_of(kGeluA * (z + kGeluB * z * z * z));
    return 0.5f * (1.f + t) + 0.5f * z * (1.f - t * t) * kGeluA * (1.f + 3.f * kGeluB * z * z);
  }
  return 1.f;
}

// ---- optimizer ----
// Values that are equal for all elements of a step.
struct StepFactors {
  float lr, unscale, correction1, correction2;
};
WS_DEVICE StepFactors step_factors(const Arguments& a, float lr, float unscale, long long step) {
  StepFactors f{lr, unscale, 1.f, 1.f};
  if constexpr (choice::optimizer == kAdam) {
    const float t = static_cast<float>(step + 1);
    f.correction1 = lr / (1.f - powf(a.beta1, t));
    f.correction2 = 1.f / sqrtf(1.f - powf(a.beta2, t));
  }
  return f;
}
WS_DEVICE void move(const Arguments& a, const StepFactors& f, bool decays, float& w, float& m, float& v,
                    float gradient) {
  if constexpr (choice::precision == kFp16 && choice::optimizer == kSgd && !choice::decays) {
    // The same bits as below, as unscale is a power of two.
    w -= f.lr * f.unscale * gradient;
    return;
  }
  float g = choice::precision == kFp16 ? gradient * f.unscale : gradient;
  if constexpr (choice::decays) g += decays ? a.weight_decay * w : 0.f;
  if constexpr (choice::optimizer == kSgd) w -= f.lr * g;
  if constexpr (choice::optimizer == kMomentum) {
    m = a.momentum * m + g;
    w -= f.lr * m;
  }
  if constexpr (choice::optimizer == kAdam) {
    m = a.beta1 * m + (1.f - a.beta1) * g;
    v = a.beta2 * v + (1.f - a.beta2) * g * g;
    // Both are accurate to about two units in the last place, and w changes only a little.
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v));
    w -= __fdividef(f.correction1 * m, root * f.correction2 + a.epsilon);
  }
}

// The dynamic loss scale. Every thread keeps a copy, because every thread gets every verdict.
struct LossScaling {
  float scale = 1.f, inverse = 1.f;
  int good = 0, skipped = 0, found = 0;
  WS_DEVICE void load(const Arguments& a) {
    if (choice::precision == kFp16) scale = a.scale->scale, good = a.scale->good_steps, skipped = a.scale->skipped;
    inverse = 1.f / scale;
  }
  // Scale is 2^n.
  WS_DEVICE float inverse_of_scale() const { return __uint_as_float(0x7f000000u - __float_as_uint(scale)); }
  WS_DEVICE void decide(bool bad) {
    inverse = inverse_of_scale();
    found = bad;
    if (bad) {
      scale = fmaxf(scale * 0.5f, 1.f);
      good = 0;
      skipped += 1;
    } else if (++good == 2000) {
      scale *= 2.f;
      good = 0;
    }
  }
  WS_DEVICE void store(const Arguments& a) const { *a.scale = {scale, inverse, good, found, skipped}; }
};

// Reads the ring of learning rates, one step ahead.
struct Rates {
  const Arguments& a;
  int at;
  float next;
  WS_DEVICE explicit Rates(const Arguments& args)
      : a(args), at(static_cast<int>(args.first_step % args.ring)), next(args.rates[at]) {}
  WS_DEVICE float take() {
    const float rate = next;
    at = at + 1 == static_cast<int>(a.ring) ? 0 : at + 1;
    next = a.rates[at];
    return rate;
  }
};

// Loads the number of a row. It is not used here, so the load can stay in flight.
WS_DEVICE void find_row(const Arguments& a, long long place, uint& row) {
  row = static_cast<uint>(place);
  if (a.order) row = a.order[place];
}
WS_DEVICE long long row_index(const Arguments& a, long long place) {
  return a.order ? static_cast<long long>(a.order[place]) : place;
}

// Adds the sums of `blocks` blocks, always in the same order. `each`: blocks that have a place for their sums.
WS_DEVICE void write_metrics(const Arguments& a, int threads, int blocks, int each) {
  for (int s = static_cast<int>(threadIdx.x); s < a.steps; s += threads) {
    float loss = 0.f, correct = 0.f;
    for (int i = 0; i < blocks; ++i) {
      loss += __ldcg(a.partials + (static_cast<size_t>(s) * each + i) * 2);
      correct += __ldcg(a.partials + (static_cast<size_t>(s) * each + i) * 2 + 1);
    }
    float* out = a.metrics + 3 * ((a.first_step + s) % a.ring);
    out[0] = loss, out[1] = correct, out[2] = static_cast<float>(a.batch);
  }
}

}  // namespace ws::cuda::persistent
