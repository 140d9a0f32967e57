// A kernel for a network with one hidden layer of up to 128 units whose batch is the whole data set. The rows do not fit
// on the chip: they flow through all multiprocessors twice a step, in 16 bits.
//
//   1. Forward: a block takes 256 rows at a time. It multiplies them by W1, which comes from the L2 cache, and computes
//      units, outputs, losses and the gradients of the units. These stay in the L2 cache.
//   2. Backward: a block takes a part of the rows and a slice of the inputs. It multiplies the rows by the gradients of
//      the units and keeps the sums in registers.
//   3. Update: each block adds the sums of all blocks for its share of the weights, in a fixed order, and moves them.
//
// All blocks meet after each part. Eight warps compute; one thread of another warp group, which leaves its
// registers to them, copies rows ahead, also while the blocks meet.
//
// With precision tf32 the operands are fp16, which keeps as many bits of a value, but fewer powers of two. Each kind of
// operand is therefore multiplied by a power of two that brings the largest possible value just below the largest fp16
// number. A value that is 2^29 times smaller still has all its bits. These powers depend on the weights of the step
// only, so two runs have the same bits.
#pragma once

namespace ws::cuda::persistent {

constexpr int kMath = 256, kThreads = kMath + 128, kWarps = kMath / 32;
constexpr int H = 128, O = choice::outputs, kOutputs = 16;
constexpr int kBlocks = choice::blocks, kSlices = choice::slices, kParts = choice::row_parts;
constexpr int kColumns = choice::columns, kSlice = choice::slice_columns, kTiles = kSlice / 8;
constexpr int kGroupRows = 64, kGroups = choice::groups, kRounds = (kGroups + 3) / 4;
constexpr int kChunk = kGroupRows * 16;  // bytes: eight columns of the rows of a group
constexpr int kGroupBytes = kColumns / 8 * kChunk, kHiddenBytes = H / 8 * kChunk;
// A forward stage: 32 columns of four groups, and of W1. A backward stage: the slice of a group, and its gradients.
constexpr int kStageColumns = 32, kForwardRows = kStageColumns / 8 * kChunk, kForwardWeights = kStageColumns * H * 2;
constexpr int kForwardBytes = 4 * kForwardRows + kForwardWeights, kForwardStages = choice::stage_bytes / kForwardBytes;
constexpr int kBackwardRows = kTiles * kChunk, kBackwardBytes = kBackwardRows + kHiddenBytes;
constexpr int kBackwardStages = choice::stage_bytes / kBackwardBytes, kForwardSteps = kColumns / kStageColumns;
// Shares of the weights. A pair is two inputs of a hidden unit, as a thread has them after the backward products. A row
// of the top layer has the 16 padded outputs of a hidden unit; the last row has the biases.
constexpr int kPairs = kSlices * kTiles * 2 * kMath, kOwnPairs = (kPairs + kBlocks - 1) / kBlocks;
constexpr int kTopRows = H + 1, kOwnTopRows = (kTopRows + kBlocks - 1) / kBlocks, kTopSums = kTopRows * kOutputs;
constexpr int kMoments = kMoves + kSquares;
constexpr int kSenders = kRounds < kBlocks ? kRounds : kBlocks;  // blocks that run rows forward
constexpr bool kScaled = choice::precision == kTf32;
constexpr bool kRelus = choice::activation == kRelu, kSlopes = !kRelus && choice::activation != kNone;
constexpr bool kBounded = choice::activation == kSigmoid || choice::activation == kTanh;

// What backward needs of the 64 units of a thread: pairs of slopes in fp16, or with relu the units.
using Slopes = uint[H / 16][4];

enum Meetings { kBegin, kBeginAgain, kForwardEnds, kBackwardEnds, kMoved, kMovedAgain, kEnd, kMeetings = 8 };

// ---- copies by the bulk engine ----
WS_DEVICE void copy_bulk(uint to, const void* from, int bytes, uint barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
// The same for rows, which leave the L2 cache before other data does.
WS_DEVICE void copy_rows(uint to, const void* from, int bytes, uint barrier, ulong policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}
WS_DEVICE ulong leaves_first() {
  ulong policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// Makes ordinary stores visible to the bulk engine and the tensor cores, in shared and in global memory.
WS_DEVICE void stores_for_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }

// Keeps code that reads sums behind the wait for their product.
template <int N>
WS_DEVICE void sums_are_ready(float (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
WS_DEVICE void store_matrices(uint address, const uint (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

// ---- powers of two ----
WS_DEVICE float power_of_two(int e) { return __int_as_float((min(max(e, -126), 127) + 127) << 23); }
// The smallest e for which the value is below 2^e.
WS_DEVICE int exponent_above(uint bits) { return max(static_cast<int>(bits >> 23) - 126, -60); }
WS_BOTH constexpr int min_of(int a, int b) { return a < b ? a : b; }
WS_BOTH constexpr int ceil_log2(int n) { return n <= 1 ? 0 : 1 + ceil_log2((n + 1) / 2); }

// Factors that bring operands into the range of fp16, and take the powers out of the sums.
struct Scales {
  int first = -1000, top = -1000;  // exponents above the weights of both layers
  float weights, sums, units, top_weights, top_sums, gradient, top_gradient;
  // True if the factors have changed.
  WS_DEVICE bool set(uint first_bits, uint top_bits) {
    const int f = kScaled ? exponent_above(first_bits) : 0, t = kScaled ? exponent_above(top_bits) : 0;
    if (f == first && t == top) return false;
    first = f, top = t;
    const int h = kBounded ? 0 : f + choice::row_exponent + ceil_log2(kColumns);  // above all units
    const auto factor = [](int e) { return kScaled ? power_of_two(e) : 1.f; };
    weights = factor(15 - f), top_weights = factor(15 - t), units = factor(15 - h);
    sums = factor(f + choice::row_exponent - 30), top_sums = factor(h + t - 30);
    gradient = factor(choice::row_exponent - 15 + t - 13), top_gradient = factor(h - 15 - 14);
    return true;
  }
};
// Gradients of outputs are below 1, so gradients of units are below 2.3 times the largest top weight.
constexpr float kOutputFactor = kScaled ? 16384.f : 1.f;          // 2^14
constexpr float kUnitFactor = kScaled ? 1.f / 65536.f : 1.f;  // 2^(13 - t) / 2^(14 + 15 - t)
WS_DEVICE uint pair_of(float low, float high) {
  return choice::precision == kBf16 ? half_pair(low, high) : fp16_pair(low, high);
}
// Relu of a pair. What is not a number stays.
WS_DEVICE uint above_zero(uint pair) {
  uint out;
  if constexpr (choice::precision == kBf16)
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(pair), "r"(0u));
  else
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(out) : "r"(pair), "r"(0u));
  return out;
}
// Keeps the values of `pair` where the units are above zero.
WS_DEVICE uint where_above_zero(uint pair, uint units) {
  uint mask;
  if constexpr (choice::precision == kBf16)
    asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(mask) : "r"(units), "r"(0u));
  else
    asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(units), "r"(0u));
  return pair & mask;
}

struct Block {
  uint shared;
  int number;
  char* far;  // the exchange buffer
  Watch watch;
  WS_DEVICE uint at(int offset) const { return shared + static_cast<uint>(offset); }
  WS_DEVICE uint barrier(int i) const { return at(choice::at_barriers + 8 * i); }
  WS_DEVICE uint forward_full(int i) const { return barrier(i); }
  WS_DEVICE uint forward_empty(int i) const { return barrier(kForwardStages + i); }
  WS_DEVICE uint backward_full(int i) const { return barrier(2 * kForwardStages + i); }
  WS_DEVICE uint backward_empty(int i) const { return barrier(2 * kForwardStages + kBackwardStages + i); }
  WS_DEVICE uint go() const { return barrier(2 * (kForwardStages + kBackwardStages)); }
  WS_DEVICE uint top_full() const { return barrier(2 * (kForwardStages + kBackwardStages) + 1); }
  WS_DEVICE uint forward_stage(int i) const { return at(choice::at_stages + i * kForwardBytes); }
  WS_DEVICE uint backward_stage(int i) const { return at(choice::at_stages + i * kBackwardBytes); }

  WS_DEVICE uint* flags() const { return reinterpret_cast<uint*>(far); }
  WS_DEVICE uint2* maxima() const { return reinterpret_cast<uint2*>(far + kFlagBytes); }
  WS_DEVICE char* first_weights() const { return far + choice::far_first; }
  WS_DEVICE char* top_weights() const { return far + choice::far_top; }
  WS_DEVICE float* top_sums(int of) const { return reinterpret_cast<float*>(far + choice::far_top_sums) + of * kTopSums; }
  WS_DEVICE float2* sums(int part) const {
    return reinterpret_cast<float2*>(far + choice::far_sums) + static_cast<size_t>(part) * kPairs;
  }
  WS_DEVICE char* gradients(int group) const {
    return far + choice::far_gradients + static_cast<size_t>(group) * kHiddenBytes;
  }
  // The rows of the backward pass.
  WS_DEVICE int slice() const { return number % kSlices; }
  WS_DEVICE int part() const { return number / kSlices; }
  // Backward takes the groups from the last to the first: the last ones may still lie in the L2 cache.
  WS_DEVICE int backward_groups() const { return (kGroups - 1 - part()) / kParts + 1; }
  WS_DEVICE int backward_group(int i) const { return kGroups - 1 - part() - i * kParts; }
};

// The next stage of a ring, and the parity of its use.
template <int Stages>
struct Ring {
  int stage = 0;
  uint parity = 0;
  WS_DEVICE void next() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
};

// ---- the warp that copies ----
struct Copies {
  const Arguments& a;
  const Block& block;
  const ulong policy;
  Ring<kForwardStages> forward;
  Ring<kBackwardStages> backward;
  uint go_parity = 0;
  bool well = true;

  WS_DEVICE void wait_for(uint barrier, uint parity, int step) {
    if (well) well = wait(block.watch, barrier, parity, kWaitBuffers, step);
  }
  WS_DEVICE void wait_to_go(int step) {
    // All other blocks may first have to arrive: the warps that compute watch the time.
    while (well && !barrier_passed(block.go(), go_parity)) well = *block.watch.dead == 0;
    go_parity ^= 1;
    stores_for_copies();
  }
  WS_DEVICE const char* rows(int group) const { return static_cast<const char*>(a.rows) + static_cast<size_t>(group) * kGroupBytes; }

  WS_DEVICE void forward_rows(const Ring<kForwardStages>& at, int round, int k, int step) {
    wait_for(block.forward_empty(at.stage), at.parity ^ 1, step);
    if (!well) return;
    const int groups = min(4, kGroups - 4 * round);
    barrier_expect(block.forward_full(at.stage), groups * kForwardRows + kForwardWeights);
    for (int i = 0; i < groups; ++i)
      copy_rows(block.forward_stage(at.stage) + i * kForwardRows, rows(4 * round + i) + k * kForwardRows, kForwardRows,
                block.forward_full(at.stage), policy);
  }
  WS_DEVICE void forward_weights(const Ring<kForwardStages>& at, int k) const {
    copy_bulk(block.forward_stage(at.stage) + 4 * kForwardRows, block.first_weights() + k * kForwardWeights,
              kForwardWeights, block.forward_full(at.stage));
  }
  WS_DEVICE void backward_rows(const Ring<kBackwardStages>& at, int group, int step) {
    wait_for(block.backward_empty(at.stage), at.parity ^ 1, step);
    if (!well) return;
    barrier_expect(block.backward_full(at.stage), kBackwardBytes);
    copy_rows(block.backward_stage(at.stage), rows(group) + block.slice() * kBackwardRows, kBackwardRows,
              block.backward_full(at.stage), policy);
  }
  WS_DEVICE void backward_gradients(const Ring<kBackwardStages>& at, int group) const {
    copy_bulk(block.backward_stage(at.stage) + kBackwardRows, block.gradients(group), kHiddenBytes,
              block.backward_full(at.stage));
  }
  // The stages of both passes share the memory: a pass begins when all stages of the other are free.
  template <int Stages>
  WS_DEVICE void all_free(const Ring<Stages>& ring, int empty, int step) {
    Ring<Stages> at = ring;
    for (int i = 0; i < Stages; ++i, at.next()) wait_for(block.barrier(empty + at.stage), at.parity ^ 1, step);
  }

  WS_DEVICE void run_forward(int step) {
    all_free(backward, 2 * kForwardStages + kBackwardStages, step);
    const int rounds = block.number < kRounds ? (kRounds - 1 - block.number) / kBlocks + 1 : 0;
    const int all = rounds * kForwardSteps, early = min(all, kForwardStages);
    const auto round = [&](int i) { return block.number + i / kForwardSteps * kBlocks; };
    Ring<kForwardStages> at = forward;
    for (int i = 0; i < early && well; ++i, at.next()) forward_rows(at, round(i), i % kForwardSteps, step);
    wait_to_go(step);
    if (!well) return;
    if (kRounds >= kBlocks || block.number < kRounds) {  // others do not wait for them
      barrier_expect(block.top_full(), choice::top_bytes);
      copy_bulk(block.at(choice::at_top), block.top_weights(), choice::top_bytes, block.top_full());
    }
    for (int i = 0; i < all && well; ++i, forward.next()) {
      if (i >= early) forward_rows(forward, round(i), i % kForwardSteps, step);
      if (well) forward_weights(forward, i % kForwardSteps);
    }
  }
  WS_DEVICE void run_backward(int step) {
    all_free(forward, kForwardStages, step);
    const int all = block.backward_groups(), early = min(all, kBackwardStages);
    Ring<kBackwardStages> at = backward;
    for (int i = 0; i < early && well; ++i, at.next()) backward_rows(at, block.backward_group(i), step);
    wait_to_go(step);
    for (int i = 0; i < all && well; ++i, backward.next()) {
      if (i >= early) backward_rows(backward, block.backward_group(i), step);
      if (well) backward_gradients(backward, block.backward_group(i));
    }
  }
};

// ---- the warps that compute ----
struct Training {
  const Arguments& a;
  const Block& block;
  int thread, warp, lane, g, t, group;  // group: of four warps
  Ring<kForwardStages> forward;
  Ring<kBackwardStages> backward;
  Scales scales;
  uint top_parity = 0;
  StampLane stamps;
  // From the forward pass: gradients of the top weights, of their biases, loss, correct rows.
  float top[2][8], bias[4], loss, correct;
  bool late = false;

  WS_DEVICE Training(const Arguments& args, const Block& b, int th)
      : a(args), block(b), thread(th), warp(__shfl_sync(~0u, th >> 5, 0)), lane(th & 31), g(lane >> 2), t(lane & 3),
        group(warp >> 2), stamps(args, b.number, th == 0) {}

  // ---- meetings of all blocks ----
  WS_DEVICE uint number_of(int step, int meeting) const {
    return (a.exchange_base + static_cast<uint>(step) + 1) * kMeetings + static_cast<uint>(meeting);
  }
  // Returns false if a wait timed out.
  WS_DEVICE bool meet(int step, int meeting, int what) {
    stamps.begin(step, kPartWait, what);
    if (late) time_out(block.watch.dead, block.watch.report, kWaitRows, step);
    stores_for_copies();
    warps_meet(1, kMath);
    const uint number = number_of(step, meeting);
    if (thread == 0 && !(meeting == kForwardEnds && a.lose_message_at == step && block.number == 1))
      raise(block.flags() + block.number, number);
    bool well = true;
    for (int i = thread; i < kBlocks; i += kMath)
      well &= wait_for_flag(block.watch, block.flags() + i, number, what, step);
    return !warps_meet_any(1, kMath, !well);
  }
  WS_DEVICE void let_copies_go() const {
    if (thread == 0) barrier_arrive(block.go());
  }

  // Waits for rows while products are under way. A function call here would make the compiler wait for each product, so
  // meet() reports a wait that timed out.
  WS_DEVICE void receive(uint barrier, uint parity) {
    long long begin = 0;
#pragma unroll 1
    for (int i = 0; !barrier_passed(barrier, parity); ++i) {
      if ((i & 63) != 63) continue;
      if (*block.watch.dead) break;
      if (begin == 0) begin = clock64();
      if (static_cast<ulong>(clock64() - begin) < block.watch.limit) continue;
      *block.watch.dead = 1, late = true;
      break;
    }
    __syncwarp();
  }
  WS_DEVICE void release(uint barrier) const {
    if (lane == 0) barrier_arrive(barrier);
  }

  // ---- forward ----
  WS_DEVICE int row_of(int tile_group, int r) const { return tile_group * kGroupRows + 16 * (warp & 3) + g + 8 * r; }

  WS_DEVICE void run_forward(int step) {
#pragma unroll
    for (int i = 0; i < 8; ++i) top[0][i] = top[1][i] = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i) bias[i] = 0.f;
    loss = correct = 0.f;
#pragma unroll 1
    for (int round = block.number; round < kRounds; round += kBlocks) {
      stamps.begin(step, kPartForward, 0);
      const int first = 4 * round + 2 * group;
      int label[2][2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          label[i][r] = kClasses ? static_cast<const int*>(a.targets)[min(row_of(first + i, r), a.batch - 1)] : 0;
      float z[2][H / 2] = {};
#pragma unroll 1
      for (int k = 0; k < kForwardSteps; ++k) {
        receive(block.forward_full(forward.stage), forward.parity);
        const uint x = block.forward_stage(forward.stage) + 2 * group * kForwardRows,
                   w = block.forward_stage(forward.stage) + 4 * kForwardRows;
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int s = 0; s < kStageColumns / 16; ++s)
            forward_product(z[i], matrix(x + i * kForwardRows + 2 * s * kChunk, kChunk, 128),
                            matrix(w + 2 * s * H * 16, H * 16, 128), 1);
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0) release(block.forward_empty(forward.stage == 0 ? kForwardStages - 1 : forward.stage - 1));
        if (k + 1 < kForwardSteps) forward.next();
      }
      wgmma_wait<0>();
      release(block.forward_empty(forward.stage));
      forward.next();
      sums_are_ready(z[0]), sums_are_ready(z[1]);
      if (round == block.number) receive(block.top_full(), top_parity);
      stamps.begin(step, kPartLosses, 1);
      if (first < kGroups) run_middle(first, label[0], z[0]);
      if (first + 1 < kGroups) run_middle(first + 1, label[1], z[1]);
    }
    if (block.number < kRounds) {
      top_parity ^= 1;
      write_top_sums(step);
    }
  }

