// A kernel for a network with several or wide hidden layers, on all multiprocessors. Every block keeps one tile of each
// weight matrix in shared memory from the first to the last step of a launch.
//
// There are kG clusters of kC blocks. A cluster owns a slice of the units of each layer, and each of its blocks a slice
// of the layer's input. A block also owns the R rows of the batch that belong to its rank. A step:
//   1. Forward: a block multiplies its slice of the layer's input by its tile. It sends the partial sums to the owners
//      of the rows in its cluster. They add, activate, and write h through the L2 cache to the blocks that read it.
//   2. Output: the owners multiply their rows of the last hidden layer by their slice of the output weights. Owners of
//      the same rows in all clusters exchange these sums. Each computes the loss and dz of the last hidden layer.
//   3. Backward: the owners send dz to their cluster, and each block multiplies it by its tile. It writes partial sums
//      of the layer below through the L2 cache to the owners there, and updates its tile.
//   4. The output weights are split by hidden units inside a cluster: a block adds the gradients of some units and
//      sends the new weights to its cluster.
// In fp16 all tiles are updated at the end of the step, when every block knows that no gradient was infinite.
//
// Buffers for messages need no barrier: a block sends message e + 1 only after it has read message e. So a block that
// received message e + 1 from all blocks knows that all of them have read message e.
#pragma once

namespace ws::cuda::persistent {

constexpr int kC = choice::cluster, kG = choice::clusters, kBlocks = kC * kG, kThreads = choice::threads;
constexpr int kWarps = kThreads / 32, B = choice::batch, R = B / kC, kHiddenLayers = choice::layers - 1;
constexpr int O = choice::outputs;
constexpr bool kScales = choice::precision == kFp16;
// wgmma in tf32, which holds all values of fp16 and bf16. fp32 is split, for which the second operand would have to lie in
// shared memory twice.
constexpr bool kWide = choice::wide;
// wgmma drops the last 13 bits of an operand in shared memory. Weights in a tile are larger by half a unit of the last
// kept bit, so that they are rounded. fp16 keeps as many bits as tf32, bf16 fewer.
constexpr bool kRaised = kWide && choice::precision != kBf16;
WS_DEVICE float raised(float w) { return kRaised ? to_tf32(w) : w; }
WS_DEVICE float lowered(float w) { return kRaised ? __uint_as_float(__float_as_uint(w) - 0x1000u) : w; }
constexpr int kExchanges = 2 * kHiddenLayers;
constexpr int kSlots = kScales ? kHiddenLayers + 1 : (kHiddenLayers > 1 ? kHiddenLayers : 2);
constexpr int kTargets = kClasses ? 1 : O;
static_assert((2 * kHiddenLayers + 7) * kBlocks * 4 <= kFlagBytes);

// Hidden layer l = 1, 2...: units per cluster, values per row that a block reads.
WS_BOTH constexpr int units(int l) {
  return l == 1 ? choice::units1 : l == 2 ? choice::units2 : l == 3 ? choice::units3 : l == 4 ? choice::units4 : choice::units5;
}
WS_BOTH constexpr int values(int l) {
  return l == 1 ? choice::inputs_each : ((width(l - 1) + kC - 1) / kC + 3) / 4 * 4;
}
// A tile lies in chunks of four inputs of all units.
WS_BOTH constexpr int tile_chunk(int l) { return 4 * units(l); }
WS_BOTH constexpr int in_tile(int l, int input, int unit) { return (input >> 2) * tile_chunk(l) + unit * 4 + (input & 3); }
template <int L>
constexpr int kTileAt = kTileAt<L - 1> + values(L - 1) * units(L - 1);
template <>
constexpr int kTileAt<1> = 0;
template <int L>
constexpr int kBiasAt = kBiasAt<L - 1> + units(L - 1);
template <>
constexpr int kBiasAt<1> = 0;
// Rows and gradients lie in chunks of four values of all rows, as wgmma reads them. Gradients that are turned lie in
// chunks of four rows of all units. Partial sums of one block lie by units.
constexpr int kChunk = 4 * B + 4;
WS_BOTH constexpr int turned_chunk(int l) { return 4 * units(l) + 4; }
WS_BOTH constexpr int inbox_stride(int l) { return units(l) * R + 4; }
constexpr int kTop = units(kHiddenLayers);             // units of the last hidden layer in this cluster
// Rows of the output weights that a block updates; the last row is the bias.
constexpr int kOwnRows = (kTop + 1 + kC - 1) / kC;
constexpr int kBiases = kBiasAt<kHiddenLayers + 1>;
// Partial sums of gradients travel in bf16, which has the range of float. fp32 keeps all bits.
constexpr bool kShort = kWide;
// Offsets in the exchange buffer, in floats after the flags.
template <int L>
constexpr long long kHiddenAt = kHiddenAt<L - 1> + static_cast<long long>(B) * kG * units(L - 1);
template <>
constexpr long long kHiddenAt<1> = 0;
template <int L>
constexpr long long kPartialsAt = kPartialsAt<L - 1> + static_cast<long long>(kG) * kG * B * units(L - 2) / (kShort ? 2 : 1);
template <>
constexpr long long kPartialsAt<2> = kHiddenAt<kHiddenLayers + 1>;
constexpr long long kOutputsAt = kPartialsAt<kHiddenLayers + 1>;

enum Barriers { kOutputGradients = kExchanges, kOutputWeights, kBarriers };

struct Block {
  unsigned char* memory;
  uint shared, rank;  // rank in the cluster
  int cluster;
  uint* flags;
  float* far;  // the data part of the exchange buffer
  Watch watch;

  WS_DEVICE float* part(int at) const { return reinterpret_cast<float*>(memory + at); }
  template <int L>
  WS_DEVICE float* tile() const {
    return part(choice::at_tiles) + kTileAt<L>;
  }
  WS_DEVICE float* slot(int layer, int turn) const {
    return part(choice::at_slots) + (layer - 1 + turn) % kSlots * choice::slot_floats;
  }
  WS_DEVICE float* region(int exchange) const {
    // In fp16 each dz has its own region, because the weights are updated after all dz are known.
    const int region = kScales && exchange >= kHiddenLayers ? 2 + exchange - kHiddenLayers : exchange & 1;
    return part(choice::at_regions) + region * choice::region_floats;
  }
  WS_DEVICE uint barrier(int i) const { return shared + static_cast<uint>(choice::at_barriers) + 8u * static_cast<uint>(i); }
  // Flags for the hidden units of layer l, the partial sums below layer l, verdicts and ends.
  WS_DEVICE uint* hidden_flag(int l, int cluster_of, int rank_of) const {
    return flags + (l * kG + cluster_of) * kC + rank_of;
  }
  WS_DEVICE uint* partial_flag(int l, int rank_of, int cluster_of) const {
    return flags + ((kHiddenLayers + l) * kC + rank_of) * kG + cluster_of + 2 * kBlocks;
  }
  WS_DEVICE uint* verdict_flag(int block) const { return flags + (2 * kHiddenLayers + 5) * kBlocks + block; }
  WS_DEVICE uint* end_flag(int block) const { return flags + (2 * kHiddenLayers + 6) * kBlocks + block; }
};

// ---- products ----
// Where operands lie. `i` is a row of the first or a column of the second operand. row(eight, g): the row that a warp takes
// as row g of its eight; the products may take the rows in any order.
template <int L>
struct UnitsOfTile {  // k: input
  const float* from;
  WS_DEVICE static int row(int eight, int g) { return 8 * eight + g; }
  WS_DEVICE float at(int i, int k) const { return from[in_tile(L, k, i)]; }
};
template <int L>
struct InputsOfTile {  // k: unit
  const float* from;
  WS_DEVICE static int row(int eight, int g) { return 8 * eight + g; }
  WS_DEVICE float at(int i, int k) const { return from[in_tile(L, i, k)]; }
};
template <int Chunk>
struct AlongChunks {  // each chunk has four values of k
  static constexpr int kStride = Chunk;
  const float* from;
  WS_DEVICE float at(int i, int k) const { return from[(k >> 2) * Chunk + i * 4 + (k & 3)]; }
};
struct AcrossChunks {  // each chunk has four values of i
  const float* from;
  // Eight rows that lie in different banks: four of a chunk and four of the fourth chunk after it.
  WS_DEVICE static int row(int eight, int g) { return (eight >> 2) * 32 + (eight & 3) * 4 + (g >> 2) * 16 + (g & 3); }
  WS_DEVICE float at(int i, int k) const { return from[(i >> 2) * kChunk + k * 4 + (i & 3)]; }
};

// Passes sums of a tile of 8 columns to `done`: each lane four adjacent elements of one of its two rows.
template <int M, int N, class Done>
WS_DEVICE void hand_out(int t, const float* q, int first, int second, int column, Done done) {
  const bool odd = t & 1;
  const float x = __shfl_xor_sync(~0u, odd ? q[0] : q[2], 1), y = __shfl_xor_sync(~0u, odd ? q[1] : q[3], 1);
  const float4 four = odd ? make_float4(x, y, q[2], q[3]) : make_float4(q[0], q[1], x, y);
  const int row = odd ? second : first;
  column += (t & 2) * 2;
  if (row < M && column < N) done(row, column, four);
}

// c (M, N) = a (M, K) · b (K, N), computed by all warps of the block with wgmma. A task of a group of four warps is 64
// rows and a part of the columns. The group reads `a` into registers, which `prepare` does ahead for the first task.
template <int M, int N, int K, class A, class Second, bool Rounds>
struct WideProduct {
  static constexpr int kTiles = (M + 63) / 64, kParts = kTiles == 1 ? 4 : 2, kPart = (N + 8 * kParts - 1) / (8 * kParts) * 8;
  static constexpr int kTasks = kParts * kTiles, kGroups = kWarps / 4;
  static constexpr int kSteps = (K + 7) / 8, kBatches = (kSteps + 13) / 14, kBatch = (kSteps + kBatches - 1) / kBatches;
  using Sums = float[kPart / 2];
  A a;
  int thread;
  uint v[kBatch][4];

