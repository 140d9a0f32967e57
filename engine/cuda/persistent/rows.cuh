// A kernel for a network so small that every thread holds all of its weights, and some rows of the batch.
//
// In a step each thread runs its rows forward and backward in registers and sums its gradients. A warp adds the sums of
// its lanes, and a block the sums of its warps. The blocks of a cluster send their sums to each other. Clusters of one
// grid, or its single blocks, write their sums where all blocks read them. Then every block updates the weights in the
// same way.
//
// Rows that do not fit into registers lie in shared memory, in packs of four.
#pragma once

namespace ws::cuda::persistent {

// kBlocks: blocks per cluster.
constexpr int kLayers = choice::layers, kBlocks = choice::cluster, kThreads = choice::threads;
constexpr int kClusters = choice::clusters, kWarps = kThreads / 32, kRowsEach = choice::rows_each;
constexpr int kFours = choice::fours_shared;  // packs of four rows per thread in shared memory

WS_BOTH constexpr int unit_at(int l) { return l == 0 ? 0 : unit_at(l - 1) + width(l - 1); }
// Offsets: weights (in, out) of a layer, then its biases.
WS_BOTH constexpr int weight_at(int l) {
  return l == 0 ? 0 : weight_at(l - 1) + width(l - 1) * width(l) + (choice::bias ? width(l) : 0);
}
WS_BOTH constexpr int bias_at(int l) { return weight_at(l) + width(l) * width(l + 1); }
constexpr int kInputs = width(0), kOutputs = width(kLayers), kUnits = unit_at(kLayers) + kOutputs;
constexpr int kParameters = weight_at(kLayers), kSums = kParameters + 2;  // kSums also counts loss and correct rows
constexpr int kPadded = (kSums + 3) / 4 * 4;
// Single blocks of a grid send their sums in packets of three. Each packet exists in several copies, so that few blocks
// read the same memory. Without classes the count of correct rows is not sent: it is zero.
constexpr bool kPackets = kBlocks == 1 && kClusters > 1;
// Polls and writes of neighbours slow each other, so packets lie 64 bytes apart, and a block polls after a pause in
// which none can have arrived. Measured on an H200 with five million points: 3.37 µs per step without, 3.19 µs with
// both.
constexpr int kApart = choice::packet_bytes / 16;
constexpr uint kPause = 700;  // cycles
constexpr int kSent = kClasses ? kSums : kParameters + 1, kPacketsEach = (kSent + 2) / 3, kCopies = choice::copies;
constexpr int kTargets = kClasses ? 1 : kOutputs;

struct Row {
  float x[kInputs];
  float target[kTargets];  // the bits of the label, or numbers
};

template <int L>
WS_DEVICE void forward(const float (&p)[kPadded], float (&h)[kUnits], float (&slope)[kUnits]) {
  if constexpr (L < kLayers) {
#pragma unroll
    for (int o = 0; o < width(L + 1); ++o) {
      float z = choice::bias ? p[bias_at(L) + o] : 0.f;
#pragma unroll
      for (int i = 0; i < width(L); ++i) z += h[unit_at(L) + i] * p[weight_at(L) + i * width(L + 1) + o];
      const float out = L + 1 < kLayers ? activated(z) : z;
      if (L + 1 < kLayers) slope[unit_at(L + 1) + o] = slope_at(z, out);
      h[unit_at(L + 1) + o] = out;
    }
    forward<L + 1>(p, h, slope);
  }
}

// On entry dz holds the units of layer L + 1.
template <int L>
WS_DEVICE void backward(const float (&p)[kPadded], const float (&h)[kUnits], const float (&slope)[kUnits],
                        float (&dz)[kUnits], float (&sums)[kPadded]) {
  if constexpr (L >= 0) {
#pragma unroll
    for (int i = 0; i < width(L); ++i) {
      float back = 0.f;
#pragma unroll
      for (int o = 0; o < width(L + 1); ++o) {
        const float d = dz[unit_at(L + 1) + o];
        sums[weight_at(L) + i * width(L + 1) + o] += h[unit_at(L) + i] * d;
        if (L > 0) back += d * p[weight_at(L) + i * width(L + 1) + o];
      }
      if (L > 0) dz[unit_at(L) + i] = back * slope[unit_at(L) + i];
    }
    if constexpr (choice::bias) {
#pragma unroll
      for (int o = 0; o < width(L + 1); ++o) sums[bias_at(L) + o] += dz[unit_at(L + 1) + o];
    }
    backward<L - 1>(p, h, slope, dz, sums);
  }
}

// Computes the loss of a row and dz of the outputs, both without the factors that are equal for all rows.
WS_DEVICE void loss_of(const float (&h)[kUnits], const Row& row, float (&dz)[kUnits], float (&sums)[kPadded]) {
  constexpr int first = unit_at(kLayers);
  if constexpr (kClasses) {
    const int label = __float_as_int(row.target[0]);
    float top = h[first];
    int best = 0;
#pragma unroll
    for (int o = 1; o < kOutputs; ++o)
      if (h[first + o] > top) top = h[first + o], best = o;
    float sum = 0.f, at_label = 0.f;
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      dz[first + o] = expf(h[first + o] - top);
      sum += dz[first + o];
      if (o == label) at_label = h[first + o];
    }
    const float factor = 1.f / sum;
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) dz[first + o] = dz[first + o] * factor - (o == label ? 1.f : 0.f);
    sums[kParameters] += logf(sum) + top - at_label;
    sums[kParameters + 1] += best == label;
  } else {
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const float difference = h[first + o] - row.target[o];
      dz[first + o] = difference;
      sums[kParameters] += difference * difference;
    }
  }
}
// These are the factors that loss_of leaves out: for gradients, and for the loss.
WS_DEVICE float gradient_factor(const Arguments& a) {
  return (kClasses ? 1.f : 2.f / static_cast<float>(kOutputs)) / static_cast<float>(a.batch);
}
constexpr float kLossFactor = kClasses ? 1.f : 1.f / static_cast<float>(kOutputs);