  // From z1 of 64 rows to the gradients of their units.
  WS_DEVICE void run_middle(int rows, const int (&label)[2], const float (&z)[H / 2]) {
    const uint hidden = block.at(choice::at_hidden + group * kHiddenBytes),
               outputs = block.at(choice::at_outputs + group * 2 * kChunk), weights = block.at(choice::at_top);
    // This lane's row of the matrices that its warp stores: chunk of columns, row.
    const uint mine = static_cast<uint>((lane >> 4) * kChunk + (16 * (warp & 3) + (lane & 15)) * 16);
    warps_meet(2 + group, 128);  // the products with the last units have ended
    uint h[H / 16][4];
    Slopes slopes;
    activate(z, h, slopes);
#pragma unroll
    for (int s = 0; s < H / 16; ++s) store_matrices(hidden + 2 * s * kChunk + mine, h[s]);
    float c[8];
#pragma unroll
    for (int s = 0; s < H / 16; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(h[s][e]));
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < H / 16; ++s)
      top_product(c, h[s][0], h[s][1], h[s][2], h[s][3], matrix(weights + 256 * s, 128, H * 16), s > 0);
    wgmma_commit();
    wgmma_wait<0>();
    sums_are_ready(c);
    uint d[4];
    losses(rows, label, c, d);
    store_matrices(outputs + mine, d);
    stores_for_tensor_cores();
    warps_meet(2 + group, 128);
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(d[e]));
    float dh[H / 4];
    wgmma_fence();
    hidden_product(dh, d[0], d[1], d[2], d[3], matrix(weights, H * 16, 128), 0);
    wgmma_commit();
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int s = 0; s < kGroupRows / 16; ++s)
        top_gradient(top[m], matrix(hidden + m * 8 * kChunk + 256 * s, 128, kChunk),
                     matrix(outputs + 256 * s, 128, kChunk), 1);
    wgmma_commit();
    wgmma_wait<1>();
    sums_are_ready(dh);
    write_gradients(rows, 0, kRelus ? h : slopes, dh);
    wgmma_fence();
    hidden_product(dh, d[0], d[1], d[2], d[3], matrix(weights + H / 2 * 16, H * 16, 128), 0);
    wgmma_commit();
    wgmma_wait<0>();
    sums_are_ready(dh), sums_are_ready(top[0]), sums_are_ready(top[1]);
    write_gradients(rows, 1, kRelus ? h : slopes, dh);
  }

  // c: outputs 2t, 2t + 1 of rows g and g + 8, then outputs 8 + 2t, 9 + 2t. d: their gradients as an operand.
  WS_DEVICE void losses(int rows, const int (&label)[2], const float (&c)[8], uint (&d)[4]) {
    const uint biases = block.at(choice::at_top + H * kOutputs * 2);
    float b[4] = {};
    if (choice::bias)
#pragma unroll
      for (int e = 0; e < 4; ++e) b[e] = load_f(biases + (2 * t + (e & 1) + 8 * (e >> 1)) * 4);
    constexpr float nothing = -3e38f;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float z[4], dz[4];
      const auto output = [&](int e) { return 2 * t + (e & 1) + 8 * (e >> 1); };
      const bool valid = row_of(rows, r) < a.batch;
#pragma unroll
      for (int e = 0; e < 4; ++e)
        z[e] = output(e) < O ? c[2 * r + (e & 1) + 4 * (e >> 1)] * scales.top_sums + b[e] : nothing;
      float row_loss = 0.f, is_correct = 0.f;
      if constexpr (kClasses) {
        float best = fmaxf(fmaxf(z[0], z[1]), fmaxf(z[2], z[3])), sum = 0.f;
#pragma unroll
        for (int k = 1; k < 4; k *= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, k));
        int at = O;
#pragma unroll
        for (int e = 3; e >= 0; --e) {
          const bool is = output(e) < O;
          dz[e] = is ? exp_of(z[e] - best) : 0.f;
          sum += dz[e];
          if (output(e) == label[r]) row_loss -= z[e];
          if (is && z[e] == best) at = output(e);
        }
#pragma unroll
        for (int k = 1; k < 4; k *= 2) {
          sum += __shfl_xor_sync(~0u, sum, k);
          at = min(at, __shfl_xor_sync(~0u, at, k));
        }
        const float factor = __fdividef(1.f, sum);
#pragma unroll
        for (int e = 0; e < 4; ++e)
          dz[e] = valid && output(e) < O ? dz[e] * factor - (output(e) == label[r] ? 1.f : 0.f) : 0.f;
        if (t == 0) row_loss += log_of(sum) + best, is_correct = at == label[r];
      } else {
        const float* targets = static_cast<const float*>(a.targets) + static_cast<size_t>(row_of(rows, r)) * O;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float off = valid && output(e) < O ? z[e] - targets[output(e)] : 0.f;
          dz[e] = off * 2.f / static_cast<float>(O);
          row_loss += off * off / static_cast<float>(O);
        }
      }
      if (valid) loss += row_loss, correct += is_correct;
