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
//      of the layer below through the L2 cache to the owners there. Meanwhile it updates its tile.
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
constexpr int O = choice::outputs, kDepth = kHalves ? 16 : 8;
constexpr bool kScales = choice::precision == kFp16;
constexpr int kExchanges = 2 * kHiddenLayers;
constexpr int kSlots = kScales ? kHiddenLayers + 1 : (kHiddenLayers > 1 ? kHiddenLayers : 2);
constexpr int kTargets = kClasses ? 1 : O;
static_assert((2 * kHiddenLayers + 7) * kBlocks * 4 <= kFlagBytes);

// Hidden layer l = 1, 2...: units per cluster, values per row that a block reads, and the strides of a tile and of
// rows.
WS_BOTH constexpr int units(int l) {
  return l == 1 ? choice::units1 : l == 2 ? choice::units2 : l == 3 ? choice::units3 : l == 4 ? choice::units4 : choice::units5;
}
WS_BOTH constexpr int values(int l) {
  return l == 1 ? choice::inputs_each : ((width(l - 1) + kC - 1) / kC + 3) / 4 * 4;
}
// These strides put most fragments of the tensor cores into different banks.
WS_BOTH constexpr int stride_of(int n) { return n % 16 == 0 ? n + 4 : n; }
WS_BOTH constexpr int tile_stride(int l) { return stride_of(units(l)); }
WS_BOTH constexpr int row_stride(int l) { return stride_of(values(l)); }
WS_BOTH constexpr int tile_at(int l) { return l == 1 ? 0 : tile_at(l - 1) + values(l - 1) * tile_stride(l - 1); }
WS_BOTH constexpr int bias_at(int l) { return l == 1 ? 0 : bias_at(l - 1) + units(l - 1); }
constexpr int kTop = units(kHiddenLayers);             // units of the last hidden layer in this cluster
// Rows of the output weights that a block updates; the last row is the bias.
constexpr int kOwnRows = (kTop + 1 + kC - 1) / kC;
constexpr int kBiases = bias_at(kHiddenLayers) + kTop;
// Offsets in the exchange buffer, in floats after the flags.
WS_BOTH constexpr long long hidden_at(int l) {
  return l == 1 ? 0 : hidden_at(l - 1) + static_cast<long long>(B) * kG * units(l - 1);
}
WS_BOTH constexpr long long partials_at(int l) {
  return l == 2 ? hidden_at(kHiddenLayers + 1) : partials_at(l - 1) + static_cast<long long>(kG) * kG * B * units(l - 2);
}
constexpr long long kOutputsAt = kHiddenLayers > 1 ? partials_at(kHiddenLayers + 1) : hidden_at(kHiddenLayers + 1);

enum Barriers { kOutputGradients = kExchanges, kOutputWeights, kBarriers };

struct Block {
  unsigned char* memory;
  uint shared, rank;  // rank in the cluster
  int cluster;
  uint* flags;
  float* far;  // the data part of the exchange buffer
  Watch watch;