WS_DEVICE void add_row(const float (&p)[kPadded], const Row& row, float (&sums)[kPadded]) {
  float h[kUnits], slope[kUnits], dz[kUnits];
#pragma unroll
  for (int i = 0; i < kInputs; ++i) h[i] = row.x[i];
  forward<0>(p, h, slope);
  loss_of(h, row, dz, sums);
  backward<kLayers - 1>(p, h, slope, dz, sums);
}

// Sums N values over a warp with about N shuffles: at each level a lane passes half of its values to its partner.
// Afterwards v[i] of each lane holds value `first` + i, for values below `end`.
template <int N, int Distance>
WS_DEVICE void add_lanes(float* v, int& first, int& end) {
  constexpr int half = (N + 1) / 2;
  const bool upper = threadIdx.x & Distance;
#pragma unroll
  for (int i = 0; i < half; ++i) {
    const float second = half + i < N ? v[half + i] : 0.f;
    const float mine = upper ? second : v[i], other = upper ? v[i] : second;
    v[i] = mine + __shfl_xor_sync(~0u, other, Distance);
  }
  if (upper)
    first += half;
  else
    end = min(end, first + half);
  if constexpr (Distance > 1) add_lanes<half, Distance / 2>(v, first, end);
}
WS_BOTH constexpr int left_after(int n, int levels) { return levels == 0 ? n : left_after((n + 1) / 2, levels - 1); }

struct Shared {
  float parameters[kPadded];
  float sums[kWarps][kPadded];
  float inbox[2][kBlocks][kPadded];
  ulong barrier[2];
  int dead;
};

// The rows of a block lie together: first those in registers, then those in shared memory. With single blocks the k-th
// rows of all threads of the grid lie together: then each block has about as many, and only the last of a thread can be
// missing.
WS_DEVICE int place_of(int k) {
  const int block = static_cast<int>(blockIdx.x);
  const int before = kPackets ? k * kClusters + block : block * (kRowsEach + 4 * kFours) + k;
  return before * kThreads + static_cast<int>(threadIdx.x);
}
WS_DEVICE bool has_row(const Arguments& a, int k, int& place) {
  place = place_of(k);
  return place < a.batch;
}

WS_DEVICE void read_row(const Arguments& a, long long index, Row& row) {
  const float* x = static_cast<const float*>(a.rows) + index * kInputs;
#pragma unroll
  for (int i = 0; i < kInputs; ++i) row.x[i] = x[i];
  const float* y = static_cast<const float*>(a.targets) + index * kTargets;
#pragma unroll
  for (int i = 0; i < kTargets; ++i) row.target[i] = y[i];
}