#pragma unroll
      for (int e = 0; e < 4; ++e) bias[e] += dz[e];
      d[r] = pair_of(dz[0] * kOutputFactor, dz[1] * kOutputFactor);
      d[2 + r] = pair_of(dz[2] * kOutputFactor, dz[3] * kOutputFactor);
    }
  }

  WS_DEVICE void activate(const float (&z)[H / 2], uint (&h)[H / 16][4], Slopes& slopes) const {
    [[maybe_unused]] const float both = scales.sums * scales.units;
#pragma unroll
    for (int at = 0; at < H / 4; ++at) {
      uint& pair = h[at / 4][at % 4];
      if constexpr (kRelus) {
        pair = above_zero(pair_of(z[2 * at] * both, z[2 * at + 1] * both));
      } else {
        const float z0 = z[2 * at] * scales.sums, z1 = z[2 * at + 1] * scales.sums;
        const float h0 = activated(z0), h1 = activated(z1);
        if constexpr (kSlopes) slopes[at / 4][at % 4] = fp16_pair(slope_at(z0, h0), slope_at(z1, h1));
        pair = pair_of(h0 * scales.units, h1 * scales.units);
      }
    }
  }

  // Writes the gradients of half of the units.
  WS_DEVICE void write_gradients(int rows, int half, const Slopes& slopes, const float (&dh)[H / 4]) const {
    char* to = block.gradients(rows) + half * (H / 16) * kChunk + (16 * (warp & 3) + g) * 16 + 4 * t;
#pragma unroll
    for (int j = 0; j < H / 16; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int from = 4 * j + 2 * r, at = (from + half * (H / 4)) / 2;
        float d0 = dh[from] * kUnitFactor, d1 = dh[from + 1] * kUnitFactor;
        const uint slope = slopes[at / 4][at % 4];
        if constexpr (kSlopes) d0 *= fp16_low(slope), d1 *= fp16_high(slope);
        uint pair = pair_of(d0, d1);
        if constexpr (kRelus) pair = where_above_zero(pair, slope);
        *reinterpret_cast<uint*>(to + j * kChunk + r * 128) = pair;
      }
  }

  // Adds the top gradients of all warps and leaves them for the update.
  WS_DEVICE void write_top_sums(int step) {
    warps_meet(1, kMath);  // no product reads the units any more
    const uint to = block.at(choice::at_hidden + group * kHiddenBytes);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int unit = 64 * m + 16 * (warp & 3) + g + 8 * (i >> 1 & 1), output = 2 * t + (i & 1) + 8 * (i >> 2);
        store_f(to + (unit * kOutputs + output) * 4, top[m][i]);
      }
    const uint small = block.at(choice::at_small);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float sum = bias[e];