  WS_DEVICE float* part(int at) const { return reinterpret_cast<float*>(memory + at); }
  WS_DEVICE float* tile(int l) const { return part(choice::at_tiles) + tile_at(l); }
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
// Layout of an operand in shared memory: k along a row, or across rows.
enum Lies { kAlong, kAcross };

constexpr int kEach = kDepth / 4;  // values of k per lane and row

// The order of k does not matter if both operands use the same. A lane takes every fourth value, or pairs.
WS_BOTH constexpr int k_of(int t, int j, bool pairs) { return pairs ? 2 * t + (j & 1) + 8 * (j >> 1) : t + 4 * j; }

// Counts the passes through the shared-memory banks that a warp needs for one fragment of 8 rows or columns.
WS_BOTH constexpr int passes(Lies lies, int stride, bool pairs) {
  const bool wide = lies == kAlong && pairs;  // loads of 8 bytes, half a warp at a time
  int all = 0;
  for (int part = 0; part < (wide ? 2 : 1); ++part) {
    int used[32] = {}, most = 0;
    for (int g = 4 * part; g < (wide ? 4 * part + 4 : 8); ++g)
      for (int t = 0; t < 4; ++t)
        for (int word = 0; word < (wide ? 2 : 1); ++word) {
          const int k = k_of(t, word, pairs), at = (lies == kAlong ? g * stride + k : k * stride + g) % 32;
          used[at] += 1;
          most = used[at] > most ? used[at] : most;
        }
    all += most;
  }
  return wide ? all : 2 * all;  // 2 * all: for two values of k
}

// Loads this lane's values of k for row or column `i` of the operand.
template <Lies L, int Stride, bool Pairs>
WS_DEVICE void load_values(float (&v)[kEach], const float* from, int i, int k0, int t) {
#pragma unroll
  for (int j = 0; j < kEach; j += 2) {
    const int k = k0 + k_of(t, j, Pairs), next = k0 + k_of(t, j + 1, Pairs);
    if constexpr (L == kAlong && Pairs) {
      const float2 q = *reinterpret_cast<const float2*>(from + i * Stride + k);
      v[j] = q.x, v[j + 1] = q.y;
    } else if constexpr (L == kAlong) {
      v[j] = from[i * Stride + k], v[j + 1] = from[i * Stride + next];
    } else {
      v[j] = from[k * Stride + i], v[j + 1] = from[next * Stride + i];
    }
  }
}

// Tiles of 16 rows and 8 columns that a warp computes together.
struct TaskShape {
  int rows, columns;
};

// c (M, N) = a (M, K) · b (K, N), computed by all warps of the block. Rows beyond M and columns beyond N in the last
// tiles are computed from the memory that follows, and dropped.
template <int M, int N, int K, Lies LiesA, int StrideA, Lies LiesB, int StrideB, bool RoundsB>
struct Product {
  static constexpr int kRows = (M + 15) / 16, kColumns = (N + 7) / 8;
  static WS_BOTH constexpr int tasks_of(TaskShape s) {
    return (kRows + s.rows - 1) / s.rows * ((kColumns + s.columns - 1) / s.columns);
  }
  // Cycles in tf32, fitted to times of an H100. For each step of k, loads from shared memory cost one each; a tile costs 7
  // on the tensor cores of its quarter of the multiprocessor; a warp also waits for its own loads. Then a warp hands out
  // its tiles one by one.
  static WS_BOTH constexpr int cost(TaskShape s) {
    const int tasks = tasks_of(s), loads = 4 * s.rows + 2 * s.columns, tiles = 7 * s.rows * s.columns,
              rounds = (tasks + kWarps - 1) / kWarps;
    const int memory = tasks * loads, tensor = (tasks + 3) / 4 * tiles, latency = rounds * (tiles + loads + 25);
    const int most = memory > tensor ? memory : tensor;
    return (K + 7) / 8 * (most > latency ? most : latency) + rounds * s.rows * s.columns * 100;
  }
  // Other precisions need more registers for each tile, so their tasks are as small as the warps allow.
  static WS_BOTH constexpr TaskShape best() {
    if (choice::precision != kTf32) {
      for (int columns = 1; columns < 8 && columns < kColumns; ++columns)
        if (tasks_of({1, columns}) <= kWarps) return {1, columns};
      return {1, kColumns < 8 ? kColumns : 8};
    }
    TaskShape found{1, 1};
    // Two rows of tiles whose values lie across need too many registers.
    for (int rows = 1; rows <= (kRows % 2 == 0 && LiesA == kAlong ? 2 : 1); ++rows)
      for (int columns = 1; rows * columns <= 8 && columns <= kColumns; ++columns)
        if (cost({rows, columns}) < cost(found)) found = {rows, columns};
    return found;
  }
  static constexpr TaskShape kShape = best();
  static constexpr int kUp = kShape.rows, kTogether = kShape.columns, kTasks = tasks_of(kShape),
                       kTaskRows = (kRows + kUp - 1) / kUp;
  static constexpr bool kPairs =
      2 * kUp * passes(LiesA, StrideA, true) + kTogether * passes(LiesB, StrideB, true) <
      2 * kUp * passes(LiesA, StrideA, false) + kTogether * passes(LiesB, StrideB, false);
  using Sums = float[kUp][kTogether][4];