WS_DEVICE long long index_of(const Arguments& a, int step, int place) {
  return row_index(a, a.first_row + step * a.rows_onward + place);
}

#if __CUDA_ARCH__ >= 900
// Returns the address of value v of the four rows of pack q.
WS_DEVICE float4* four_of(float4* memory, int q, int v) {
  return memory + (q * (kInputs + kTargets) + v) * kThreads + threadIdx.x;
}
WS_DEVICE void fill_fours(const Arguments& a, float4* memory) {
  for (int q = 0; q < kFours; ++q) {
    Row four[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int place;
      const bool is = has_row(a, kRowsEach + 4 * q + i, place);
      read_row(a, index_of(a, 0, is ? place : 0), four[i]);
    }
    const auto values = [&](int v, int i) { return v < kInputs ? four[i].x[v] : four[i].target[v - kInputs]; };
#pragma unroll
    for (int v = 0; v < kInputs + kTargets; ++v)
      *four_of(memory, q, v) = make_float4(values(v, 0), values(v, 1), values(v, 2), values(v, 3));
  }
}
template <bool All>
WS_DEVICE void add_four(const Arguments& a, float4* memory, int q, const float (&p)[kPadded], float (&sums)[kPadded]) {
  float4 v[kInputs + kTargets];
#pragma unroll
  for (int i = 0; i < kInputs + kTargets; ++i) v[i] = *four_of(memory, q, i);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    int place;
    if (!All && !has_row(a, kRowsEach + 4 * q + r, place)) continue;
    Row row;
    const auto part = [r](const float4& f) { return r == 0 ? f.x : r == 1 ? f.y : r == 2 ? f.z : f.w; };
#pragma unroll
    for (int i = 0; i < kInputs; ++i) row.x[i] = part(v[i]);
#pragma unroll
    for (int i = 0; i < kTargets; ++i) row.target[i] = part(v[kInputs + i]);
    add_row(p, row, sums);
  }
}
template <bool All>
WS_DEVICE void add_fours(const Arguments& a, float4* memory, const float (&p)[kPadded], float (&sums)[kPadded]) {
#pragma unroll(kPackets ? 16 : 2)
  for (int q = 0; q < kFours - kPackets; ++q) add_four<All>(a, memory, q, p, sums);
  if constexpr (kPackets) add_four<false>(a, memory, kFours - 1, p, sums);
}

// Sends the sums of this block's cluster to all blocks of the grid, then adds the sums of all clusters. One warp
// computes one sum, and each of its lanes gets the result. Returns false if the wait timed out.
WS_DEVICE bool sum_over_clusters(const Arguments& a, const Watch& watch, int step,
                                 const float (&inbox)[kBlocks][kPadded],
                                 float (&total)[(kSums + kWarps - 1) / kWarps]) {
  const uint number = a.exchange_base + static_cast<uint>(step) + 1;
  uint2* board = static_cast<uint2*>(a.exchange) + kFlagBytes / 8 + (step & 1) * kClusters * kSums;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const int cluster = static_cast<int>(blockIdx.x) / kBlocks;
#pragma unroll
  for (int k = 0; k < (kSums + kWarps - 1) / kWarps; ++k) {
    const int i = warp + k * kWarps;
    if (i >= kSums || lane != 0 || blockIdx.x % kBlocks != static_cast<uint>(i) % kBlocks) continue;
    float sum = 0.f;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) sum += inbox[b][i];
    write_numbered(board + i * kClusters + cluster, sum, number);
  }
  bool well = true;
#pragma unroll
  for (int k = 0; k < (kSums + kWarps - 1) / kWarps; ++k) {
    const int i = warp + k * kWarps;
    total[k] = 0.f;
    if (i >= kSums) continue;
    for (int c = lane; c < kClusters; c += 32) {
      float value;
      well &=
          wait_until(watch, kWaitSums, step, [&] { return peek_numbered(board + i * kClusters + c, number, value); });
      total[k] += value;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) total[k] += __shfl_xor_sync(~0u, total[k], d);
  }
  return well;
}