  WS_DEVICE int group() const { return __shfl_sync(~0u, thread >> 7, 0); }
  // This lane's two rows.
  WS_DEVICE int row(int task, int second) const {
    return task % kTiles * 64 + A::row((thread >> 5 & 3) * 2 + second, thread >> 2 & 7);
  }
  WS_DEVICE static uint part(float x) {
    if constexpr (!Rounds) return bits(x);
    return bits(rounded(x));
  }
  // Loads a part of the steps of a batch.
  WS_DEVICE void load(int task, int batch, int from = 0, int to = kBatch) {
    const int t = thread & 3, first = min(row(task, 0), M - 1), second = min(row(task, 1), M - 1);
#pragma unroll
    for (int s = 0; s < kBatch; ++s) {
      if (s < from || s >= to) continue;
      const int k = (batch * kBatch + s) * 8;
      v[s][0] = k < K ? part(a.at(first, k + t)) : 0u, v[s][1] = k < K ? part(a.at(second, k + t)) : 0u;
      v[s][2] = k + 4 < K ? part(a.at(first, k + 4 + t)) : 0u, v[s][3] = k + 4 < K ? part(a.at(second, k + 4 + t)) : 0u;
    }
  }
  WS_DEVICE WideProduct(const float* from, int thread_of, uint = 0) : a{from}, thread(thread_of) {}
  WS_DEVICE void prepare() { load(group(), 0); }
  WS_DEVICE void prepare_half(int half) { load(group(), 0, half * (kBatch / 2), half ? kBatch : kBatch / 2); }
  WS_DEVICE void multiply(int task, bool prepared, uint b, Sums& c) {
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
      if (batch > 0 || !prepared) load(task, batch);
#pragma unroll
      for (int s = 0; s < kBatch; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(v[s][i]));
      const uint from = b + static_cast<uint>(task / kTiles * kPart * 16);
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < kBatch; ++s) {
        const int step = batch * kBatch + s;
        constexpr uint chunk = Second::kStride * 4;
        // The last chunk of an odd number is multiplied by zeros, too.
        if (step < kSteps)
          grid_product(c, v[s][0], v[s][1], v[s][2], v[s][3],
                       matrix(from + 2 * static_cast<uint>(step) * chunk, 8 * step + 4 < K ? chunk : 0, 128), step > 0);
      }
      wgmma_commit();
      wgmma_wait<0>();
    }
  }
  template <class Done>
  WS_DEVICE void hand_out_all(int task, const Sums& c, Done done) const {
#pragma unroll
    for (int j = 0; j < kPart / 8; ++j) hand_out<M, N>(thread & 3, c + 4 * j, row(task, 0), row(task, 1), task / kTiles * kPart + 8 * j, done);
  }
  // Passes four adjacent rows of a column to `done`. Four lanes hold four rows of four columns: they turn them.
  template <class Done>
  WS_DEVICE void hand_out_turned(int task, const Sums& c, Done done) const {
    const bool odd = thread & 4, high = thread & 8;
    const int row = task % kTiles * 64 + A::row((thread >> 5 & 3) * 2 + (high ? 1 : 0), thread >> 2 & 4);
#pragma unroll
    for (int j = 0; j < kPart / 8; ++j) {
      const float* q = c + 4 * j;
      const float x = __shfl_xor_sync(~0u, odd ? q[0] : q[1], 4), y = __shfl_xor_sync(~0u, odd ? q[2] : q[3], 4);
      const float a0 = odd ? x : q[0], a1 = odd ? q[1] : x, b0 = odd ? y : q[2], b1 = odd ? q[3] : y;
      const float u = __shfl_xor_sync(~0u, high ? a0 : b0, 8), v = __shfl_xor_sync(~0u, high ? a1 : b1, 8);
      const int column = task / kTiles * kPart + 8 * j + 2 * (thread & 3) + (odd ? 1 : 0);
      if (row < M && column < N) done(row, column, high ? make_float4(u, v, b0, b1) : make_float4(a0, a1, u, v));
    }
  }
  // Passes nothing to `done` before `allowed` returns true. Every thread calls `allowed` once.
  template <bool Turned = false, class Allowed, class Done>
  WS_DEVICE void run_if(const float* b, Allowed allowed, Done done) {
    const uint second = shared_address(b);
    int task = group();
    Sums c;
    multiply(task, true, second, c);
    if (!allowed()) return;
    const auto hand = [&](int of) {
      if constexpr (Turned)
        hand_out_turned(of, c, done);
      else
        hand_out_all(of, c, done);
    };
    hand(task);
    if constexpr (kTasks > kGroups) {
#pragma unroll 1
      for (task += kGroups; task < kTasks + group(); task += kGroups) {
        // A group without a task computes the last one again: products in a branch need many registers.
        const int real = min(task, kTasks - 1);
        multiply(real, false, second, c);
        if (task < kTasks) hand(real);
      }
    }
  }
};

// The same with both operands in shared memory. One group takes 64 rows and all columns, which reads each operand once.
template <int M, int N, int K, class First, class Second>
struct MemoryProduct {
  static constexpr int kTiles = (M + 63) / 64, kGroups = kWarps / 4;
  const float* a;
  int thread;
  uint zeros;  // a chunk of zeros behind all tiles

  WS_DEVICE MemoryProduct(const float* from, int thread_of, uint zeros_at) : a(from), thread(thread_of), zeros(zeros_at) {}
  WS_DEVICE void prepare_half(int) {}
  template <class Allowed, class Done>
  WS_DEVICE void run_if(const float* b, Allowed allowed, Done done) const {
    const int group = __shfl_sync(~0u, thread >> 7, 0);
    const uint first = shared_address(a), second = shared_address(b);
    constexpr uint first_chunk = First::kStride * 4, second_chunk = Second::kStride * 4;
    if (!allowed()) return;
#pragma unroll 1
    for (int tile = group; tile < kTiles; tile += kGroups) {
      float c[N / 2];
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < (K + 7) / 8; ++step) {
        const uint at = 2 * static_cast<uint>(step), from = first + at * first_chunk;
        // The last chunk of an odd number comes twice, the second time multiplied by zeros.
        const bool both = 8 * step + 4 < K;
        grid_forward(c, matrix(from + static_cast<uint>(tile) * 1024, both ? first_chunk : zeros - from, 128),
                     matrix(second + at * second_chunk, both ? second_chunk : 0, 128), step > 0);
      }
      wgmma_commit();
      wgmma_wait<0>();
      const int row = tile * 64 + (thread >> 5 & 3) * 16 + (thread >> 2 & 7);
#pragma unroll
      for (int j = 0; j < N / 8; ++j) hand_out<M, N>(thread & 3, c + 4 * j, row, row + 8, 8 * j, done);
    }
  }
};