#pragma unroll
      for (int k = 4; k < 32; k *= 2) sum += __shfl_xor_sync(~0u, sum, k);
      if (g == 0) store_f(small + (warp * kOutputs + 2 * t + (e & 1) + 8 * (e >> 1)) * 4, sum);
    }
#pragma unroll
    for (int k = 1; k < 32; k *= 2) {
      loss += __shfl_xor_sync(~0u, loss, k);
      correct += __shfl_xor_sync(~0u, correct, k);
    }
    if (lane == 0) store_f(small + (128 + 2 * warp) * 4, loss), store_f(small + (129 + 2 * warp) * 4, correct);
    warps_meet(1, kMath);
    float* out = block.top_sums(block.number);
    for (int i = thread; i < H * kOutputs; i += kMath)
      out[i] = load_f(block.at(choice::at_hidden + 4 * i)) + load_f(block.at(choice::at_hidden + kHiddenBytes + 4 * i));
    if (thread < kOutputs + 2) {
      float sum = 0.f;
      const int stride = thread < kOutputs ? kOutputs : 2, first = thread < kOutputs ? thread : 128 + thread - kOutputs;
      for (int w = 0; w < kWarps; ++w) sum += load_f(small + (first + w * stride) * 4);
      if (thread < kOutputs)
        out[H * kOutputs + thread] = sum;
      else
        a.partials[(static_cast<size_t>(step) * kBlocks + block.number) * 2 + thread - kOutputs] = sum;
    }
  }

  // ---- backward ----
  WS_DEVICE void run_backward(int step) {
    stamps.begin(step, kPartBackward, 0);
    const int all = block.backward_groups();
    float sums[kSlice / 2] = {};
#pragma unroll 1
    for (int i = 0; i < all; ++i) {
      receive(block.backward_full(backward.stage), backward.parity);
      const uint x = block.backward_stage(backward.stage), d = x + kBackwardRows + group * 8 * kChunk;
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < kGroupRows / 16; ++s)
        input_gradient(sums, matrix(d + 256 * s, 128, kChunk), matrix(x + 256 * s, 128, kChunk), 1);
      wgmma_commit();
      wgmma_wait<1>();
      if (i > 0) release(block.backward_empty(backward.stage == 0 ? kBackwardStages - 1 : backward.stage - 1));
      if (i + 1 < all) backward.next();
    }
    wgmma_wait<0>();
    release(block.backward_empty(backward.stage));
    backward.next();
    sums_are_ready(sums);
    float2* to = block.sums(block.part()) + block.slice() * (kTiles * 2 * kMath) + thread;