// Where the blocks leave a packet of a step.
WS_DEVICE uint4* packets_of(const Arguments& a, int step, int copy, int packet) {
  return static_cast<uint4*>(a.exchange) + kFlagBytes / 16 +
         (((step & 1) * kCopies + copy) * kPacketsEach + packet) * kClusters * kApart;
}
// Sends the sums of this block, which the lanes of the first warp have.
WS_DEVICE void send_packets(const Arguments& a, int step, float total) {
  const uint number = a.exchange_base + static_cast<uint>(step) + 1;
  static_assert(!kPackets || kPacketsEach * kCopies <= 32);
  const int lane = static_cast<int>(threadIdx.x), packet = lane / kCopies;
  const float x = __shfl_sync(~0u, total, 3 * packet), y = __shfl_sync(~0u, total, 3 * packet + 1),
              z = __shfl_sync(~0u, total, 3 * packet + 2);
  if (packet < kPacketsEach)
    write_packet(packets_of(a, step, lane % kCopies, packet) + blockIdx.x * kApart, x, y, z, number);
}
// Adds a packet of all blocks. Returns false if the wait timed out.
WS_DEVICE bool sum_packets(const Arguments& a, const Watch& watch, int step, int packet, float (&total)[3]) {
  constexpr int each = (kClusters + 31) / 32;
  const uint number = a.exchange_base + static_cast<uint>(step) + 1;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const uint4* from = packets_of(a, step, static_cast<int>(blockIdx.x % kCopies), packet);
  float value[each][3];
  for (const uint begin = cycles(); cycles() - begin < kPause;) {
  }
  // All loads of a lane are in flight at once.
  const bool well = wait_until(watch, kWaitSums, step, [&] {
    bool all = true;
#pragma unroll
    for (int c = 0; c < each; ++c)
      all &=
          peek_packet(from + min(lane + 32 * c, kClusters - 1) * kApart, number, value[c][0], value[c][1], value[c][2]);
    return all;
  });
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    total[i] = 0.f;
#pragma unroll
    for (int c = 0; c < each; ++c) total[i] += lane + 32 * c < kClusters ? value[c][i] : 0.f;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
#pragma unroll
    for (int i = 0; i < 3; ++i) total[i] += __shfl_xor_sync(~0u, total[i], d);
  return well;
}
#endif
// Returns the parameter or sum of this thread. With many clusters a warp has every kWarps-th, with packets the three of
// its packet.
WS_DEVICE int own_sum() {
  const int thread = static_cast<int>(threadIdx.x), of_packet = 3 * (thread >> 5) + (thread & 31);
  if (kPackets) return (thread & 31) < 3 && of_packet < kSent ? of_packet : kSums;
  return kClusters > 1 ? (thread >> 5) + (thread & 31) * kWarps : thread;
}

struct OwnParameter {
  float *w, *m, *v;
  bool is_weight;
  // Finds parameter i of the network in the state's tensors.
  WS_DEVICE OwnParameter(const Arguments& a, int i) {
#pragma unroll
    for (int l = 0; l < kLayers; ++l) {
      const LayerState& s = a.layers[l];
      if (i >= weight_at(l) && i < bias_at(l))
        w = s.w, m = s.w_m, v = s.w_v, is_weight = true, place = i - weight_at(l);
      if (choice::bias && i >= bias_at(l) && i < weight_at(l + 1))
        w = s.b, m = s.b_m, v = s.b_v, is_weight = false, place = i - bias_at(l);
    }
    w += place, m = kMoves ? m + place : nullptr, v = kSquares ? v + place : nullptr;
  }

 private:
  int place = 0;
};

// The rows of a thread in registers, and where its rows of the step after the next lie.
struct KeptRows {
  Row rows[kRowsEach], next[choice::all_rows ? 1 : kRowsEach];
  long long ahead[kRowsEach];