// The same with mma.sync, for fp32 and for GPUs without wgmma.
template <int M, int N, int K, class A, class Second, bool Rounds>
struct SplitProduct {
  static constexpr int kRows = (M + 15) / 16, kColumns = (N + 7) / 8;
  static WS_BOTH constexpr int together() {
    for (int columns = 1; columns < 8 && columns < kColumns; ++columns)
      if (kRows * ((kColumns + columns - 1) / columns) <= kWarps) return columns;
    return kColumns < 8 ? kColumns : 8;
  }
  static constexpr int kTogether = together(), kTasks = kRows * ((kColumns + kTogether - 1) / kTogether);
  using Sums = float[kTogether][4];
  A a;
  int thread;

  WS_DEVICE SplitProduct(const float* from, int thread_of, uint = 0) : a{from}, thread(thread_of) {}
  WS_DEVICE void prepare() {}
  WS_DEVICE void prepare_half(int) {}
  // The last task of a row begins earlier if there are too few columns for it, and hands out only those that are left. A
  // branch for each column would cost more than the columns that two tasks compute.
  static WS_DEVICE int first_column(int task) { return min(task / kRows * kTogether, kColumns - kTogether); }
  WS_DEVICE void multiply(int task, const Second& b, Sums& c) const {
    const int g = thread >> 2 & 7, t = thread & 3;
    const int first = min(task % kRows * 16 + g, M - 1), second = min(task % kRows * 16 + g + 8, M - 1);
    int columns[kTogether];
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      columns[n] = min((first_column(task) + n) * 8 + g, N - 1);
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] = 0.f;
    }
#pragma unroll 4
    for (int k = 0; k < K; k += 8) {
      const bool whole = k + 4 < K;
      const auto part = [&](int i, int at) { return Rounds ? rounded(a.at(i, at)) : a.at(i, at); };
      const float values[4] = {part(first, k + t), part(second, k + t), whole ? part(first, k + 4 + t) : 0.f,
                               whole ? part(second, k + 4 + t) : 0.f};
#pragma unroll
      for (int n = 0; n < kTogether; ++n)
        persistent::multiply(c[n], values, b.at(columns[n], k + t), whole ? b.at(columns[n], k + 4 + t) : 0.f);
    }
  }
  template <class Done>
  WS_DEVICE void hand_out_all(int task, const Sums& c, Done done) const {
    const int row = task % kRows * 16 + (thread >> 2 & 7), first = first_column(task);
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      if (kColumns % kTogether != 0 && first + n < task / kRows * kTogether) continue;
      hand_out<M, N>(thread & 3, c[n], row, row + 8, (first + n) * 8, done);
    }
  }
  template <bool Turned = false, class Allowed, class Done>
  WS_DEVICE void run_if(const float* b, Allowed allowed, Done done) {
    if (!allowed()) return;
#pragma unroll 1
    for (int task = thread >> 5; task < kTasks; task += kWarps) {
      Sums c;
      multiply(task, Second{b}, c);
      hand_out_all(task, c, done);
    }
  }
};
template <bool Wide, int M, int N, int K, class A, class Second, bool Rounds>
struct ProductOf {
  using Type = SplitProduct<M, N, K, A, Second, Rounds>;
};
template <int M, int N, int K, class A, class Second, bool Rounds>
struct ProductOf<true, M, N, K, A, Second, Rounds> {
  using Type = WideProduct<M, N, K, A, Second, Rounds>;
};
template <bool Same, class A, class Otherwise>
struct Either {
  using Type = A;
};
template <class A, class Otherwise>
struct Either<false, A, Otherwise> {
  using Type = Otherwise;
};
// Partial sums of units of layer L by rows, of gradients of its inputs by rows, and gradients of its tile.
template <int L>
using Forward =
    typename Either<kRaised && choice::forward_in_memory,
                    MemoryProduct<units(L), B, values(L), AlongChunks<tile_chunk(L)>, AlongChunks<kChunk>>,
                    typename ProductOf<kWide, units(L), B, values(L), UnitsOfTile<L>, AlongChunks<kChunk>, !kRaised>::Type>::Type;
template <int L>
using Backward = typename ProductOf<kWide, values(L), B, units(L), InputsOfTile<L>, AlongChunks<kChunk>, !kRaised>::Type;
template <int L>
using TileGradient =
    typename ProductOf<kWide, values(L), units(L), B, AcrossChunks,
                       typename Either<kWide, AlongChunks<turned_chunk(L)>, AcrossChunks>::Type, false>::Type;
// The first product of the backward pass of a layer.
template <int L>
using FirstProduct = typename Either<(L > 1), Backward<(L > 1 ? L : 2)>, TileGradient<L>>::Type;
WS_DEVICE bool always() { return true; }
// Cycles from the end of the outputs' sums to the first question for the sums of other clusters. Earlier questions slow the
// messages: without the pause 784x5 takes 1.3 µs more, three layers of 1024 take 1.0.
constexpr uint kPause = 700;
using FarSums = Either<kShort, uint2, float>::Type;  // four of them, or one
using FarWords = Either<kShort, uint2, uint4>::Type;