  // The last task of a row begins earlier if there are too few columns for it, and hands out only those that are left. A
  // branch for each column would cost more than the columns that two tasks compute.
  static WS_DEVICE int first_column(int task) {
    const int first = task / kTaskRows * kTogether;
    return kColumns % kTogether == 0 ? first : min(first, kColumns - kTogether);
  }
  static WS_DEVICE void multiply_task(int task, const float* a, const float* b, Sums& c) {
    const int lane = static_cast<int>(threadIdx.x) & 31, g = lane >> 2, t = lane & 3;
    const int row = task % kTaskRows * (16 * kUp), first = first_column(task);
#pragma unroll
    for (int u = 0; u < kUp; ++u)
#pragma unroll
      for (int n = 0; n < kTogether; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) c[u][n][i] = 0.f;
#pragma unroll(kUp == 1 ? 4 : 2)
    for (int k0 = 0; k0 < K; k0 += kDepth) {
      float a0[kUp][kEach], a1[kUp][kEach];
      uint halves[kUp][4];
#pragma unroll
      for (int u = 0; u < kUp; ++u) {
        load_values<LiesA, StrideA, kPairs>(a0[u], a, row + 16 * u + g, k0, t);
        load_values<LiesA, StrideA, kPairs>(a1[u], a, row + 16 * u + g + 8, k0, t);
        if (K % kDepth != 0 && k0 + kDepth > K) {
#pragma unroll
          for (int j = 0; j < kEach; ++j)
            if (k0 + k_of(t, j, kPairs) >= K) a0[u][j] = a1[u][j] = 0.f;
        }
        if constexpr (kHalves) {
          halves[u][0] = half_pair(a0[u][0], a0[u][1]), halves[u][1] = half_pair(a1[u][0], a1[u][1]);
          halves[u][2] = half_pair(a0[u][kEach - 2], a0[u][kEach - 1]);
          halves[u][3] = half_pair(a1[u][kEach - 2], a1[u][kEach - 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kTogether; ++n) {
        float v[kEach];
        load_values<LiesB, StrideB, kPairs>(v, b, (first + n) * 8 + g, k0, t);
        if constexpr (RoundsB && choice::precision == kTf32) v[0] = to_tf32(v[0]), v[1] = to_tf32(v[1]);
#pragma unroll
        for (int u = 0; u < kUp; ++u) {
          if constexpr (kHalves) {
            mma_halves(c[u][n], halves[u], half_pair(v[0], v[1]), half_pair(v[kEach - 2], v[kEach - 1]));
          } else {
            const float both[4] = {a0[u][0], a1[u][0], a0[u][1], a1[u][1]};
            multiply(c[u][n], both, v[0], v[1]);
          }
        }
      }
    }
  }
  // Each lane passes four adjacent elements of a row of c to `done`.
  template <class Done>
  static WS_DEVICE void hand_out(int task, const Sums& c, Done done) {
    const int lane = static_cast<int>(threadIdx.x) & 31, g = lane >> 2, t = lane & 3;
    const int row = task % kTaskRows * (16 * kUp), first = first_column(task);
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      if (kColumns % kTogether != 0 && first + n < task / kTaskRows * kTogether) continue;
#pragma unroll
      for (int u = 0; u < kUp; ++u) {
        const float (&q)[4] = c[u][n];
        const bool odd = t & 1;
        const float x = __shfl_xor_sync(~0u, odd ? q[0] : q[2], 1), y = __shfl_xor_sync(~0u, odd ? q[1] : q[3], 1);
        const float4 four = odd ? make_float4(x, y, q[2], q[3]) : make_float4(q[0], q[1], x, y);
        const int r = row + 16 * u + g + (odd ? 8 : 0), column = (first + n) * 8 + (t & 2) * 2;
        if ((M % (16 * kUp) == 0 || r < M) && (N % 8 == 0 || column < N)) done(r, column, four);
      }
    }
  }
  template <class Done>
  static WS_DEVICE void run(const float* a, const float* b, Done done) {
#pragma unroll 1
    for (int task = static_cast<int>(threadIdx.x) >> 5; task < kTasks; task += kWarps) {
      Sums c;
      multiply_task(task, a, b, c);
      hand_out(task, c, done);
    }
  }
  // Like run, but passes nothing to `done` before `allowed` returns true. Every thread calls `allowed` once.
  template <class Allowed, class Done>
  static WS_DEVICE void run_if(const float* a, const float* b, Allowed allowed, Done done) {
    const int task = static_cast<int>(threadIdx.x) >> 5;
    Sums c;
    if (task < kTasks) multiply_task(task, a, b, c);
    if (!allowed()) return;
    if (task < kTasks) hand_out(task, c, done);
    for (int more = task + kWarps; more < kTasks; more += kWarps) {
      multiply_task(more, a, b, c);
      hand_out(more, c, done);
    }
  }
};

WS_DEVICE float4 at4(const float* p) { return *reinterpret_cast<const float4*>(p); }
WS_DEVICE void set4(float* p, const float4& v) { *reinterpret_cast<float4*>(p) = v; }
WS_DEVICE float4 sum(const float4& a, const float4& b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
WS_DEVICE float4 add_lanes(float4 v, int d) {
  return sum(v, make_float4(__shfl_xor_sync(~0u, v.x, d), __shfl_xor_sync(~0u, v.y, d), __shfl_xor_sync(~0u, v.z, d),
                            __shfl_xor_sync(~0u, v.w, d)));
}

struct OutputOwner {
  float w = 0.f, m = 0.f, v = 0.f;  // of the output weight that this thread updates
};

struct Training {
  const Arguments& a;
  const Block& block;
  int thread = static_cast<int>(threadIdx.x);
  bool well = true;  // false after a wait was given up
  int s = 0, turn = 0;
  uint number = 0;
  StepFactors factors{};
  OutputOwner own;
  StampLane stamps{a, static_cast<int>(blockIdx.x), kept(threadIdx.x == 0) != 0};

  WS_DEVICE float* biases() const { return block.part(choice::at_biases); }
  WS_DEVICE float* bias_moments(int i) const { return biases() + (1 + i) * kBiases; }
  // The slopes of four units of an own row. A slope of relu takes one byte.
  WS_DEVICE void* slopes(int l, int r, int j) const {
    return block.memory + choice::at_slopes + choice::slope_bytes * (R * bias_at(l) + r * units(l) + j);
  }
  template <int L>
  WS_DEVICE void keep_slopes(int r, int j, const float (&slope)[4]) const {
    if constexpr (choice::slope_bytes == 4)
      *static_cast<float4*>(slopes(L, r, j)) = make_float4(slope[0], slope[1], slope[2], slope[3]);
    else
      *static_cast<uchar4*>(slopes(L, r, j)) =
          make_uchar4(slope[0] != 0.f, slope[1] != 0.f, slope[2] != 0.f, slope[3] != 0.f);
  }
  template <int L>
  WS_DEVICE float4 kept_slopes(int r, int j) const {
    if constexpr (choice::slope_bytes == 4) return *static_cast<const float4*>(slopes(L, r, j));
    const uchar4 q = *static_cast<const uchar4*>(slopes(L, r, j));
    return make_float4(q.x, q.y, q.z, q.w);
  }
  WS_DEVICE float* top() const { return block.part(choice::at_top); }             // own rows of the last hidden layer
  WS_DEVICE float* output_weights() const { return block.part(choice::at_output); }  // (units, O), then the biases
  WS_DEVICE float* output_gradients() const { return block.part(choice::at_dz); }  // own rows (R, O)
  WS_DEVICE int* places(int step) const { return reinterpret_cast<int*>(block.part(choice::at_places)) + (step & 1) * B; }
  WS_DEVICE float* targets(int step) const { return block.part(choice::at_targets) + (step & 1) * R * kTargets; }

  // A barrier that tells every thread if one of them gave up waiting.
  WS_DEVICE bool meet() {
    well = !__syncthreads_or(!well);
    return well;
  }
  // Waits until all messages of step `step` that count at a barrier have arrived.
  WS_DEVICE void hear(int barrier, int bytes, int what, int step) {
    stamps.begin(s, kPartWait, what);
    well &= wait(block.watch, block.barrier(barrier), step & 1, what, step);
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
  WS_DEVICE void fetch_rows(int step, float* to) const {
    constexpr int each = choice::inputs_each / 4;
    for (int i = thread; i < B * each; i += kThreads) {
      const int r = i / each, k = i % each * 4;
      copy16(shared_address(to + r * row_stride(1) + k),
             static_cast<const float*>(a.rows) + (static_cast<size_t>(places(step)[r]) * kC + block.rank) * choice::inputs_each + k);
    }
    for (int i = thread; i < R * kTargets; i += kThreads) {
      const int r = static_cast<int>(block.rank) * R + i / kTargets;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(targets(step) + i)),
                   "l"(static_cast<const float*>(a.targets) + static_cast<size_t>(places(step)[r]) * kTargets + i % kTargets)
                   : "memory");
    }
  }

  // ---- forward ----
  // Sends four partial sums of a row to the owner of the row.
  template <int L>
  WS_DEVICE void send_partials(int row, int column, const float4& v) const {
    const uint to = static_cast<uint>(row / R);
    const uint base = in_block(block.shared, to) - block.shared;
    send4(base + shared_address(block.region(L - 1) + (static_cast<int>(block.rank) * R + row % R) * tile_stride(L) + column),
          base + block.barrier(L - 1), bits(v.x), bits(v.y), bits(v.z), bits(v.w));
  }
  template <int L>
  WS_DEVICE void read_hidden() {
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
    const float* from = block.far + hidden_at(L - 1) + begin;
    float* to = block.slot(L, turn);
    uint4 words[together];
    const auto is = [&](int k) { return thread + k * kThreads < B * each && begin + (thread + k * kThreads) % each * 4 < pitch; };
    well &= read_far(block.watch, tag_of(number), kWaitHidden, s, words, [&](int k) {
      const int i = thread + k * kThreads;
      return is(k) ? from + i / each * pitch + i % each * 4 : nullptr;
    });
#pragma unroll
    for (int k = 0; k < together; ++k) {
      const int i = thread + k * kThreads;
      if (is(k)) set4(to + i / each * row_stride(L) + i % each * 4, values_of(words[k]));
    }
    meet();
    stamps.resume();
  }
  // The owners add the partial sums of their rows and activate.
  template <int L>
  WS_DEVICE void add_partials() {
    hear(L - 1, kC * R * units(L) * 4, kWaitPartials, s);
    constexpr int fours = units(L) / 4;
    for (int i = thread; i < R * fours; i += kThreads) {
      const int r = i / fours, j = i % fours * 4;
      const float* from = block.region(L - 1) + r * tile_stride(L) + j;
      float4 z = at4(biases() + bias_at(L) + j);
#pragma unroll
      for (int k = 0; k < kC; ++k) z = sum(z, at4(from + k * R * tile_stride(L)));
      const float zs[4] = {z.x, z.y, z.z, z.w};
      float h[4], slope[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const bool is = block.cluster * units(L) + j + q < width(L);
        const float exact = activated(zs[q]);
        h[q] = is ? rounded(exact) : 0.f, slope[q] = is ? slope_at(zs[q], exact) : 0.f;
      }
      keep_slopes<L>(r, j, slope);
      if constexpr (L == kHiddenLayers) {
        set4(top() + r * kTop + j, make_float4(h[0], h[1], h[2], h[3]));
      } else {
        float* to = block.far + hidden_at(L) + static_cast<long long>(static_cast<int>(block.rank) * R + r) * kG * units(L) +
                    block.cluster * units(L) + j;
        set_far(to, make_float4(h[0], h[1], h[2], h[3]), tag_of(number));
      }
    }
    __syncthreads();
    if (!kTagged && L < kHiddenLayers && thread == 0) raise(block.hidden_flag(L, block.cluster, static_cast<int>(block.rank)), number);
  }
  template <int L>
  WS_DEVICE void forward() {
    if constexpr (L <= kHiddenLayers) {
      stamps.begin(s, kPartForward, L - 1);
      if constexpr (L > 1) {
        if constexpr (kScales)
          if (owed) move_tile<L>(turn + 1);
        read_hidden<L>();
      }
      if (well && !(L == 1 && a.lose_message_at == s && blockIdx.x == 1))
        Product<B, units(L), values(L), kAlong, row_stride(L), kAcross, tile_stride(L), true>::run(
            block.slot(L, turn), block.tile(L), [&](int r, int c, const float4& v) { send_partials<L>(r, c, v); });
      add_partials<L>();
      forward<L + 1>();
    }
  }

  // ---- the output layer, for the own rows ----
  WS_DEVICE uint2* far_outputs(int cluster) const {
    return reinterpret_cast<uint2*>(block.far + kOutputsAt) +
           (static_cast<long long>(((s & 1) * kC + static_cast<int>(block.rank)) * kG + cluster) * R) * O;
  }
  WS_DEVICE void output_sums() {
    for (int i = thread; i < up4(R * O * 4); i += kThreads) {
      const int entry = min(i / 4, R * O - 1), r = entry / O, o = entry % O, part = i % 4;
      float z = 0.f;
#pragma unroll 4
      for (int k = part; k < kTop; k += 4) z += top()[r * kTop + k] * operand(output_weights()[k * O + o]);
      z += __shfl_xor_sync(~0u, z, 1);
      z += __shfl_xor_sync(~0u, z, 2);
      if (part == 0 && i / 4 < R * O) write_numbered(far_outputs(block.cluster) + entry, z, number);
    }
  }
  WS_BOTH static constexpr int up4(int n) { return (n + 31) / 32 * 32; }
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
    if (block.cluster == 0 && thread == 0) {
      float loss = 0.f, correct = 0.f;
      for (int r = 0; r < R; ++r) loss += block.part(choice::at_sums)[2 * r], correct += block.part(choice::at_sums)[2 * r + 1];
      float* out = a.partials + (static_cast<size_t>(s) * kC + block.rank) * 2;
      out[0] = loss, out[1] = correct;
    }
  }

  WS_DEVICE void check(const float4& v) {
    if constexpr (kScales) {
      const float sum = fabsf(v.x) + fabsf(v.y) + fabsf(v.z) + fabsf(v.w);
      if (!(sum < 3e38f)) infinite = true;
    }
  }
  bool infinite = false;

  // Sends dz of layer L, four units of an own row, to `Share` blocks of the cluster, beginning with `first`.
  template <int L, int Share>
  WS_DEVICE void send_gradient(int r, int j, const float4& dz, int first) const {
    constexpr int e = 2 * kHiddenLayers - L;
    const uint where =
        shared_address(block.region(e) + (static_cast<int>(block.rank) * R + r) * tile_stride(L) + j);
#pragma unroll
    for (int i = 0; i < Share; ++i) {
      const uint to = static_cast<uint>(first + i) ^ block.rank, base = in_block(block.shared, to) - block.shared;
      send4(base + where, base + block.barrier(e), bits(dz.x), bits(dz.y), bits(dz.z), bits(dz.w));
    }
  }
  template <int L>
  WS_DEVICE float4 times_slope(int r, int j, const float4& v) {
    const float4 slope = kept_slopes<L>(r, j);
    const auto part = [](float sum, float by) { return by == 0.f ? 0.f : rounded(sum * by); };
    const float4 dz = make_float4(part(v.x, slope.x), part(v.y, slope.y), part(v.z, slope.z), part(v.w, slope.w));
    check(dz);
    return dz;
  }
  // Computes dz of the last hidden layer. Four lanes share four units, and each sends them to a quarter of the cluster.
  WS_DEVICE void top_gradient() {
    constexpr int fours = kTop / 4;
    for (int i = thread; i < R * fours * 4; i += kThreads) {
      const int r = i / 4 / fours, j = i / 4 % fours * 4;
      float v[4] = {};
#pragma unroll 5
      for (int o = 0; o < O; ++o) {
        const float d = output_gradients()[r * O + o];
#pragma unroll
        for (int q = 0; q < 4; ++q) v[q] += d * operand(output_weights()[(j + q) * O + o]);
      }
      send_gradient<kHiddenLayers, kC / 4>(r, j, times_slope<kHiddenLayers>(r, j, make_float4(v[0], v[1], v[2], v[3])),
                                           i % 4 * (kC / 4));
    }
    if constexpr (kScales)
      for (int i = thread; i < R * O; i += kThreads)
        if (!(fabsf(output_gradients()[i]) < 3e38f)) infinite = true;
    __syncthreads();  // all have read the output weights, so their owners may send new ones
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
  WS_DEVICE float* far_partials(int to_cluster, int from_cluster, int row, int j) const {
    return block.far + partials_at(L) +
           ((static_cast<long long>(to_cluster) * kG + from_cluster) * B + row) * units(L - 1) + j;
  }
  // Computes the gradients of a tile and updates its weights. `at`: the turn of the step. move_tile_if calls `allowed`
  // once in between.
  template <int L>
  WS_DEVICE void move_tile(int at) {
    move_tile_if<L>(at, [] { return true; });
  }
  template <int L, class Allowed>
  WS_DEVICE void move_tile_if(int at, Allowed allowed) {
    constexpr int e = 2 * kHiddenLayers - L;
    const LayerState& state = a.layers[L - 1];
    float* tile = block.tile(L);
    bool moves = true;
    Product<values(L), units(L), B, kAcross, row_stride(L), kAcross, tile_stride(L), false>::run_if(
        block.slot(L, at), block.region(e), [&] { return moves = allowed(); },
        [&](int row, int column, const float4& gradient) {
          const float g[4] = {gradient.x, gradient.y, gradient.z, gradient.w};
          float* w = tile + row * tile_stride(L) + column;
          [[maybe_unused]] float* m = block.part(choice::at_moments) + (w - block.part(choice::at_tiles));
          [[maybe_unused]] float* v = m + (choice::state_shared ? choice::tile_floats : 0);
          const int input = input_of<L>(row), unit = block.cluster * units(L) + column;
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            const bool is = input < width(L - 1) && unit + q < width(L);
            if constexpr (choice::state_shared || choice::optimizer == kSgd) {
              float none = 0.f;
              persistent::move(a, factors, true, w[q], kMoves ? m[q] : none, kSquares ? v[q] : none, is ? g[q] : 0.f);
            } else if (is) {
              const long long at = static_cast<long long>(input) * width(L) + unit + q;
              float first = __ldcg(state.w_m + at), second = kSquares ? __ldcg(state.w_v + at) : 0.f;
              persistent::move(a, factors, true, w[q], first, second, g[q]);
              state.w_m[at] = first;
              if constexpr (kSquares) state.w_v[at] = second;
            }
          }
        });
    if constexpr (choice::bias) {
      if (!moves) return;
      for (int j = thread; j < units(L); j += kThreads) {
        float gradient = 0.f;
#pragma unroll 8
        for (int r = 0; r < B; ++r) gradient += block.region(e)[r * tile_stride(L) + j];
        float none = 0.f;
        const int i = bias_at(L) + j;
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
  template <int L>
  WS_DEVICE void backward(int next_step) {
    if constexpr (L >= 1) {
      constexpr int e = 2 * kHiddenLayers - L;
      stamps.begin(s, kPartBackward, L - 1);
      hear(e, B * units(L) * 4, kWaitGradients, s);
      if constexpr (L > 1) {
        if (well)
          Product<B, values(L), units(L), kAlong, tile_stride(L), kAlong, tile_stride(L), true>::run(
              block.region(e), block.tile(L), [&](int row, int column, const float4& v) {
                const int unit = static_cast<int>(block.rank) * values(L) + column, to = unit / units(L - 1);
                if (to < kG)
                  set_far(far_partials<L>(to, block.cluster, row, unit % units(L - 1)), v, tag_of(number));
              });
        // Other warps may still multiply gradients by this tile. In fp16 the update comes a step later.
        if constexpr (!kScales) __syncthreads();
        if (!kTagged && well && thread == 0) raise(block.partial_flag(L, static_cast<int>(block.rank), block.cluster), number);
        if constexpr (!kScales) move_tile<L>(turn);
        if constexpr (L == kHiddenLayers) fetch_next(next_step);
        stamps.begin(s, kPartWait, kWaitSums);
        // The ranks that read some of the units that this cluster owns.
        const int begin = block.cluster * units(L - 1), first = begin / values(L),
                  last = min((begin + units(L - 1) - 1) / values(L), kC - 1);
        if (!kTagged && thread < (last - first + 1) * kG)
          well &= wait_for_flag(block.watch, block.partial_flag(L, first + thread / kG, thread % kG), number, kWaitSums, s);
        if (meet()) add_gradients<L - 1>();
        stamps.resume();
      } else {
        if constexpr (!kScales) move_tile<1>(turn);
        if constexpr (kHiddenLayers == 1) fetch_next(next_step);
      }
      backward<L - 1>(next_step);
    }
  }
  // Starts loading the next rows: the last hidden layer no longer needs its input, or there is one more buffer.
  WS_DEVICE void fetch_next(int next_step) {
    if (!kScales) __syncthreads();
    if (next_step < a.steps) fetch_rows(next_step, block.slot(1, turn + kSlots - 1));
    copies_commit();
  }
  // The owners of layer L add the partial sums that the clusters of the layer above computed.
  template <int L>
  WS_DEVICE void add_gradients() {
    constexpr int fours = units(L) / 4;
    for (int i = thread; i < (R * fours * 4 + 31) / 32 * 32; i += kThreads) {
      const int entry = min(i / 4, R * fours - 1), r = entry / fours, j = entry % fours * 4, part = i % 4;
      constexpr int each = (kG + 3) / 4;
      const bool is = block.cluster * units(L) + j < kC * values(L + 1);
      uint4 words[each];
      well &= read_far(block.watch, tag_of(number), kWaitSums, s, words, [&](int k) {
        const int from = part + 4 * k;
        return is && from < kG ? far_partials<L + 1>(block.cluster, from, static_cast<int>(block.rank) * R + r, j) : nullptr;
      });
      float4 v = values_of(words[0]);
#pragma unroll
      for (int k = 1; k < each; ++k) v = sum(v, values_of(words[k]));
      const float4 all = add_lanes(add_lanes(v, 1), 2);
      if (i / 4 < R * fours) send_gradient<L, kC / 4>(r, j, times_slope<L>(r, j, all), part * (kC / 4));
    }
  }

  // fp16: tiles above the first layer are updated when the next step needs them.
  bool owed = false;
  template <int L>
  WS_DEVICE void move_owed_tiles() {
    if constexpr (kScales && L <= kHiddenLayers) {
      if (owed) move_tile<L>(turn + 1);
      move_owed_tiles<L + 1>();
    }
  }
  // fp16: every block publishes if one of its gradients was infinite; any_infinite reads all of them.
  WS_DEVICE void tell_infinite() {
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

  // The owners of output weights add the gradients of the cluster, update their weights and send them.
  WS_DEVICE void move_output(bool skip) {
    constexpr int most = kOwnRows * O;
    stamps.begin(s, kPartUpdate, kHiddenLayers);
    const int rows = max(0, min(kOwnRows, kTop + 1 - static_cast<int>(block.rank) * kOwnRows));
    hear(kOutputGradients, kC * rows * O * 4, kWaitSums, s);
    if (!well || thread >= rows * O) return;
    const int j = static_cast<int>(block.rank) * kOwnRows + thread / O;
    float gradient = 0.f;
#pragma unroll
    for (int k = 0; k < kC; ++k) gradient += block.part(choice::at_output_inbox)[k * most + thread];
    const bool is_bias = j == kTop;
    if (!skip && (is_bias ? choice::bias : block.cluster * kTop + j < width(kHiddenLayers)))
      persistent::move(a, factors, !is_bias, own.w, own.m, own.v, gradient);
#pragma unroll
    for (int i = 0; i < kC; ++i) {
      const uint base = in_block(block.shared, static_cast<uint>(i) ^ block.rank) - block.shared;
      send(base + shared_address(output_weights() + j * O + thread % O), base + block.barrier(kOutputWeights), own.w);
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
        float* tile = copy == 0 ? block.tile(L) : block.part(choice::at_moments) + (copy - 1) * choice::tile_floats + tile_at(L);
        for (int i = thread; i < values(L) * units(L); i += kThreads) {
          const int row = i / units(L), column = i % units(L), input = input_of<L>(row), unit = block.cluster * units(L) + column;
          if (input < width(L - 1) && unit < width(L))
            f(tile[row * tile_stride(L) + column], weights[copy] + static_cast<long long>(input) * width(L) + unit);
        }
      }
      if constexpr (choice::bias) {
#pragma unroll
        for (int copy = 0; copy < 1 + kMoves + kSquares; ++copy)
          for (int j = thread; j < units(L); j += kThreads) {
            const int unit = block.cluster * units(L) + j;
            if (unit < width(L)) f(biases()[copy * kBiases + bias_at(L) + j], offsets[copy] + unit);
          }
      }
      each_parameter<L + 1>(f);
    }
  }
  WS_DEVICE void begin() {
    for (int i = thread; i < choice::shared_bytes / 4; i += kThreads) block.part(0)[i] = 0.f;
    __syncthreads();
    each_parameter<1>([](float& here, const float* there) { here = *there; });
    each_output([](float& here, const float* there) { here = *there; });
    const LayerState& l = a.layers[kHiddenLayers];
    for (int i = thread; i < kTop * O; i += kThreads)
      if (block.cluster * kTop + i / O < width(kHiddenLayers))
        output_weights()[i] = l.w[static_cast<long long>(block.cluster * kTop + i / O) * O + i % O];
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
    fetch_rows(0, block.slot(1, 0));
    if (a.steps > 1) find_rows(1);
    copies_commit();
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
      each_parameter<1>([](float& here, float* there) { *there = here; });
      each_output([](float& here, float* there) { *there = here; });
    }
  }
};

WS_DEVICE void write_metrics(const Arguments& a) {
  for (int s = static_cast<int>(threadIdx.x); s < a.steps; s += kThreads) {
    float loss = 0.f, correct = 0.f;
    for (int i = 0; i < kC; ++i) {
      loss += __ldcg(a.partials + (static_cast<size_t>(s) * kC + i) * 2);
      correct += __ldcg(a.partials + (static_cast<size_t>(s) * kC + i) * 2 + 1);
    }
    float* out = a.metrics + 3 * ((a.first_step + s) % a.ring);
    out[0] = loss, out[1] = correct, out[2] = static_cast<float>(a.batch);
  }
}

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
    training.number = a.exchange_base + static_cast<uint>(s) + 1;
    const float rate = rates.take();
    training.stamps.begin(s, kPartRows);
    copies_wait<0>();
    __syncthreads();
    if (s + 2 < a.steps) training.find_rows(s + 2);
    training.forward<1>();
    if (s > 0) training.hear(kOutputWeights, (kTop + 1) * O * 4, kWaitWeights, s - 1);
    training.stamps.begin(s, kPartLosses, kHiddenLayers);
    training.output_sums();
    training.losses(scaling.scale * per_row);
    training.stamps.begin(s, kPartBackward, kHiddenLayers);
    training.top_gradient();
    training.factors = step_factors(a, rate, scaling.inverse_of_scale(), a.first_step + s);
    training.backward<kHiddenLayers>(s + 1);
    bool skip = false;
    if constexpr (kScales) {
      training.tell_infinite();
      training.move_tile_if<1>(training.turn, [&] {
        skip = training.any_infinite();
        return !skip;
      });
      scaling.decide(skip);
      training.owed = !skip;
    }
    training.move_output(skip);
    training.turn = training.turn == 0 ? kSlots - 1 : training.turn - 1;
  }
  training.stamps.end(a.steps);
  training.move_owed_tiles<2>();
  // No block may leave while messages are in flight.
  if (a.steps > 0) training.hear(kOutputWeights, (kTop + 1) * O * 4, kWaitWeights, a.steps - 1);
  training.end();
  cluster_meets();
  if (blockIdx.x != 0 || !training.well) return;
  write_metrics(a);
  if (kScales && threadIdx.x == 0) *a.scale = {scaling.scale, scaling.inverse, scaling.good, scaling.found, scaling.skipped};
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