  WS_DEVICE void begin(const Arguments& a) {
#pragma unroll
    for (int k = 0; k < kRowsEach; ++k) {
      int place;
      ahead[k] = 0;
      if (!has_row(a, k, place)) continue;
      read_row(a, index_of(a, 0, place), rows[k]);
      if (!choice::all_rows && a.steps > 1) ahead[k] = index_of(a, 1, place);
    }
  }
  // Starts the loads of the next step.
  WS_DEVICE void fetch(const Arguments& a, int step) {
    if constexpr (choice::all_rows) return;
#pragma unroll
    for (int k = 0; k < kRowsEach; ++k) {
      int place;
      if (!has_row(a, k, place) || step + 1 >= a.steps) continue;
      read_row(a, ahead[k], next[k]);
      if (step + 2 < a.steps) ahead[k] = index_of(a, step + 2, place);
    }
  }
  WS_DEVICE void turn() {
    if constexpr (choice::all_rows) return;
#pragma unroll
    for (int k = 0; k < kRowsEach; ++k) rows[k] = next[choice::all_rows ? 0 : k];
  }
};

// Runs all rows of this thread forward and backward.
WS_DEVICE void add_rows(const Arguments& a, [[maybe_unused]] float4* fours, const KeptRows& kept, bool has_all,
                        const float (&p)[kPadded], float (&sums)[kPadded]) {
  if constexpr (kPackets) {
#pragma unroll
    for (int k = 0; k < kRowsEach; ++k)
      if (kFours > 0 || k < kRowsEach - 1 || has_all) add_row(p, kept.rows[k], sums);
#if __CUDA_ARCH__ >= 900
    if constexpr (kFours > 0) add_fours<true>(a, fours, p, sums);
#endif
  } else if (kRowsEach > 1 && has_all) {
#pragma unroll
    for (int k = 0; k < kRowsEach; ++k) add_row(p, kept.rows[k], sums);
#if __CUDA_ARCH__ >= 900
    if constexpr (kFours > 0) add_fours<true>(a, fours, p, sums);
#endif
  } else {
#pragma unroll
    for (int k = 0; k < kRowsEach; ++k) {
      int place;
      if (has_row(a, k, place)) add_row(p, kept.rows[k], sums);
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (kFours > 0) add_fours<false>(a, fours, p, sums);
#endif
  }
}

// Adds the sums of the lanes and warps of a block. Returns the total of this thread's sum.
WS_DEVICE float sum_over_block(Shared& shared, float (&sums)[kPadded]) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread >> 5;
  int first = 0, end = kSums;
  add_lanes<kSums, 16>(sums, first, end);
#pragma unroll
  for (int i = 0; i < left_after(kSums, 5); ++i)
    if (first + i < end) shared.sums[warp][first + i] = sums[i];
  __syncthreads();
  float total = 0.f;
  if (thread < kSums) {
#pragma unroll
    for (int i = 0; i < kWarps; ++i) total += shared.sums[i][thread];
  }
  return total;
}

#if __CUDA_ARCH__ >= 900
// Adds the sums of all blocks to `total`. Returns true if a wait timed out.
WS_DEVICE bool sum_over_blocks(const Arguments& a, Shared& shared, const Watch& watch, uint barrier, int step, int mine,
                               float& total) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread >> 5;
  bool lost = false;
  const bool sends = !(a.lose_message_at == step && blockIdx.x == 1);
  if constexpr (kBlocks > 1) {
    if (thread < kSums && sends) {
      const uint where = shared_address(&shared.inbox[step & 1][blockIdx.x % kBlocks][thread]);
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        const uint to = static_cast<uint>(i) ^ (blockIdx.x % kBlocks);
        send(in_block(where, to), in_block(barrier + 8 * (step & 1), to), total);
      }
    }
    if (kClusters > 1 || thread < kSums) lost = !wait(watch, barrier + 8 * (step & 1), (step >> 1) & 1, kWaitSums, step);
    total = 0.f;
    if constexpr (kClusters > 1) {
      float totals[(kSums + kWarps - 1) / kWarps];
      lost |= !sum_over_clusters(a, watch, step, shared.inbox[step & 1], totals);
#pragma unroll
      for (int k = 0; k < (kSums + kWarps - 1) / kWarps; ++k)
        if (mine == warp + k * kWarps) total = totals[k];
    } else if (thread < kSums) {
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) total += shared.inbox[step & 1][i][thread];
    }
  }
  if constexpr (kPackets) {
    if (warp == 0 && sends) send_packets(a, step, total);
    if (warp < kPacketsEach) {
      float totals[3];
      lost = !sum_packets(a, watch, step, warp, totals);
      const int i = thread & 31;
      total = i == 0 ? totals[0] : i == 1 ? totals[1] : totals[2];
    }
  }
  return lost;
}