#pragma unroll
    for (int i = 0; i < kTiles * 2; ++i) __stcg(to + i * kMath, make_float2(sums[2 * i], sums[2 * i + 1]));
  }

  // ---- weights ----
  // The state of this block's weights lies in shared memory: kinds weight, first and second moment.
  WS_DEVICE uint own_weight(int kind, int pair, int i) const { return block.at(choice::at_state + ((kind * 2 + i) * kOwnPairs + pair) * 4); }
  WS_DEVICE uint own_top(int kind, int row) const {
    return block.at(choice::at_top_state + ((kind * kOwnTopRows + row) * kOutputs + thread) * 4);
  }
  struct Place {
    int input, hidden;
    bool in[2], is_bias[2];  // is part of the network; is a bias
    WS_DEVICE explicit Place(int pair) {
      const int th = pair % kMath, p = pair / kMath % 2, j = pair / (2 * kMath);  // j: tile of eight inputs
      hidden = 16 * (th >> 5) + (th >> 2 & 7) + 8 * p, input = 8 * j + 2 * (th & 3);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        is_bias[i] = choice::bias && input + i == choice::inputs;
        in[i] = hidden < choice::hidden && (input + i < choice::inputs || is_bias[i]);
      }
    }
    WS_DEVICE float* element(float* weights, float* biases, int i) const {
      return is_bias[i] ? biases + hidden : weights + static_cast<size_t>(input + i) * choice::hidden + hidden;
    }
  };
  WS_DEVICE static float* of_kind(const LayerState& l, int kind, bool is_bias) {
    return kind == 0 ? (is_bias ? l.b : l.w) : kind == 1 ? (is_bias ? l.b_m : l.w_m) : (is_bias ? l.b_v : l.w_v);
  }
  // Calls f(place in shared memory, place in global memory or null) for all state of this block.
  template <class F>
  WS_DEVICE void each_state(F f) const {
    for (int pair = thread; pair < kOwnPairs; pair += kMath) {
      const int number = block.number * kOwnPairs + pair;
      const Place place(number);
#pragma unroll
      for (int kind = 0; kind <= kMoments; ++kind)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          f(own_weight(kind, pair, i), number < kPairs && place.in[i] ? place.element(of_kind(a.layers[0], kind, false),
                                                                               of_kind(a.layers[0], kind, true), i)
                                                               : nullptr);
    }
    if (thread >= kOutputs) return;
    for (int r = 0; r < kOwnTopRows; ++r) {
      const int row = block.number + r * kBlocks;
      const bool in = thread < O && (row < choice::hidden || (choice::bias && row == H));
#pragma unroll
      for (int kind = 0; kind <= kMoments; ++kind) {
        float* const state = !in        ? nullptr
                             : row == H ? of_kind(a.layers[1], kind, true) + thread
                                        : of_kind(a.layers[1], kind, false) + row * O + thread;
        f(own_top(kind, r), state);
      }
    }
  }
  WS_DEVICE void load() const {
    each_state([](uint to, const float* from) { store_f(to, from ? *from : 0.f); });
  }
  WS_DEVICE void store() const {
    each_state([](uint from, float* to) {
      if (to) *to = load_f(from);
    });
  }

  // Sends the other blocks the largest weights of this one.
  WS_DEVICE void send_maxima() const {
    if constexpr (!kScaled) return;
    uint first = 0, top = 0;
    for (int pair = thread; pair < kOwnPairs; pair += kMath)
#pragma unroll
      for (int i = 0; i < 2; ++i) first = max(first, load_u(own_weight(0, pair, i)) & 0x7fffffffu);
    if (thread < kOutputs)
      for (int r = 0; r < kOwnTopRows; ++r)
        if (block.number + r * kBlocks < H) top = max(top, load_u(own_top(0, r)) & 0x7fffffffu);
    first = __reduce_max_sync(~0u, first), top = __reduce_max_sync(~0u, top);
    const uint small = block.at(choice::at_small);
    warps_meet(1, kMath);
    if (lane == 0)
      asm volatile("st.shared.v2.b32 [%0],{%1,%2};" ::"r"(small + 8 * warp), "r"(first), "r"(top) : "memory");
    warps_meet(1, kMath);
    if (thread == 0) {
      for (int w = 1; w < kWarps; ++w)
        first = max(first, load_u(small + 8 * w)), top = max(top, load_u(small + 8 * w + 4));
      block.maxima()[block.number] = make_uint2(first, top);
    }
  }
  // True if the factors have changed. All blocks get the same answer.
  WS_DEVICE bool receive_maxima() {
    uint first = 0, top = 0;
    if constexpr (kScaled) {
      for (int i = lane; i < kBlocks; i += 32) {
        const uint2 m = __ldcg(block.maxima() + i);
        first = max(first, m.x), top = max(top, m.y);
      }
      first = __reduce_max_sync(~0u, first), top = __reduce_max_sync(~0u, top);
    }
    return scales.set(first, top);
  }
  // Writes this block's weights as operands of the products.
  WS_DEVICE void write_operands() const {
    for (int pair = thread; pair < kOwnPairs; pair += kMath) {
      const int number = block.number * kOwnPairs + pair;
      if (number >= kPairs) break;
      const Place place(number);
      const uint two = pair_of(load_f(own_weight(0, pair, 0)) * scales.weights, load_f(own_weight(0, pair, 1)) * scales.weights);
      *reinterpret_cast<uint*>(block.first_weights() + place.input / 8 * (H * 16) + place.hidden * 16 +
                               place.input % 8 * 2) = two;
    }
    if (thread >= kOutputs) return;
    for (int r = 0; r < kOwnTopRows; ++r) {
      const int row = block.number + r * kBlocks;
      const float value = load_f(own_top(0, r));
      char* to = block.top_weights();
      if (row < H)
        *reinterpret_cast<unsigned short*>(to + thread / 8 * (H * 16) + row * 16 + thread % 8 * 2) =
            static_cast<unsigned short>(pair_of(value * scales.top_weights, 0.f));
      else if (row == H)
        reinterpret_cast<float*>(to + H * kOutputs * 2)[thread] = value;
    }
  }
  // Shares the weights with all blocks. The operands are written with the last factors, and again if these change.
  WS_DEVICE bool share_weights(int step, int meeting) {
    if (step >= 0) write_operands();
    send_maxima();
    const int at = max(step, 0);
    if (!meet(at, meeting, kWaitWeights)) return false;
    if (!receive_maxima()) return true;
    write_operands();
    return meet(at, meeting + 1, kWaitWeights);
  }

  WS_DEVICE void update(int step, float rate) {
    stamps.begin(step, kPartUpdate, 0);
    const StepFactors factors = step_factors(a, rate, 1.f, a.first_step + step);
    const float per_row = 1.f / static_cast<float>(a.batch);
    const uint small = block.at(choice::at_small);
    const auto change = [&](uint w, uint m, uint v, bool decays, float gradient) {
      float weight = load_f(w), first = kMoves ? load_f(m) : 0.f, second = kSquares ? load_f(v) : 0.f;
      move(a, factors, decays, weight, first, second, gradient);
      store_f(w, weight);
      if (kMoves) store_f(m, first);
      if (kSquares) store_f(v, second);
    };
    // All loads of a thread are in flight at once, as far as the registers allow.
    constexpr int own = (kOwnPairs + kMath - 1) / kMath, at_once = own > 34 ? 1 : min_of(kParts, 68 / own);
    float2 sums[own];
#pragma unroll
    for (int k = 0; k < own; ++k) sums[k] = make_float2(0.f, 0.f);
#pragma unroll 1
    for (int first = 0; first < kParts; first += at_once) {
      float2 one[own][at_once];
#pragma unroll
      for (int k = 0; k < own; ++k)
#pragma unroll
        for (int i = 0; i < at_once; ++i)
          one[k][i] = __ldcg(block.sums(min(first + i, kParts - 1)) +
                             min(block.number * kOwnPairs + thread + k * kMath, kPairs - 1));
#pragma unroll
      for (int k = 0; k < own; ++k)
#pragma unroll
        for (int i = 0; i < at_once; ++i)
          if (first + i < kParts) sums[k].x += one[k][i].x, sums[k].y += one[k][i].y;
    }
#pragma unroll
    for (int k = 0; k < own; ++k) {
      const int pair = thread + k * kMath, number = block.number * kOwnPairs + pair;
      if (pair >= kOwnPairs || number >= kPairs) break;
      const Place place(number);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (place.in[i])
          change(own_weight(0, pair, i), own_weight(1, pair, i), own_weight(2, pair, i), !place.is_bias[i],
                 (i ? sums[k].y : sums[k].x) * per_row * scales.gradient);
    }
    const int output = thread % kOutputs, sender = thread / kOutputs;
    for (int r = 0; r < kOwnTopRows; ++r) {
      const int row = block.number + r * kBlocks;
      float sum = 0.f;
      if (row < kTopRows)
        for (int i = sender; i < kSenders; i += kMath / kOutputs) sum += __ldcg(block.top_sums(i) + row * kOutputs + output);
      if (r > 0) warps_meet(1, kMath);
      store_f(small + thread * 4, sum);
      warps_meet(1, kMath);
      if (thread < kOutputs && row < kTopRows && output < O && (row < choice::hidden || (choice::bias && row == H))) {
        sum = 0.f;
        for (int i = 0; i < kMath / kOutputs; ++i) sum += load_f(small + (i * kOutputs + output) * 4);
        const float factor = row == H ? per_row : per_row * scales.top_gradient;
        change(own_top(0, r), own_top(1, r), own_top(2, r), row < H, sum * factor);
      }
    }
  }
};