WS_DEVICE float4 at4(const float* p) { return *reinterpret_cast<const float4*>(p); }
WS_DEVICE void set4(float* p, const float4& v) { *reinterpret_cast<float4*>(p) = v; }
WS_DEVICE float4 sum(const float4& a, const float4& b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
WS_DEVICE float4 either(bool first, const float4& a, const float4& b) {
  return make_float4(first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w);
}
// Sixteen lanes share four units and four rows: lane 4q + p owns unit q and row p.
// Adds what the four lanes of a unit hold for the four rows, and returns the sum of this lane's row.
WS_DEVICE float sum_of_row(int lane, const float4& v) {
  const bool high = lane & 2, odd = lane & 1;
  const float x = (high ? v.z : v.x) + __shfl_xor_sync(~0u, high ? v.x : v.z, 2);
  const float y = (high ? v.w : v.y) + __shfl_xor_sync(~0u, high ? v.y : v.w, 2);
  return (odd ? y : x) + __shfl_xor_sync(~0u, odd ? x : y, 1);
}
// Returns the values of the four units of this lane's row.
WS_DEVICE float4 units_of_row(int lane, float v) {
  const float next = __shfl_xor_sync(~0u, v, 4);
  const float x = lane & 4 ? next : v, y = lane & 4 ? v : next;
  const float z = __shfl_xor_sync(~0u, x, 8), w = __shfl_xor_sync(~0u, y, 8);
  return lane & 8 ? make_float4(z, w, x, y) : make_float4(x, y, z, w);
}
constexpr int kRowQuads = R / 4;
// Rounds of the loop in which sixteen lanes take four units of four own rows.
WS_BOTH constexpr int rounds(int l) { return (units(l) / 4 * kRowQuads * 16 + kThreads - 1) / kThreads; }
template <int L>
constexpr int kSlopeAt = kSlopeAt<L - 1> + rounds(L - 1);
template <>
constexpr int kSlopeAt<1> = 0;
constexpr bool kBits = choice::activation == kRelu, kSlopes = !kBits && choice::activation != kNone;

struct OutputOwner {
  float w = 0.f, m = 0.f, v = 0.f;  // of the output weight that this thread updates
};

struct Training {
  const Arguments& a;
  const Block& block;
  int thread = static_cast<int>(threadIdx.x);
  bool well = true;  // false after a wait timed out
  int s = 0, turn = 0;
  uint number = 0;
  StepFactors factors{};
  OutputOwner own;
  StampLane stamps{a, static_cast<int>(blockIdx.x), kept(threadIdx.x == 0) != 0};

  WS_DEVICE float* biases() const { return block.part(choice::at_biases); }
  WS_DEVICE float* bias_moments(int i) const { return biases() + (1 + i) * kBiases; }
  // Slopes of the own rows, in the lanes of for_own_units. A slope of relu takes one bit.
  uint on[kHiddenLayers] = {};
  float slope[kSlopes ? kSlopeAt<kHiddenLayers + 1> : 1] = {};
  template <int L>
  WS_DEVICE void keep_slope(int round, float v) {
    if constexpr (kBits) on[L - 1] = (on[L - 1] & ~(1u << round)) | (v != 0.f ? 1u << round : 0u);
    if constexpr (kSlopes) slope[kSlopeAt<L> + round] = v;
  }
  // Calls f(round, r, j, exists) in all lanes: sixteen lanes share four units and four own rows. r and j are this
  // lane's own.
  template <int L, class F>
  WS_DEVICE void for_own_units(F f) {
    constexpr int groups = units(L) / 4 * kRowQuads;
#pragma unroll
    for (int round = 0; round < rounds(L); ++round) {
      const int group = (thread + round * kThreads) / 16;
      if (thread / 32 * 2 + round * (kThreads / 16) >= groups) break;  // a whole warp
      const int i = min(group, groups - 1);
      f(round, i % kRowQuads * 4 + (thread & 3), i / kRowQuads * 4 + (thread >> 2 & 3), group < groups);
    }
  }
  WS_DEVICE float* top() const { return block.part(choice::at_top); }             // own rows of the last hidden layer
  WS_DEVICE float* output_weights() const { return block.part(choice::at_output); }  // (units, O), rounded; then the biases
  WS_DEVICE float* output_gradients() const { return block.part(choice::at_dz); }  // own rows (R, O)
  WS_DEVICE int* places(int step) const { return reinterpret_cast<int*>(block.part(choice::at_places)) + (step & 1) * B; }
  WS_DEVICE float* targets(int step) const { return block.part(choice::at_targets) + (step & 1) * R * kTargets; }

  // A barrier that returns to every thread if a wait of one timed out.
  WS_DEVICE bool meet() {
    well = !__syncthreads_or(!well);
    return well;
  }
  // Waits until all messages of step `step` that count at a barrier have arrived.
  WS_DEVICE void receive(int barrier, int bytes, int what, int step) {
    stamps.begin(s, kPartWait, what);
    well &= wait(block.watch, block.barrier(barrier), step & 1, what, step);
    __syncwarp();
    if constexpr (kWide) stores_for_tensor_cores();  // what other blocks sent
    if (!meet()) return;
    stamps.resume();
    if (thread == 0) barrier_expect(block.barrier(barrier), bytes);
  }

  // ---- the rows of a step ----
  WS_DEVICE void find_rows(int step) const {
    for (int r = thread; r < B; r += kThreads) {
      const long long place = a.first_row + step * a.rows_onward + (r < a.batch ? r : 0);
      if (a.order)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(places(step) + r)), "l"(a.order + place)
                     : "memory");
      else
        places(step)[r] = static_cast<int>(place);
    }
  }
  // Starts loading rows, a part of them in each call. Each thread copies some chunks of 16 bytes.
  template <int Part, int Parts>
  WS_DEVICE void fetch_rows(int step, float* to) const {
    constexpr int each = choice::inputs_each / 4, rounds = (B * each + kThreads - 1) / kThreads, first = rounds * Part / Parts,
                  last = rounds * (Part + 1) / Parts;
#pragma unroll
    for (int k = first; k < last; ++k) {
      const int i = thread + k * kThreads, r = i / each, q = i % each;
      if (i >= B * each) break;
      copy16(shared_address(to + q * kChunk + r * 4),
             static_cast<const float*>(a.rows) + (static_cast<size_t>(places(step)[r]) * kC + block.rank) * choice::inputs_each + 4 * q);
    }
    if (Part + 1 < Parts) return;
    for (int i = thread; i < R * kTargets; i += kThreads) {
      const int r = static_cast<int>(block.rank) * R + i / kTargets;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(targets(step) + i)),
                   "l"(static_cast<const float*>(a.targets) + static_cast<size_t>(places(step)[r]) * kTargets + i % kTargets)
                   : "memory");
    }
    copies_commit();
  }

  // ---- forward ----
  // Sends partial sums of a unit, of four rows, to the owner of the rows.
  template <int L>
  WS_DEVICE void send_partials(int unit, int row, const float4& v) const {
    const uint to = static_cast<uint>(row / R);
    const uint base = in_block(block.shared, to) - block.shared;
    send4(base + shared_address(block.region(L - 1) + static_cast<int>(block.rank) * inbox_stride(L) + unit * R + row % R),
          base + block.barrier(L - 1), bits(v.x), bits(v.y), bits(v.z), bits(v.w));
  }
  // Calls `meanwhile` while the first loads are on their way.
  template <int L, class Meanwhile>
  WS_DEVICE void read_hidden(Meanwhile meanwhile) {
    stamps.begin(s, kPartWait, kWaitHidden);
    // The clusters that own some of the units that this block reads.
    const int begin = static_cast<int>(block.rank) * values(L), first = begin / units(L - 1),
              last = min((begin + values(L) - 1) / units(L - 1), kG - 1);
    if constexpr (!kTagged) {
      if (thread < (last - first + 1) * kC)
        well &= wait_for_flag(block.watch, block.hidden_flag(L - 1, first + thread / kC, thread % kC), number, kWaitHidden, s);
      if (!meet()) return;
    }
    constexpr int each = values(L) / 4, pitch = kG * units(L - 1), together = (B * each + kThreads - 1) / kThreads;
    const float* from = block.far + kHiddenAt<L - 1> + begin;
    float* to = block.slot(L, turn);
    uint4 words[together];
    const auto is = [&](int k) { return thread + k * kThreads < B * each && begin + (thread + k * kThreads) % each * 4 < pitch; };
    const auto place = [&](int k) -> const float* {
      const int i = thread + k * kThreads;
      return is(k) ? from + i / each * pitch + i % each * 4 : nullptr;
    };
    load_far(words, place);
    meanwhile();
    well &= read_far(block.watch, tag_of(number), kWaitHidden, s, words, place, true);
#pragma unroll
    for (int k = 0; k < together; ++k) {
      const int i = thread + k * kThreads;
      if (is(k)) set4(to + i % each * kChunk + i / each * 4, values_of(words[k]));
    }
    if constexpr (kWide) stores_for_tensor_cores();
    meet();
    stamps.resume();
  }
  // The owners add the partial sums of their rows and activate.
  template <int L>
  WS_DEVICE void add_partials() {
    // The new output weights came long ago.
    if constexpr (L == kHiddenLayers)
      if (s > 0) well &= wait(block.watch, block.barrier(kOutputWeights), (s - 1) & 1, kWaitWeights, s - 1);
    receive(L - 1, kC * R * units(L) * 4, kWaitPartials, s);
    if constexpr (L == kHiddenLayers)
      if (s > 0 && well && thread == 0) barrier_expect(block.barrier(kOutputWeights), (kTop + 1) * O * 4);
    for_own_units<L>([&](int round, int r, int j, bool exists) {
      const float* from = block.region(L - 1) + j * R + (r & ~3);
      float4 sums = at4(from + (thread & 3) * inbox_stride(L));
#pragma unroll
      for (int k = 4; k < kC; k += 4) sums = sum(sums, at4(from + ((thread & 3) + k) * inbox_stride(L)));
      const float z = sum_of_row(thread, sums) + biases()[kBiasAt<L> + j];
      const bool is = block.cluster * units(L) + j < width(L);
      const float exact = activated(z);
      keep_slope<L>(round, is ? slope_at(z, exact) : 0.f);
      const float4 h = units_of_row(thread, is ? rounded(exact) : 0.f);
      if (!exists || (thread & 12) != 0) return;
      if constexpr (L == kHiddenLayers) {
        set4(top() + r * kTop + j, h);
      } else {
        float* to = block.far + kHiddenAt<L> + static_cast<long long>(static_cast<int>(block.rank) * R + r) * kG * units(L) +
                    block.cluster * units(L) + j;
        set_far(to, h, tag_of(number));
      }
    });
    __syncthreads();
    if (!kTagged && L < kHiddenLayers && thread == 0) raise(block.hidden_flag(L, block.cluster, static_cast<int>(block.rank)), number);
  }
  template <int L>
  WS_DEVICE void forward() {
    if constexpr (L <= kHiddenLayers) {
      stamps.begin(s, kPartForward, L - 1);
      thread = kept(thread);
      if constexpr (L > 1 && kScales) {
        if (owed) move_tile<L>(turn + 1);
        if constexpr (kWide) stores_for_tensor_cores();
        __syncthreads();
      }
      Forward<L> product(block.template tile<L>(), thread, block.shared + choice::at_zeros);
      product.prepare_half(0);
      if constexpr (L > 1) read_hidden<L>([&] { product.prepare_half(1); });
      if constexpr (L == 1) product.prepare_half(1);
      if (well && !(L == 1 && a.lose_message_at == s && blockIdx.x == 1))
        product.run_if(block.slot(L, turn), always, [&](int unit, int row, const float4& v) { send_partials<L>(unit, row, v); });
      if constexpr (L == 1)
        if (s > 0) move_output(s - 1), stamps.begin(s, kPartForward, 0);
      add_partials<L>();
      forward<L + 1>();
    }
  }

  // ---- the output layer, for the own rows ----
  WS_DEVICE uint2* far_outputs(int cluster) const {
    return reinterpret_cast<uint2*>(block.far + kOutputsAt) +
           (static_cast<long long>(((s & 1) * kC + static_cast<int>(block.rank)) * kG + cluster) * R) * O;
  }
  // A warp computes 16 outputs of 8 rows: the last warps, as the first ones have the losses of a row.
  WS_DEVICE void output_sums() {
    constexpr int tiles = (O + 15) / 16, tasks = tiles * ((R + 7) / 8);
    const int task = kWarps - 1 - (thread >> 5), g = thread >> 2 & 7, t = thread & 3;
    if (task >= tasks) return;
    const int o = task % tiles * 16 + g, r = task / tiles * 8;
    const float *first = output_weights() + min(o, O - 1), *second = output_weights() + min(o + 8, O - 1);
    const float* units = top() + min(r + g, R - 1) * kTop;
    float c[4] = {};
#pragma unroll 9
    for (int k = 0; k < kTop; k += 8) {
      const bool whole = k + 4 < kTop;
      const float w[4] = {first[(k + t) * O], second[(k + t) * O], whole ? first[(k + 4 + t) * O] : 0.f,
                          whole ? second[(k + 4 + t) * O] : 0.f};
      multiply(c, w, units[k + t], whole ? units[k + 4 + t] : 0.f);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = r + 2 * t + (i & 1), output = o + (i & 2) * 4;
      if (row < R && output < O) write_numbered(far_outputs(block.cluster) + row * O + output, c[i], number);
    }
  }
  // Weights of the small products are rounded in the same way as weights of the large ones.
  WS_DEVICE static float operand(float w) { return choice::precision == kTf32 ? __uint_as_float(bits(to_tf32(w)) & 0xffffe000u) : rounded(w); }

  // One warp per row; its lanes hold the outputs. Writes dz of the outputs to shared memory.
  WS_DEVICE void losses(float scale) {
    const int lane = thread & 31;
    constexpr int each = (O + 31) / 32;
    for (int r = thread >> 5; r < R; r += kWarps) {
      const bool valid = static_cast<int>(block.rank) * R + r < a.batch;
      float z[each], d[each], top_of_row = __int_as_float(0xff800000);
#pragma unroll
      for (int q = 0; q < each; ++q) {
        const int o = lane + 32 * q;
        z[q] = __int_as_float(0xff800000);
        if (o >= O) continue;
        float parts[kG];
        stamps.begin(s, kPartWait, kWaitPartials);
        for (const uint begin = cycles(); cycles() - begin < kPause;) {
        }
        well &= wait_until(block.watch, kWaitPartials, s, [&] {
          bool all = true;
#pragma unroll
          for (int k = 0; k < kG; ++k) all &= peek_numbered(far_outputs(k) + r * O + o, number, parts[k]);
          return all;
        });
        stamps.resume();
        z[q] = output_weights()[kTop * O + o];
#pragma unroll
        for (int k = 0; k < kG; ++k) z[q] += parts[k];
        top_of_row = fmaxf(top_of_row, z[q]);
      }
      const float* target = targets(s) + r * kTargets;
      float loss = 0.f, correct = 0.f;
      if constexpr (kClasses) {
        const int label = __float_as_int(target[0]);
        float total = 0.f, at_label = 0.f;
        int best = O;
#pragma unroll
        for (int k = 16; k > 0; k /= 2) top_of_row = fmaxf(top_of_row, __shfl_xor_sync(~0u, top_of_row, k));
#pragma unroll
        for (int q = each - 1; q >= 0; --q) {
          const int o = lane + 32 * q;
          d[q] = o < O ? exp_of(z[q] - top_of_row) : 0.f;
          total += d[q];
          if (o == label) at_label = z[q];
          if (o < O && z[q] == top_of_row) best = o;
        }
#pragma unroll
        for (int k = 16; k > 0; k /= 2) {
          total += __shfl_xor_sync(~0u, total, k);
          at_label += __shfl_xor_sync(~0u, at_label, k);
          best = min(best, __shfl_xor_sync(~0u, best, k));
        }
        const float factor = scale / total;
#pragma unroll
        for (int q = 0; q < each; ++q) d[q] = d[q] * factor - (lane + 32 * q == label ? scale : 0.f);
        loss = log_of(total) + top_of_row - at_label, correct = best == label;
      } else {
#pragma unroll
        for (int q = 0; q < each; ++q) {
          const int o = lane + 32 * q;
          const float difference = o < O ? z[q] - target[o] : 0.f;
          d[q] = difference * 2.f * scale / static_cast<float>(O);
          loss += difference * difference / static_cast<float>(O);
        }
#pragma unroll
        for (int k = 16; k > 0; k /= 2) loss += __shfl_xor_sync(~0u, loss, k);
      }
#pragma unroll
      for (int q = 0; q < each; ++q)
        if (lane + 32 * q < O) output_gradients()[r * O + lane + 32 * q] = valid ? operand(d[q]) : 0.f;
      float* sums = block.part(choice::at_sums) + 2 * r;
      if (lane == 0) sums[0] = valid ? loss : 0.f, sums[1] = valid ? correct : 0.f;
    }
    meet();
    if (block.cluster == 0 && thread == kThreads - 1) {
      float loss = 0.f, correct = 0.f;
      for (int r = 0; r < R; ++r) loss += block.part(choice::at_sums)[2 * r], correct += block.part(choice::at_sums)[2 * r + 1];
      float* out = a.partials + (static_cast<size_t>(s) * kC + block.rank) * 2;
      out[0] = loss, out[1] = correct;
    }
  }

  WS_DEVICE void check(float v) {
    if constexpr (kScales) {
      if (!(fabsf(v) < 3e38f)) infinite = true;
    }
  }
  bool infinite = false;

  // Sends dz of layer L, four units of an own row, to `Share` blocks of the cluster, beginning with `first`.
  template <int L, int Share>
  WS_DEVICE void send_gradient(int r, int j, const float4& dz, int first) const {
    constexpr int e = 2 * kHiddenLayers - L;
    const uint where =
        shared_address(block.region(e) + j / 4 * kChunk + (static_cast<int>(block.rank) * R + r) * 4);
#pragma unroll
    for (int i = 0; i < Share; ++i) {
      const uint to = static_cast<uint>(first + i) ^ block.rank, base = in_block(block.shared, to) - block.shared;
      send4(base + where, base + block.barrier(e), bits(dz.x), bits(dz.y), bits(dz.z), bits(dz.w));
    }
  }
  // Multiplies the gradient of a unit by the slope, and sends dz. The four lanes of a row send to a quarter of the
  // cluster each.
  template <int L>
  WS_DEVICE void send_times_slope(int round, int r, int j, bool exists, float gradient) {
    const float by = kBits ? static_cast<float>(on[L - 1] >> round & 1u) : kSlopes ? slope[kSlopes ? kSlopeAt<L> + round : 0] : 1.f;
    const bool is = block.cluster * units(L) + j < width(L);
    const float dz = by == 0.f || !is ? 0.f : rounded(gradient * by);
    check(dz);
    const float4 four = units_of_row(thread, dz);
    if (exists) send_gradient<L, kC / 4>(r, j & ~3, four, (thread >> 2 & 3) * (kC / 4));
  }
  // Where the first product of the backward pass of layer L has its first operand.
  template <int L>
  WS_DEVICE const float* first_operand() const {
    return L > 1 ? block.template tile<L>() : block.slot(1, turn);
  }
  // Computes dz of the last hidden layer.
  WS_DEVICE void top_gradient() {
    for_own_units<kHiddenLayers>([&](int round, int r, int j, bool exists) {
      float v = 0.f;
      const float *dz = output_gradients() + r * O, *w = output_weights() + j * O;
      if constexpr (O % 2 == 0) {
#pragma unroll 5
        for (int o = 0; o < O; o += 2) {
          const float2 d = *reinterpret_cast<const float2*>(dz + o), by = *reinterpret_cast<const float2*>(w + o);
          v += d.x * by.x, v += d.y * by.y;
        }
      } else {
#pragma unroll 5
        for (int o = 0; o < O; ++o) v += dz[o] * w[o];
      }
      send_times_slope<kHiddenLayers>(round, r, j, exists, v);
    });
    if constexpr (kScales)
      for (int i = thread; i < R * O; i += kThreads)
        if (!(fabsf(output_gradients()[i]) < 3e38f)) infinite = true;
  }
  // Sends the gradients of the output weights to their owners, after all threads have read the old weights.
  WS_DEVICE void send_output_gradients() {
    for (int i = thread; i < (kTop + 1) * O; i += kThreads) {
      const int j = i / O, o = i % O;
      float gradient = 0.f;
      for (int r = 0; r < R; ++r) gradient += (j < kTop ? top()[r * kTop + (j < kTop ? j : 0)] : 1.f) * output_gradients()[r * O + o];
      const uint base = in_block(block.shared, static_cast<uint>(j / kOwnRows)) - block.shared;
      send(base + shared_address(block.part(choice::at_output_inbox) + (static_cast<int>(block.rank) * kOwnRows + j % kOwnRows) * O + o),
           base + block.barrier(kOutputGradients), gradient);
    }
  }

  // ---- backward ----
  template <int L>
  WS_DEVICE FarSums* far_partials(int to_cluster, int from_cluster, int row, int j) const {
    const int rows = ((to_cluster * kG + from_cluster) * kC + row / R) * units(L - 1) + j;
    return reinterpret_cast<FarSums*>(block.far + kPartialsAt<L>) + (static_cast<long long>(rows) * R + row % R) / (kShort ? 4 : 1);
  }
  // Computes the gradients of a tile and updates its weights. `at`: the turn of the step. move_tile_if calls `allowed`
  // once in between.
  template <int L>
  WS_DEVICE void move_tile(int at) {
    move_tile_if<L>(at, always);
  }
  template <int L, class Allowed>
  WS_DEVICE void move_tile_if(int at, Allowed allowed) {
    TileGradient<L> product(block.slot(L, at), thread);
    product.prepare();
    update_tile<L>(product, allowed);
  }
  // Four weights that update_tile moves together.
  WS_DEVICE static void load_four(float (&v)[4], const float* from) {
    if constexpr (kWide) {
      const float4 q = at4(from);
      v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    } else {
#pragma unroll
      for (int q = 0; q < 4; ++q) v[q] = from[4 * q];
    }
  }
  WS_DEVICE static void store_four(float* to, const float (&v)[4]) {
    if constexpr (kWide) {
      set4(to, make_float4(v[0], v[1], v[2], v[3]));
    } else {
#pragma unroll
      for (int q = 0; q < 4; ++q) to[4 * q] = v[q];
    }
  }
  template <int L, class Allowed>
  WS_DEVICE void update_tile(TileGradient<L>& product, Allowed allowed) {
    constexpr int e = 2 * kHiddenLayers - L;
    const LayerState& state = a.layers[L - 1];
    float* tile = block.template tile<L>();
    bool moves = true;
    // Products with wgmma pass four inputs of a unit, which lie side by side in the tile; others four units of an input.
    product.template run_if<kWide>(
        block.region(e), [&] { return moves = allowed(); },
        [&](int row, int column, const float4& gradient) {
          constexpr int inputs = kWide ? 1 : 0, columns = kWide ? 0 : 1;
          const float g[4] = {gradient.x, gradient.y, gradient.z, gradient.w};
          // What other layers left in these rows is no input. All other inputs and units that do not exist are zero.
          if (L > 1 && input_of<L>(row) >= width(L - 1)) return;
          float* stored = tile + in_tile(L, row, column);
          [[maybe_unused]] float* m = block.part(choice::at_moments) + (stored - block.part(choice::at_tiles));
          [[maybe_unused]] float* v = m + (choice::state_shared ? choice::tile_floats : 0);
          constexpr bool shared = choice::state_shared || choice::optimizer == kSgd;
          float w[4], first[4] = {}, second[4] = {};
          load_four(w, stored);
          if constexpr (shared && kMoves) load_four(first, m);
          if constexpr (shared && kSquares) load_four(second, v);
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            const int input = input_of<L>(row + q * inputs), unit = block.cluster * units(L) + column + q * columns;
            const bool is = !(kSquares || !shared) || (input < width(L - 1) && unit < width(L));
            w[q] = lowered(w[q]);
            if constexpr (shared) {
              if (is) persistent::move(a, factors, true, w[q], first[q], second[q], g[q]);
            } else if (is) {
              const long long at = static_cast<long long>(input) * width(L) + unit;
              float one = __ldcg(state.w_m + at), two = kSquares ? __ldcg(state.w_v + at) : 0.f;
              persistent::move(a, factors, true, w[q], one, two, g[q]);
              state.w_m[at] = one;
              if constexpr (kSquares) state.w_v[at] = two;
            }
            w[q] = raised(w[q]);
          }
          store_four(stored, w);
          if constexpr (shared && kMoves) store_four(m, first);
          if constexpr (shared && kSquares) store_four(v, second);
        });
    if constexpr (kWide) stores_for_tensor_cores();
    if constexpr (choice::bias) {
      if (!moves) return;
      for (int j = thread; j < units(L); j += kThreads) {
        float gradient = 0.f;
        if constexpr (kWide) {
#pragma unroll 4
          for (int r = 0; r < B / 4; ++r) {
            const float4 q = at4(block.region(e) + r * turned_chunk(L) + 4 * j);
            gradient += (q.x + q.y) + (q.z + q.w);
          }
        } else {
#pragma unroll 8
          for (int r = 0; r < B; ++r) gradient += block.region(e)[(j >> 2) * kChunk + 4 * r + (j & 3)];
        }
        float none = 0.f;
        const int i = kBiasAt<L> + j;
        persistent::move(a, factors, false, biases()[i], kMoves ? bias_moments(0)[i] : none, kSquares ? bias_moments(1)[i] : none,
                         gradient);
      }
    }
  }
  // Returns the layer input that belongs to a row of the tile, or a large number if there is none.
  template <int L>
  WS_DEVICE int input_of(int row) const {
    if (L == 1 && row >= choice::inputs_own) return 1 << 24;
    return static_cast<int>(block.rank) * (L == 1 ? choice::inputs_own : values(L)) + row;
  }
  // `product`: the first product of the layer, prepared.
  template <int L, class Product>
  WS_DEVICE void backward(int next_step, Product& product) {
    constexpr int e = 2 * kHiddenLayers - L;
    stamps.begin(s, kPartBackward, L - 1);
    thread = kept(thread);
    use_wait<L>(next_step);
    if constexpr (L > 1) {
      TileGradient<L> gradient(block.slot(L, turn), thread);
      if constexpr (!kScales) gradient.prepare();
      receive(e, B * units(L) * 4, kWaitGradients, s);
      if (well)
        product.run_if(block.region(e), always, [&](int input, int row, const float4& v) {
          const int unit = static_cast<int>(block.rank) * values(L) + input, to = unit / units(L - 1);
          if (to >= kG) return;
          set_far(far_partials<L>(to, block.cluster, row, unit % units(L - 1)), v, kShort ? number : tag_of(number));
        });
      // Other warps may still multiply gradients by this tile.
      turn_gradients<L>();
      if (!kTagged && well && thread == 0) raise(block.partial_flag(L, static_cast<int>(block.rank), block.cluster), number);
      // In fp16 the update comes a step later.
      if constexpr (!kScales) update_tile<L>(gradient, always);
      // The messages that others sent meanwhile arrive while the next product is prepared.
      FarWords words[kFarEach];
      if constexpr (kTagged) load_far(words, gradients_from<L - 1>(0));
      FirstProduct<L - 1> next(first_operand<L - 1>(), thread);
      if constexpr (!kScales || L > 2) next.prepare();
      stamps.begin(s, kPartWait, kWaitSums);
      // The ranks that read some of the units that this cluster owns.
      const int begin = block.cluster * units(L - 1), first = begin / values(L),
                last = min((begin + units(L - 1) - 1) / values(L), kC - 1);
      if (!kTagged && thread < (last - first + 1) * kG)
        well &= wait_for_flag(block.watch, block.partial_flag(L, first + thread / kG, thread % kG), number, kWaitSums, s);
      if (meet()) add_gradients<L - 1>(words);
      stamps.resume();
      backward<L - 1>(next_step, next);
    } else {
      receive(e, B * units(L) * 4, kWaitGradients, s);
      if constexpr (kHiddenLayers == 1) send_output_gradients();
      turn_gradients<1>();
      if constexpr (!kScales) update_tile<1>(product, always);
      if constexpr (kHiddenLayers == 1) __syncthreads(), fetch_next<0, 1>(next_step);
    }
  }
  // Turns the gradients of layer L, so that rows lie along k of the product for the tile. Ends with a barrier.
  template <int L>
  WS_DEVICE void turn_gradients() {
    constexpr int chunks = units(L) / 4, quads = chunks * (B / 4), each = (quads + kThreads - 1) / kThreads;
    if constexpr (kWide) {
      float* region = block.region(2 * kHiddenLayers - L);
      float4 q[each][4];
#pragma unroll
      for (int n = 0; n < each; ++n) {
        const int i = thread + n * kThreads;
        if (i >= quads) continue;
#pragma unroll
        for (int k = 0; k < 4; ++k) q[n][k] = at4(region + i % chunks * kChunk + (i / chunks * 4 + k) * 4);
      }
      __syncthreads();
#pragma unroll
      for (int n = 0; n < each; ++n) {
        const int i = thread + n * kThreads;
        if (i >= quads) continue;
        float* to = region + i / chunks * turned_chunk(L) + i % chunks * 16;
        const float4 turned[4] = {make_float4(q[n][0].x, q[n][1].x, q[n][2].x, q[n][3].x),
                                  make_float4(q[n][0].y, q[n][1].y, q[n][2].y, q[n][3].y),
                                  make_float4(q[n][0].z, q[n][1].z, q[n][2].z, q[n][3].z),
                                  make_float4(q[n][0].w, q[n][1].w, q[n][2].w, q[n][3].w)};
        // Lanes begin with different units, so that they write to different banks.
        const int shift = i % chunks >> 1 & 3;
        float4 by_two[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) by_two[k] = either(shift & 2, turned[k ^ 2], turned[k]);
#pragma unroll
        for (int k = 0; k < 4; ++k) set4(to + 4 * (k ^ shift), either(shift & 1, by_two[k ^ 1], by_two[k]));
      }
      stores_for_tensor_cores();
    }
    __syncthreads();
  }
  // Starts loading a part of the next rows: the last hidden layer no longer needs its input, or there is one more buffer.
  template <int Part, int Parts>
  WS_DEVICE void fetch_next(int next_step) {
    if (next_step < a.steps) fetch_rows<Part, Parts>(next_step, block.slot(1, turn + kSlots - 1));
  }
  // What a block does while the gradients of layer L are on their way.
  template <int L>
  WS_DEVICE void use_wait(int next_step) {
    constexpr int parts = kHiddenLayers > 3 ? kHiddenLayers - 2 : 1;
    if constexpr (L == kHiddenLayers - 1) send_output_gradients();
    if constexpr (L <= parts && L < kHiddenLayers) fetch_next<parts - L, parts>(next_step);
  }
  // Returns where this lane finds the partial sums of a round: every fourth cluster's, of a unit and four rows. Null
  // if there are none.
  static constexpr int kFarEach = (kG + 3) / 4;
  template <int L>
  WS_DEVICE auto gradients_from(int round) const {
    constexpr int groups = units(L) / 4 * kRowQuads;
    const int i = min((thread + round * kThreads) / 16, groups - 1), j = i / kRowQuads * 4 + (thread >> 2 & 3), part = thread & 3;
    const bool is = thread / 32 * 2 + round * (kThreads / 16) < groups && block.cluster * units(L) + j < kC * values(L + 1);
    const FarSums* first = far_partials<L + 1>(block.cluster, part, static_cast<int>(block.rank) * R + i % kRowQuads * 4, j);
    return [=](int k) -> const FarSums* {
      return is && part + 4 * k < kG ? first + k * (4 * B * units(L) / (kShort ? 4 : 1)) : nullptr;
    };
  }
  // The owners of layer L add the partial sums that the clusters of the layer above computed. `words`: what was read
  // for the first round.
  template <int L>
  WS_DEVICE void add_gradients(FarWords (&words)[kFarEach]) {
    for_own_units<L>([&](int round, int r, int j, bool exists) {
      well &= read_far(block.watch, kShort ? number : tag_of(number), kWaitSums, s, words, gradients_from<L>(round), kTagged && round == 0);
      float4 v = values_of(words[0]);
#pragma unroll
      for (int k = 1; k < kFarEach; ++k) v = sum(v, values_of(words[k]));
      send_times_slope<L>(round, r, j, exists, sum_of_row(thread, v));
    });
  }

  // fp16: tiles above the first layer are updated when the next step needs them.
  bool owed = false, skips = false;
  template <int L>
  WS_DEVICE void move_owed_tiles() {
    if constexpr (kScales && L <= kHiddenLayers) {
      if (owed) move_tile<L>(turn + 1);
      move_owed_tiles<L + 1>();
    }
  }
  // fp16: every block publishes if one of its gradients was infinite; any_infinite reads all of them.
  WS_DEVICE void report_infinite() {
    stamps.begin(s, kPartUpdate, 0);
    const bool mine = __syncthreads_or(infinite);
    infinite = false;
    if (thread == 0) raise(block.verdict_flag(static_cast<int>(blockIdx.x)), 2 * number + (mine ? 1u : 0u));
  }
  WS_DEVICE bool any_infinite() {
    uint found = 0;
    if (thread < kBlocks)
      well &= wait_until(block.watch, kWaitGradients, s, [&] {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(block.verdict_flag(thread)) : "memory");
        return found >> 1 == (number & 0x7fffffffu);
      });
    const bool any = __syncthreads_or(found & 1u);
    meet();
    return any;
  }

  // The owners of output weights add the gradients of the cluster, update their weights and send them. They do so in
  // the next step, while partial sums are on their way.
  WS_DEVICE void move_output(int step) {
    constexpr int most = kOwnRows * O;
    stamps.begin(s, kPartUpdate, kHiddenLayers);
    const int rows = max(0, min(kOwnRows, kTop + 1 - static_cast<int>(block.rank) * kOwnRows));
    // Without rows no message comes: the barrier would complete at once each time, and threads could miss that.
    if (rows == 0) return;
    well &= wait(block.watch, block.barrier(kOutputGradients), step & 1, kWaitSums, step);
    if (well && thread == 0) barrier_expect(block.barrier(kOutputGradients), kC * rows * O * 4);
    if (!well || thread >= rows * O) return;
    const int j = static_cast<int>(block.rank) * kOwnRows + thread / O;
    float gradient = 0.f;
#pragma unroll
    for (int k = 0; k < kC; ++k) gradient += block.part(choice::at_output_inbox)[k * most + thread];
    const bool is_bias = j == kTop;
    if (!skips && (is_bias ? choice::bias : block.cluster * kTop + j < width(kHiddenLayers)))
      persistent::move(a, factors, !is_bias, own.w, own.m, own.v, gradient);
#pragma unroll
    for (int i = 0; i < kC; ++i) {
      const uint base = in_block(block.shared, static_cast<uint>(i) ^ block.rank) - block.shared;
      send(base + shared_address(output_weights() + j * O + thread % O), base + block.barrier(kOutputWeights), is_bias ? own.w : operand(own.w));
    }
  }

  // ---- weights between device memory and this block ----
  template <class F>
  WS_DEVICE void each_output(F f) {
    const LayerState& l = a.layers[kHiddenLayers];
    const int j = static_cast<int>(block.rank) * kOwnRows + thread / O, unit = block.cluster * kTop + j;
    if (thread >= kOwnRows * O || j > kTop) return;
    const bool is_bias = j == kTop;
    if (is_bias ? !choice::bias : unit >= width(kHiddenLayers)) return;
    const long long at = is_bias ? thread % O : static_cast<long long>(unit) * O + thread % O;
    f(own.w, (is_bias ? l.b : l.w) + at);
    if constexpr (kMoves) f(own.m, (is_bias ? l.b_m : l.w_m) + at);
    if constexpr (kSquares) f(own.v, (is_bias ? l.b_v : l.w_v) + at);
  }
  template <int L, class F>
  WS_DEVICE void each_parameter(F f) {
    if constexpr (L <= kHiddenLayers) {
      const LayerState& l = a.layers[L - 1];
      constexpr int copies = choice::state_shared ? 1 + kMoves + kSquares : 1;
      float* const weights[3] = {l.w, l.w_m, l.w_v};
      float* const offsets[3] = {l.b, l.b_m, l.b_v};
#pragma unroll
      for (int copy = 0; copy < copies; ++copy) {
        float* tile = copy == 0 ? block.template tile<L>() : block.part(choice::at_moments) + (copy - 1) * choice::tile_floats + kTileAt<L>;
        for (int i = thread; i < values(L) * units(L); i += kThreads) {
          const int row = i / units(L), column = i % units(L), input = input_of<L>(row), unit = block.cluster * units(L) + column;
          if (input < width(L - 1) && unit < width(L))
            f(tile[in_tile(L, row, column)], weights[copy] + static_cast<long long>(input) * width(L) + unit, copy == 0);
        }
      }
      if constexpr (choice::bias) {
#pragma unroll
        for (int copy = 0; copy < 1 + kMoves + kSquares; ++copy)
          for (int j = thread; j < units(L); j += kThreads) {
            const int unit = block.cluster * units(L) + j;
            if (unit < width(L)) f(biases()[copy * kBiases + kBiasAt<L> + j], offsets[copy] + unit, false);
          }
      }
      each_parameter<L + 1>(f);
    }
  }
  WS_DEVICE void begin() {
    for (int i = thread; i < choice::shared_bytes / 4; i += kThreads) block.part(0)[i] = 0.f;
    __syncthreads();
    for (int i = thread; i < choice::tile_floats; i += kThreads) block.part(choice::at_tiles)[i] = raised(0.f);
    __syncthreads();
    each_parameter<1>([](float& here, const float* there, bool in_tile) { here = in_tile ? raised(*there) : *there; });
    each_output([](float& here, const float* there) { here = *there; });
    const LayerState& l = a.layers[kHiddenLayers];
    for (int i = thread; i < kTop * O; i += kThreads)
      if (block.cluster * kTop + i / O < width(kHiddenLayers))
        output_weights()[i] = operand(l.w[static_cast<long long>(block.cluster * kTop + i / O) * O + i % O]);
    if (choice::bias)
      for (int o = thread; o < O; o += kThreads) output_weights()[kTop * O + o] = l.b[o];
    if (thread == 0) {
      for (int i = 0; i < kBarriers; ++i) barrier_init(block.barrier(i), 1);
      barriers_are_ready();
      expect_all<1>();
      const int rows = max(0, min(kOwnRows, kTop + 1 - static_cast<int>(block.rank) * kOwnRows));
      barrier_expect(block.barrier(kOutputGradients), kC * rows * O * 4);
      barrier_expect(block.barrier(kOutputWeights), (kTop + 1) * O * 4);
    }
    __syncthreads();
    find_rows(0);
    copies_commit(), copies_wait<0>();
    __syncthreads();
    if (a.steps > 1) find_rows(1);
    fetch_rows<0, 1>(0, block.slot(1, 0));
    cluster_meets();
  }
  template <int L>
  WS_DEVICE void expect_all() const {
    if constexpr (L <= kHiddenLayers) {
      barrier_expect(block.barrier(L - 1), kC * R * units(L) * 4);
      barrier_expect(block.barrier(2 * kHiddenLayers - L), B * units(L) * 4);
      expect_all<L + 1>();
    }
  }
  // A block stores its state only if all blocks have reached the end.
  WS_DEVICE void end() {
    if (well && thread == 0) raise(block.end_flag(static_cast<int>(blockIdx.x)), number);
    if (well && thread < kBlocks) well &= wait_for_flag(block.watch, block.end_flag(thread), number, kWaitWeights, a.steps);
    if (meet()) {
      each_parameter<1>([](float& here, float* there, bool in_tile) { *there = in_tile ? lowered(here) : here; });
      each_output([](float& here, float* there) { *there = here; });
    }
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, 1) ws_train(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Block block{memory,
                    static_cast<uint>(kept(static_cast<int>(shared_address(memory)))),
                    static_cast<uint>(kept(static_cast<int>(cluster_rank()))),
                    kept(static_cast<int>(blockIdx.x) / kC),
                    static_cast<uint*>(a.exchange),
                    static_cast<float*>(a.exchange) + kFlagBytes / 4,
                    {reinterpret_cast<volatile int*>(memory + choice::at_dead), a.limit, a.fault}};
  Training training{a, block};
  training.begin();
  LossScaling scaling;
  scaling.load(a);
  const float per_row = 1.f / static_cast<float>(a.batch);
  Rates rates(a);
#pragma unroll 1
  for (; training.s < a.steps && training.well; ++training.s) {
    const int s = training.s;
    // The compiler would compute addresses of all layers before the loop, for which there are no registers.
    training.thread = kept(training.thread);
    training.number = a.exchange_base + static_cast<uint>(s) + 1;
    const float rate = rates.take();
    training.stamps.begin(s, kPartRows);
    copies_wait<0>();
    if constexpr (kWide) stores_for_tensor_cores();
    __syncthreads();
    if (s + 2 < a.steps) training.find_rows(s + 2);
    training.forward<1>();
    training.stamps.begin(s, kPartLosses, kHiddenLayers);
    training.output_sums();
    FirstProduct<kHiddenLayers> product(training.first_operand<kHiddenLayers>(), training.thread);
    if constexpr (!kScales || kHiddenLayers > 1) product.prepare();
    training.losses(scaling.scale * per_row);
    training.stamps.begin(s, kPartBackward, kHiddenLayers);
    training.top_gradient();
    training.factors = step_factors(a, rate, scaling.inverse_of_scale(), a.first_step + s);
    training.backward<kHiddenLayers>(s + 1, product);
    if constexpr (kScales) {
      training.report_infinite();
      training.move_tile_if<1>(training.turn, [&] {
        training.skips = training.any_infinite();
        return !training.skips;
      });
      scaling.decide(training.skips);
      training.owed = !training.skips;
    }
    training.turn = training.turn == 0 ? kSlots - 1 : training.turn - 1;
  }
  training.stamps.end(a.steps);
  training.move_owed_tiles<2>();
  if (a.steps > 0 && training.well) training.move_output(a.steps - 1);
  // No block may leave while messages are in flight.
  if (a.steps > 0) training.receive(kOutputWeights, (kTop + 1) * O * 4, kWaitWeights, a.steps - 1);
  training.end();
  cluster_meets();
  if (blockIdx.x != 0 || !training.well) return;
  write_metrics(a, kThreads, kC, kC);
  if (kScales && threadIdx.x == 0) scaling.store(a);
}

// Converts rows to the layout that the kernel reads: cut into the slices of a cluster's blocks, padded, rounded like
// the products.
extern "C" __global__ void ws_prepare(const float* from, void* to, long long rows) {
  const long long all = rows * kC * choice::inputs_each;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < all;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    const int within = static_cast<int>(i % choice::inputs_each);
    const int input = static_cast<int>(i / choice::inputs_each % kC) * choice::inputs_own + within;
    const bool is = within < choice::inputs_own && input < width(0);
    static_cast<float*>(to)[i] = is ? rounded(from[i / choice::inputs_each / kC * width(0) + input]) : 0.f;
  }
}

}  // namespace ws::cuda::persistent