// Prepares the messages between the blocks of a cluster. Returns the address of the barriers.
WS_DEVICE uint begin_messages(Shared& shared) {
  if constexpr (kBlocks == 1) return 0;
  const uint barrier = shared_address(shared.barrier);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1), barrier_init(barrier + 8, 1);
    barriers_are_ready();
    barrier_expect(barrier, kBlocks * kSums * 4), barrier_expect(barrier + 8, kBlocks * kSums * 4);
  }
  __syncthreads();
  cluster_meets();
  return barrier;
}
#endif

WS_DEVICE void read_parameters(const Shared& shared, float (&p)[kPadded]) {
#pragma unroll
  for (int i = 0; i < kPadded; i += 4) {
    const float4 q = *reinterpret_cast<const float4*>(shared.parameters + i);
    p[i] = q.x, p[i + 1] = q.y, p[i + 2] = q.z, p[i + 3] = q.w;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) ws_train(const __grid_constant__ Arguments a) {
  __shared__ Shared shared;
  const int thread = static_cast<int>(threadIdx.x), mine = own_sum();
  if (thread == 0) shared.dead = 0;
#if __CUDA_ARCH__ >= 900
  extern __shared__ float4 fours[];
  const Watch watch{&shared.dead, a.limit, a.fault};
  const uint barrier = begin_messages(shared);
  if constexpr (kFours > 0) fill_fours(a, fours);
#else
  float4* fours = nullptr;
#endif
  const bool owns = mine < kParameters;
  const OwnParameter own(a, owns ? mine : 0);
  float w = 0.f, m = 0.f, v = 0.f;
  if (owns) {
    w = *own.w;
    if (kMoves) m = *own.m;
    if (kSquares) v = *own.v;
    shared.parameters[mine] = w;
  }
  KeptRows rows;
  rows.begin(a);
  const bool has_all = place_of(kRowsEach + 4 * kFours - 1) < a.batch;
  const float factor = mine == kParameters ? kLossFactor : owns ? gradient_factor(a) : 1.f;
  Rates rates(a);
  float* metrics = a.metrics + 3 * (a.first_step % a.ring);
  StampLane stamps(a, static_cast<int>(blockIdx.x), thread == 0);
  __syncthreads();
#pragma unroll 1
  for (int s = 0; s < a.steps; ++s) {
    const float rate = rates.take();
    stamps.begin(s, kPartForward);
    rows.fetch(a, s);
    float p[kPadded], sums[kPadded] = {};
    read_parameters(shared, p);
    add_rows(a, fours, rows, has_all, p, sums);
    stamps.begin(s, kPartBackward);
    float total = sum_over_block(shared, sums);
    bool lost = false;
#if __CUDA_ARCH__ >= 900
    if constexpr (kBlocks * kClusters > 1) {
      stamps.begin(s, kPartWait, kWaitSums);
      lost = sum_over_blocks(a, shared, watch, barrier, s, mine, total);
    }
#endif
    total *= factor;
    stamps.begin(s, kPartUpdate);
    if (owns) {
      move(a, step_factors(a, rate, 1.f, a.first_step + s), own.is_weight, w, m, v, total);
      shared.parameters[mine] = w;
    } else if (mine < kSums && blockIdx.x == 0) {
      metrics[mine - kParameters] = total;
      if (mine == kParameters) metrics[2] = static_cast<float>(a.batch);
      if (kPackets && !kClasses) metrics[1] = 0.f;
    }
    if constexpr (kBlocks * kClusters > 1) {
      if (__syncthreads_or(lost)) break;
#if __CUDA_ARCH__ >= 900
      if (kBlocks > 1 && thread == 0) barrier_expect(barrier + 8 * (s & 1), kBlocks * kSums * 4);
#endif
    } else {
      __syncthreads();
    }
    metrics = rates.at == 0 ? a.metrics : metrics + 3;
    rows.turn();
  }
  stamps.end(a.steps);
#if __CUDA_ARCH__ >= 900
  if constexpr (kBlocks > 1) cluster_meets();
#endif
  if (!owns || blockIdx.x != 0 || shared.dead) return;
  *own.w = w;
  if (kMoves) *own.m = m;
  if (kSquares) *own.v = v;
}

}  // namespace ws::cuda::persistent