// Returns true if this thread computed all steps and no wait timed out.
WS_DEVICE bool compute(const Arguments& a, const Block& block, int thread) {
  Training training(a, block, thread);
  training.load();
  warps_meet(1, kMath);
  if (!training.share_weights(-1, kBegin)) return false;
  training.let_copies_go();
  Rates rates(a);
#pragma unroll 1
  for (int s = 0; s < a.steps; ++s) {
    const float rate = rates.take();
    training.run_forward(s);
    if (!training.meet(s, kForwardEnds, kWaitGradients)) return false;
    training.let_copies_go();
    training.run_backward(s);
    if (!training.meet(s, kBackwardEnds, kWaitSums)) return false;
    training.update(s, rate);
    if (s + 1 == a.steps) break;
    if (!training.share_weights(s, kMoved)) return false;
    training.let_copies_go();
  }
  training.stamps.end(a.steps);
  // A block stores its state only if all blocks have reached the end.
  if (!training.meet(max(a.steps - 1, 0), kEnd, kWaitWeights)) return false;
  training.store();
  return true;
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) ws_train(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const int thread = kept(static_cast<int>(threadIdx.x));
  const Block block{static_cast<uint>(kept(static_cast<int>(shared_address(memory)))),
                    kept(static_cast<int>(blockIdx.x)),
                    static_cast<char*>(a.exchange),
                    {reinterpret_cast<volatile int*>(memory + choice::at_dead), a.limit, a.fault}};
  if (thread == 0) {
    *block.watch.dead = 0;
    for (int i = 0; i < kForwardStages; ++i) barrier_init(block.forward_full(i), 1), barrier_init(block.forward_empty(i), kWarps);
    for (int i = 0; i < kBackwardStages; ++i) barrier_init(block.backward_full(i), 1), barrier_init(block.backward_empty(i), kWarps);
    barrier_init(block.go(), 1), barrier_init(block.top_full(), 1);
    barriers_are_ready();
  }
  __syncthreads();
  if (thread >= kMath) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == kMath) {
      Copies copies{a, block, leaves_first()};
      for (int s = 0; s < a.steps && copies.well; ++s) copies.run_forward(s), copies.run_backward(s);
      // Copies that are under way must not outlive the block.
      if (!copies.well)
        for (const long long begin = clock64(); clock64() - begin < 100000;) {
        }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if (compute(a, block, thread) && block.number == 0) write_metrics(a, kMath, kSenders, kBlocks);
  }
  __syncthreads();
}

// Converts rows to the layout that the kernel copies: groups of 64 rows, in chunks of eight columns. With biases, an
// input that is always 1 follows the last one.
extern "C" __global__ void ws_prepare(const float* from, void* to, long long rows) {
  const long long all = (rows + kGroupRows - 1) / kGroupRows * (kColumns / 8) * kGroupRows;
  const float factor = kScaled ? __int_as_float((15 - choice::row_exponent + 127) << 23) : 1.f;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < all;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    const int chunk = static_cast<int>(i / kGroupRows % (kColumns / 8));
    const long long row = i / (kGroupRows * (kColumns / 8)) * kGroupRows + i % kGroupRows;
    float value[8];
    for (int k = 0; k < 8; ++k) {
      const int input = 8 * chunk + k;
      value[k] = row >= rows                                 ? 0.f
                 : input < choice::inputs                    ? from[row * choice::inputs + input] * factor
                 : choice::bias && input == choice::inputs ? factor
                                                             : 0.f;
    }
    static_cast<uint4*>(to)[i] = make_uint4(pair_of(value[0], value[1]), pair_of(value[2], value[3]),
                                            pair_of(value[4], value[5]), pair_of(value[6], value[7]));
  }
}

}  // namespace ws::cuda::persistent
