// A kernel for a network with one hidden layer, in one cluster of 16 blocks. The weights stay in registers from the
// first to the last step of a launch.
//
// Each block owns a slice of the inputs, and the R rows of each batch whose place modulo 16 is its rank. A step:
//   1. Forward: the block multiplies its slice of the batch by its slice of W1 (wgmma, weights as register operand)
//      and sends partial sums of z1 to the owners of the rows.
//   2. Middle: an owner adds the partial sums and activates. It runs the output layer and the loss for its rows, and
//      sends dz2 and the slopes of the activation to all blocks.
//   3. Backward: each block recomputes dz1 of all rows in registers, multiplies it by its slice of the batch and
//      updates its weights. The sums have the layout of the weights in registers.
// A batch of more than 128 rows is shared by several clusters, which all keep the same weights. They add their
// gradients through the L2 cache.
//
// W2 is split by hidden units: a helper warp group computes its gradient, updates it and sends it to all blocks. The
// same group loads the rows of the next step.
//
// A place is the position of a batch row in this block. Places are permuted by the rank, so messages of different
// blocks go to different targets at any time. Inputs within a tile of 8 are permuted if the layouts of operand and sum
// differ (tf32).
#pragma once

namespace ws::cuda::persistent {

constexpr int B = choice::batch, R = B / kBlocks, H = choice::hidden_padded, O = choice::outputs;
constexpr int kClusters = choice::clusters, kAllBlocks = kClusters * kBlocks;
constexpr int kMathGroups = H / 64, kMathThreads = 128 * kMathGroups, kMathWarps = 4 * kMathGroups;
constexpr int kThreads = kMathThreads + 128;
constexpr int OW = choice::outputs_padded;  // floats per row of dz2
constexpr int kOwn = H / kBlocks;           // hidden units whose W2 this block updates
constexpr int kSend = kOwn / 4;             // hidden units of kOwn that one lane of the middle holds
constexpr int kBackwardSteps = B / kDepth;
constexpr int kPasses = choice::precision == kFp32 ? 3 : 1;  // tf32 products that give one fp32 product
constexpr int kChunkStride = B * 16, kChunks = choice::row_bytes / 16;
constexpr int kHalfRows = 8 / R;        // groups of lanes that share a row in the middle: 2 or 1
constexpr int kValues = 4 / kHalfRows;  // hidden units per lane in the middle
constexpr int kW2Stride = H + 4;
constexpr int kW2Bytes = 16 * kW2Stride * 4, kOutputBytes = kW2Bytes + 64;  // W2; W2 and b2
constexpr bool kJudges = choice::precision == kFp16;  // a step whose gradients are not all finite changes no weight
constexpr bool kSlopes = choice::activation != kNone && choice::activation != kRelu;
constexpr bool kBits = choice::activation == kRelu;
// Messages and copies of rows go through one queue. In tf32 the helper therefore asks for rows at the end of a step, when
// the partial sums are no longer under way: with one cluster before it sends W2, with several before it waits for them.
constexpr bool kLateRows = choice::precision == kTf32;

constexpr int kPartialBytes = kBlocks * H * R * (choice::half_partials ? 2 : 4);
constexpr int kSlopeBytes = kBits ? kBlocks * kMathWarps * R * 2 : kSlopes ? kBlocks * kMathWarps * R * 64 : 0;
constexpr int kGradientBytes = B * OW * (kHalves ? 2 : 4) + kSlopeBytes;
constexpr int kOutputSteps = choice::output_steps, kGradientStride = choice::gradient_stride;
constexpr int kTargets = kClasses ? 1 : O;  // numbers of a row's target
constexpr int kHiddenBytes = B * kOwn * 4;
constexpr int kWeightBytes = kBlocks * O * kOwn * 4 + (choice::bias ? O * 4 : 0);
constexpr int kSlopeOwner = R * 16 + 4;  // floats of one owner's slopes for 16 hidden units

// The owner and the row of a column in a tile of dz1.
WS_DEVICE int column_owner(int tile, int column) {
  return kHalves ? 8 * (tile / R) + column : (2 * tile + (column & 1)) & 15;
}
WS_DEVICE int column_row(int tile, int column) { return kHalves ? tile % R : 4 * (tile >> 3) + (column >> 1); }
// The other way round: the column of a row, counted over all tiles.
WS_DEVICE int column_of(int owner, int row) {
  return kHalves ? 8 * (R * (owner >> 3) + row) + (owner & 7)
                 : 8 * ((owner >> 1) + 8 * (row >> 2)) + (owner & 1) + 2 * (row & 3);
}

enum Barriers {
  kPartials,
  kGradients,
  kHidden,
  kWeights,
  kJudged0,
  kJudged1,
  kRows0,
  kRows1,
  kTurned0,
  kTurned1,
  kFree0,
  kFree1
};

struct Block {
  uint shared, rank;
  int cluster;
  Watch watch;
  WS_DEVICE uint at(int offset) const { return shared + static_cast<uint>(offset); }
  WS_DEVICE uint barrier(int i) const { return at(choice::at_barriers) + 8u * static_cast<uint>(i); }
  // W2, and b2 behind it. Where gradients are judged there are two copies: the weights of this step and of the next.
  WS_DEVICE uint output_weights(uint copy) const { return at(choice::at_w2) + (kJudges ? copy * kOutputBytes : 0); }
  // fp16, for even and for odd steps: 1 + the last step with a gradient that is not finite.
  WS_DEVICE uint verdict(int step) const { return at(choice::at_dead + 4 + 4 * (step & 1)); }
  // For even and for odd steps: 1 + the last step in which a wait of a math warp timed out. (ptxas repeats a barrier that
  // returns this for all warps, instead of keeping the result.)
  WS_DEVICE uint lost(int step) const { return at(choice::at_dead + 12 + 4 * (step & 1)); }
  // fp16: a warp says if one of its gradients of the step is not finite.
  WS_DEVICE void judge(int step, int lane, bool bad) const {
    if constexpr (!kJudges) return;
    if (bad) store_u(verdict(step), static_cast<uint>(step + 1));
    __syncwarp();
    if (lane == 0) barrier_arrive(barrier(kJudged0 + (step & 1)));
  }
  // fp16: returns true if a gradient of the step is not finite. Every block sees all gradients, so all find the same.
  // Waits for the warps of this block only, and calls no function: products may be in flight.
  WS_DEVICE bool is_bad(int step, bool& alive) const {
    if constexpr (!kJudges) return false;
    while (!barrier_passed(barrier(kJudged0 + (step & 1)), (step >> 1) & 1))
      if (*watch.dead) {
        alive = false;
        break;
      }
    __syncwarp();
    return load_u(verdict(step)) == static_cast<uint>(step + 1);
  }
  // The row of the batch that this block owns as number `row`.
  WS_DEVICE int own_row(int row) const { return first_row() + static_cast<int>(rank) + kBlocks * row; }
  WS_DEVICE int first_row() const { return kClusters == 1 ? 0 : cluster * B; }
  WS_DEVICE int number() const { return (kClusters == 1 ? 0 : cluster * kBlocks) + static_cast<int>(rank); }
  // The target of this block's row `row` of a step: number i.
  WS_DEVICE uint target(int step, int row, int i) const {
    return at(choice::at_targets + (((step & 3) * R + row) * kTargets + i) * 4);
  }
};

// ---- gradients of several clusters ----
// Sums go in pairs: (own + far 1) + (far 2 + far 3), where far i is the cluster whose number differs in the bits of i.
// As a + b = b + a, clusters that each add the same values get the same bits.
constexpr int kFar = kClusters > 1 ? kClusters - 1 : 1;  // unused with one cluster
// Where the block of this rank in a cluster leaves its gradients of a step.
WS_DEVICE char* gradients_of(const Arguments& a, const Block& block, int step, int cluster) {
  const int at = ((step & 1) * kClusters + cluster) * kBlocks + static_cast<int>(block.rank);
  return static_cast<char*>(a.exchange) + kFlagBytes + static_cast<size_t>(at) * choice::gradient_bytes;
}
WS_DEVICE float sum_of_clusters(const float (&v)[kClusters]) {
  static_assert(kClusters == 1 || kClusters == 2 || kClusters == 4 || kClusters == 8, "pairs of pairs");
  float sum[kClusters];
#pragma unroll
  for (int i = 0; i < kClusters; ++i) sum[i] = v[i];
#pragma unroll
  for (int n = kClusters / 2; n > 0; n /= 2)
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] = sum[2 * i] + sum[2 * i + 1];
  return sum[0];
}
// Adds the sums of all clusters. Cluster c adds the sums of tiles c, c + kClusters..., and sends the totals to all.
// One value of four carries the tag of its step in its last bits, and loses them.
class GradientExchange {
 public:
  WS_DEVICE GradientExchange(const Arguments& a, const Block& b, int step)
      : block_(b),
        step_(step),
        lane_(static_cast<int>(threadIdx.x) & 31),
        tag_(tag_of(a.exchange_base + static_cast<uint>(step) + 1)),
        first_(reinterpret_cast<uint4*>(gradients_of(a, b, step, 0)) + threadIdx.x) {}
  // Returns false if a wait timed out.
  WS_DEVICE bool run(float (&sums)[4 * kTiles]) const {
    float v[4 * kTiles];  // other registers than the products use, which would else wait for each other
#pragma unroll
    for (int i = 0; i < 4 * kTiles; ++i) {
      v[i] = sums[i];
      asm volatile("" : "+f"(v[i]));
    }
    bool well = true;
    if (block_.cluster == 0) well = exchange<0>(v);
    if (kClusters > 1 && block_.cluster == 1) well = exchange<1 % kClusters>(v);
    if (kClusters > 2 && block_.cluster == 2) well = exchange<2 % kClusters>(v);
    if (kClusters > 2 && block_.cluster == 3) well = exchange<3 % kClusters>(v);
#pragma unroll
    for (int i = 0; i < 4 * kTiles; ++i) sums[i] = v[i];
    return well;
  }

 private:
  static_assert(kClusters <= 4, "run names each cluster");
  static constexpr uint kKept = ~255u;
  static constexpr uint kPause = 200;                                 // cycles before the first poll
  static constexpr int kMost = (kTiles + kClusters - 1) / kClusters;  // tiles that a cluster adds

  WS_DEVICE bool has_tag(uint word) const { return ((word ^ tag_) & ~kKept) == 0; }
  WS_DEVICE uint4* place(int cluster, int tile) const {
    return first_ + (cluster * kBlocks * choice::gradient_bytes / 16 + tile * kMathThreads);
  }
  // The last of the tiles that a cluster adds; -1: it has none.
  static WS_BOTH constexpr int last_of(int cluster) {
    return kTiles <= cluster ? -1 : cluster + (kTiles - 1 - cluster) / kClusters * kClusters;
  }
  // The value that stays loses the same bits.
  WS_DEVICE void send(int cluster, int tile, float* v) const {
    const uint last = bits(v[3]) & kKept;
    v[3] = __uint_as_float(last);
    write_quad(place(cluster, tile), make_uint4(bits(v[0]), bits(v[1]), bits(v[2]), last | tag_));
  }
  // Waits until one word from each other cluster has its tag: the tag of the tile `last`. One lane asks for each, as
  // more questions would slow the messages. What was sent before has then probably arrived, too.
  template <class Last>
  WS_DEVICE bool expect(int own, Last last) const {
    const int tile = lane_ < kClusters ? last(lane_) : -1;
    const bool asks = lane_ < kClusters && lane_ != own && tile >= 0;
    const uint* word = &(place(asks ? lane_ : own, asks ? tile : 0) - lane_)->w;
    for (const uint begin = cycles(); cycles() - begin < kPause;) {
    }
    return warp_waits_until(block_.watch, kWaitSums, step_, [&] { return !asks || has_tag(read_word(word)); });
  }
  template <int Own>
  WS_DEVICE bool exchange(float (&sums)[4 * kTiles]) const {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
      if (j % kClusters != Own) send(Own, j, sums + 4 * j);
    bool well = last_of(Own) < 0 || (expect(Own, [](int) { return last_of(Own); }) && add_own_tiles<Own>(sums));
#pragma unroll
    for (int j = Own; j < kTiles; j += kClusters) send(Own, j, sums + 4 * j);
    return well && expect(Own, [](int cluster) { return last_of(cluster); }) && read_totals<Own>(sums);
  }
  template <int Own>
  WS_DEVICE bool add_own_tiles(float (&sums)[4 * kTiles]) const {
    uint4 far[kMost][kFar];
    const bool well = warp_waits_until(block_.watch, kWaitSums, step_, [&] {
      bool all = true;
#pragma unroll
      for (int j = Own; j < kTiles; j += kClusters)
#pragma unroll
        for (int i = 0; i < kFar; ++i) far[j / kClusters][i] = read_quad(place(Own ^ (i + 1), j));
#pragma unroll
      for (int j = Own; j < kTiles; j += kClusters)
#pragma unroll
        for (int i = 0; i < kFar; ++i) all &= has_tag(far[j / kClusters][i].w);
      return all;
    });
#pragma unroll
    for (int j = Own; j < kTiles; j += kClusters)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float v[kClusters];
        v[0] = sums[4 * j + k];
#pragma unroll
        for (int i = 1; i < kClusters; ++i) {
          const uint4& q = far[j / kClusters][i - 1];
          const uint value = k == 0 ? q.x : k == 1 ? q.y : k == 2 ? q.z : q.w & kKept;
          v[i] = __uint_as_float(value);
        }
        sums[4 * j + k] = sum_of_clusters(v);
      }
    return well;
  }
  template <int Own>
  WS_DEVICE bool read_totals(float (&sums)[4 * kTiles]) const {
    uint4 totals[kTiles];
    const bool well = warp_waits_until(block_.watch, kWaitSums, step_, [&] {
      bool all = true;
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
        if (j % kClusters != Own) totals[j] = read_quad(place(j % kClusters, j));
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
        if (j % kClusters != Own) all &= has_tag(totals[j].w);
      return all;
    });
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      if (j % kClusters == Own) continue;
      const uint4& q = totals[j];
      sums[4 * j] = __uint_as_float(q.x), sums[4 * j + 1] = __uint_as_float(q.y);
      sums[4 * j + 2] = __uint_as_float(q.z), sums[4 * j + 3] = __uint_as_float(q.w & kKept);
    }
    return well;
  }

  const Block& block_;
  int step_, lane_;
  uint tag_;
  uint4* first_;  // this thread's values of the first cluster
};
// The same for a weight and a bias of this helper thread.
WS_DEVICE bool add_clusters(const Arguments& a, const Block& block, int step, bool has_weight, float& weight,
                            bool has_bias, float& bias) {
  const uint number = a.exchange_base + static_cast<uint>(step) + 1;
  const int thread = static_cast<int>(threadIdx.x) - kMathThreads;
  const auto place = [&](int i) {
    return reinterpret_cast<uint2*>(gradients_of(a, block, step, block.cluster ^ i) + kTiles * kMathThreads * 16);
  };
  if (has_weight) write_numbered(place(0) + thread, weight, number);
  if (has_bias) write_numbered(place(0) + 128, bias, number);
  float weights[kClusters] = {weight}, biases[kClusters] = {bias};
  const bool well = warp_waits_until(block.watch, kWaitSums, step, [&] {
    bool all = true;
#pragma unroll
    for (int i = 1; i < kClusters; ++i) {
      if (has_weight) all &= peek_numbered(place(i) + thread, number, weights[i]);
      if (has_bias) all &= peek_numbered(place(i) + 128, number, biases[i]);
    }
    return all;
  });
  if (has_weight) weight = sum_of_clusters(weights);
  if (has_bias) bias = sum_of_clusters(biases);
  return well;
}

// W2 as the first operand of the product that gives the gradients of a warp's hidden units.
struct TurnedWeights {
  uint v[2][4];  // of 16 bits: v[0] only
};

// ---- the middle: the owner's rows ----
struct Middle {
  const Arguments& a;
  const Block& block;
  // A lane has one row. With four rows, two groups of lanes share each row: `part` selects which hidden units a lane has.
  // Lane 8·row + u then has units u and u + 8.
  int warp, lane, g, t, row, part;
  bool valid;
  float w2[2][4], bias[4];
  TurnedWeights w2t;

  WS_DEVICE Middle(const Arguments& args, const Block& b, int w, int l)
      : a(args), block(b), warp(w), lane(l), g(l >> 2), t(l & 3), row(R == 4 ? g >> 1 : g), part(R == 4 ? g & 1 : 0) {
    valid = block.own_row(row) < a.batch;
  }

  // Loads what this warp needs of W2 in the middle.
  WS_DEVICE void load_weights(uint copy) {
    const uint w = block.output_weights(copy) + 64u * static_cast<uint>(warp);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int first = unit_of_product(k, 0), second = unit_of_product(k, 1);
      w2[k][0] = load_f(w + (g * kW2Stride + first) * 4);
      w2[k][1] = load_f(w + ((g + 8) * kW2Stride + first) * 4);
      w2[k][2] = load_f(w + (g * kW2Stride + second) * 4);
      w2[k][3] = load_f(w + ((g + 8) * kW2Stride + second) * 4);
    }
    const float4 b = load_f4(block.output_weights(copy) + kW2Bytes + 16 * t);
    bias[0] = b.x, bias[1] = b.y, bias[2] = b.z, bias[3] = b.w;
  }
  // Loads what this warp needs of W2 in the backward product. W2 of the next step can arrive once the gradients are sent.
  WS_DEVICE void load_turned_weights(uint copy) {
    const uint w = block.output_weights(copy) + 64u * static_cast<uint>(warp) + 4u * static_cast<uint>(g);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int first = kPasses == 3 ? 4 * t + 2 * k : kHalves ? 8 * k + 2 * t : 8 * k + t;
      const int second = kPasses == 3 || kHalves ? first + 1 : first + 4;
      const float a = load_f(w + first * kW2Stride * 4), b = load_f(w + first * kW2Stride * 4 + 32);
      const float c = load_f(w + second * kW2Stride * 4), d = load_f(w + second * kW2Stride * 4 + 32);
      if constexpr (kHalves)
        w2t.v[0][2 * k] = half_pair(a, c), w2t.v[0][2 * k + 1] = half_pair(b, d);
      else
        w2t.v[k][0] = bits(a), w2t.v[k][1] = bits(b), w2t.v[k][2] = bits(c), w2t.v[k][3] = bits(d);
    }
  }

  // Returns which of this warp's sixteen units belongs to operand `i` of product `k`.
  WS_DEVICE int unit_of_product(int k, int i) const { return R == 4 ? t + 4 * k + 8 * i : t + 8 * k + 4 * i; }

  // Computes z1 of this lane's row. With four rows the units are t + 4·part + 8i, with eight rows t + 4i.
  WS_DEVICE void add_partials(float (&z)[kValues]) const {
    if constexpr (R == 4)
      add_partials_of_four_rows(z);
    else
      add_partials_of_eight_rows(z);
  }
  // Each lane adds all four rows of a quarter of the sources. Then the lanes exchange rows.
  WS_DEVICE void add_partials_of_four_rows(float (&z)[kValues]) const {
    constexpr int each = choice::partials_each;
    float sum[2][4] = {};
    const uint from = block.at(choice::at_partials) + row * each;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (choice::half_partials) {
        const uint4 q = load_u4(from + 4 * k * each + warp * 128 + (t + 4 * part) * 16);
        const uint words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sum[i >> 1][2 * (i & 1)] += fp16_low(words[i]);
          sum[i >> 1][2 * (i & 1) + 1] += fp16_high(words[i]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float4 q = load_f4(from + 4 * k * each + (16 * warp + t + 4 * part + 8 * i) * 16);
          sum[i][0] += q.x, sum[i][1] += q.y, sum[i][2] += q.z, sum[i][3] += q.w;
        }
      }
    }
    const bool upper = row & 2, odd = row & 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float a0 = upper ? sum[i][2] : sum[i][0], a1 = upper ? sum[i][3] : sum[i][1];
      const float b0 = upper ? sum[i][0] : sum[i][2], b1 = upper ? sum[i][1] : sum[i][3];
      const float c0 = a0 + __shfl_xor_sync(~0u, b0, 16), c1 = a1 + __shfl_xor_sync(~0u, b1, 16);
      z[i] = (odd ? c1 : c0) + __shfl_xor_sync(~0u, odd ? c0 : c1, 8);
    }
  }
  WS_DEVICE void add_partials_of_eight_rows(float (&z)[kValues]) const {
    constexpr int each = choice::partials_each;
    const uint from = block.at(choice::at_partials);
    if constexpr (choice::half_partials) {
      // Rows lie in pairs. A lane adds both rows of half of the sources, then two lanes exchange a row. Lanes of odd rows
      // have their units in another order, so that they read from other banks.
      const bool odd = row & 1;
      const uint mine = from + (16 * warp + t) * 16 + (row >> 1) * 4 + (odd ? kBlocks / 2 * each : 0);
      const uint at[2] = {mine + (odd ? 64 : 0), mine - (odd ? 64 : 0)};
      float even_row[kValues] = {}, odd_row[kValues] = {};
#pragma unroll
      for (int k = 0; k < kBlocks / 2; ++k)
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
          const uint pair = load_u(at[i & 1] + k * each + i * 64);
          even_row[i] += fp16_low(pair), odd_row[i] += fp16_high(pair);
        }
#pragma unroll
      for (int i = 0; i < kValues; ++i)
        z[i] = (odd ? odd_row[i ^ 1] : even_row[i]) + __shfl_xor_sync(~0u, odd ? even_row[i ^ 1] : odd_row[i], 4);
    } else {
      const uint mine = from + (16 * warp + t) * 32 + row * 4;
#pragma unroll
      for (int i = 0; i < kValues; ++i) z[i] = 0.f;
#pragma unroll
      for (int k = 0; k < kBlocks; ++k)
#pragma unroll
        for (int i = 0; i < kValues; ++i) z[i] += load_f(mine + k * each + i * 128);
    }
  }
  // Collects the values of units t + 4i from this lane and, with four rows, from its partner.
  WS_DEVICE void gather(const float (&mine)[kValues], float (&all)[4]) const {
    if constexpr (R == 4) {
      const float first = __shfl_xor_sync(~0u, mine[0], 4), second = __shfl_xor_sync(~0u, mine[1], 4);
      all[0] = part ? first : mine[0], all[1] = part ? mine[0] : first;
      all[2] = part ? second : mine[1], all[3] = part ? mine[1] : second;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) all[i] = mine[i];
    }
  }

  WS_DEVICE void send_slopes(const float (&z)[kValues], const float (&h)[kValues]) const {
    if constexpr (kBits) {
      uint word[kValues];
#pragma unroll
      for (int i = 0; i < kValues; ++i) word[i] = __ballot_sync(~0u, h[i] > 0.f);
      const uint to = static_cast<uint>(lane) % kBlocks, base = in_block(block.shared, to) - block.shared;
      const uint place_of_owner = block.rank ^ to;
      const uint where = base + block.at(choice::at_slopes) + (warp * kBlocks + place_of_owner) * (R * 2);
      const uint barrier = base + block.barrier(kGradients);
      if constexpr (R == 4)
        send2_if(lane < kBlocks, where, barrier, word[0], word[1]);
      else
        send4_if(lane < kBlocks, where, barrier, word[0], word[1], word[kValues - 2], word[kValues - 1]);
    }
    if constexpr (kSlopes) {
      float mine[kValues], slope[4];
#pragma unroll
      for (int i = 0; i < kValues; ++i) mine[i] = slope_at(z[i], h[i]);
      gather(mine, slope);
#pragma unroll 4
      for (int k = 0; k < kBlocks / kHalfRows; ++k) {
        const uint to = static_cast<uint>(k * kHalfRows + part), base = in_block(block.shared, to) - block.shared;
        const uint where =
            block.at(choice::at_slopes) + ((warp * kBlocks + (block.rank ^ to)) * kSlopeOwner + row * 16 + t * 4) * 4;
        send4(base + where, base + block.barrier(kGradients), bits(slope[0]), bits(slope[1]), bits(slope[2]),
              bits(slope[3]));
      }
    }
  }

  WS_DEVICE void send_hidden(const float (&mine)[kValues]) const {
    float h[4];
    gather(mine, h);
    constexpr int targets = 4 / kSend;  // blocks that update W2 of this warp's sixteen units
#pragma unroll
    for (int q = 0; q < targets / kHalfRows; ++q) {
      const int j = kHalfRows * q + part;
      const uint to = static_cast<uint>(warp * targets + j), base = in_block(block.shared, to) - block.shared;
      const uint where = base + block.at(choice::at_hidden) +
                         column_of(static_cast<int>(block.rank ^ to), row) * kOwn * 4 + t * kSend * 4;
      const uint barrier = base + block.barrier(kHidden);
      if constexpr (kSend == 2) {
        const float first = R == 4 ? (part ? h[2] : h[0]) : h[2 * q],
                    second = R == 4 ? (part ? h[3] : h[1]) : h[2 * q + 1];
        send2(where, barrier, bits(first), bits(second));
      } else {
        const float unit = R != 4 ? h[q] : part ? h[2 * q + 1] : h[2 * q];
        send(where, barrier, unit);
      }
    }
  }

  // Computes z of this lane's row for outputs 4t.., summed over all hidden units.
  WS_DEVICE void output_sums(const float (&h)[kValues], float (&z)[4]) const {
    float c[4] = {0, 0, 0, 0};
    if constexpr (R == 4) {
      multiply(c, w2[0], part ? 0.f : h[0], part ? 0.f : h[1]);
      multiply(c, w2[1], part ? h[0] : 0.f, part ? h[1] : 0.f);
    } else {
      multiply(c, w2[0], h[0], h[1]);
      multiply(c, w2[1], h[kValues - 2], h[kValues - 1]);
    }
    // Rows of 64 bytes. Every second pair of rows has its halves swapped, to avoid bank conflicts. With four rows, every
    // second warp swaps the rows of a pair, too.
    const uint sums = block.at(choice::at_sums);
    if constexpr (R == 4) {
      const uint mine = sums + warp * (R * 64) + (t ^ (warp & 1)) * 64, half = (t >> 1) * 32;
      store_f(mine + (g * 4 ^ half), c[0] + c[1]), store_f(mine + (32 + g * 4 ^ half), c[2] + c[3]);
    } else {
      const uint mine = sums + warp * (R * 64) + 2 * t * 64, half = (t & 1) * 32;
      store_f(mine + (g * 4 ^ half), c[0]), store_f(mine + 64 + (g * 4 ^ half), c[1]);
      store_f(mine + (32 + g * 4 ^ half), c[2]), store_f(mine + 64 + (32 + g * 4 ^ half), c[3]);
    }
    warps_meet(1, kMathThreads);
    const uint from = sums + part * (R * 64) + (row ^ part) * 64 + (t * 16 ^ (row >> 1 & 1) * 32);
#pragma unroll
    for (int i = 0; i < 4; ++i) z[i] = 0.f;
#pragma unroll
    for (int k = 0; k < kMathWarps / kHalfRows; ++k) {
      const float4 v = load_f4(from + k * kHalfRows * (R * 64));
      z[0] += v.x, z[1] += v.y, z[2] += v.z, z[3] += v.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (R == 4) z[i] += __shfl_xor_sync(~0u, z[i], 4);
      z[i] += bias[i];
    }
  }

  // Values of 16 bits are rounded when they are sent.
  WS_DEVICE static float operand(float d) { return kHalves ? d : rounded(d); }
  WS_DEVICE void send_gradient(const float (&d)[4]) const {
    constexpr int targets = kBlocks / kMathWarps;
#pragma unroll
    for (int k = 0; k < targets / kHalfRows; ++k) {
      const uint to = static_cast<uint>(warp * targets + k * kHalfRows + part);
      const uint base = in_block(block.shared, to) - block.shared;
      const uint column = block.at(choice::at_gradients) + column_of(static_cast<int>(block.rank ^ to), row) * 16;
      if constexpr (kHalves)
        send2_if(4 * t < OW, base + column + (t >> 1) * kGradientStride + (t & 1) * 8, base + block.barrier(kGradients),
                 half_pair(d[0], d[1]), half_pair(d[2], d[3]));
      else
        send4_if(4 * t < OW, base + column + t * kGradientStride, base + block.barrier(kGradients), bits(d[0]), bits(d[1]),
                 bits(d[2]), bits(d[3]));
    }
  }

  // z: z1 of this lane's row. Sends what the other blocks need of it but the gradients.
  WS_DEVICE void activate(const float (&z)[kValues], float (&h)[kValues]) const {
    float exact[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) exact[i] = activated(z[i]), h[i] = rounded(exact[i]);
    send_slopes(z, exact);
  }
  // Returns true if a math warp's wait timed out: then all of them leave.
  WS_DEVICE bool run(int step, const float (&h)[kValues], float gradient_scale, bool alive) {
    if (!alive) store_u(block.lost(step), static_cast<uint>(step + 1));
    float z[4], d[4];
    int label = 0;
    if constexpr (kClasses) label = static_cast<int>(load_u(block.target(step, row, 0)));
    output_sums(h, z);
    const bool lost = load_u(block.lost(step)) == static_cast<uint>(step + 1);
    if (warp == kMathWarps - 1 && part == 0)
      store_f4(block.at(choice::at_outputs) + row * 64 + t * 16, z[0], z[1], z[2], z[3]);
    __syncwarp();
    send_hidden(h);
    if constexpr (kClasses) {
      const float top = top_of(z);
      const float sum = exp_sum(z, top, d);
      const float factor = choice::precision == kFp32 ? gradient_scale / sum : gradient_scale * inverse_of(sum);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        d[i] = valid ? operand(d[i] * factor - (4 * t + i == label ? gradient_scale : 0.f)) : 0.f;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool is = valid && 4 * t + i < O;
        const float target = is ? load_f(block.target(step, row, 4 * t + i)) : 0.f;
        d[i] = is ? operand((z[i] - target) * 2.f * gradient_scale / static_cast<float>(O)) : 0.f;
      }
    }
    send_gradient(d);
    return lost;
  }
  // The largest output of a row. Its outputs lie in four lanes; outputs beyond the last are minus infinity.
  WS_DEVICE static float top_of(const float (&z)[4]) {
    const float top = fmaxf(fmaxf(z[0], z[1]), fmaxf(z[2], z[3]));
    const float a = __shfl_xor_sync(~0u, top, 1), b = __shfl_xor_sync(~0u, top, 2), c = __shfl_xor_sync(~0u, top, 3);
    return fmaxf(fmaxf(top, a), fmaxf(b, c));
  }
  WS_DEVICE static float exp_sum(const float (&z)[4], float top, float (&each)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) each[i] = exp_of(z[i] - top);
    const float sum = (each[0] + each[1]) + (each[2] + each[3]);
    const float a = __shfl_xor_sync(~0u, sum, 1), b = __shfl_xor_sync(~0u, sum, 2), c = __shfl_xor_sync(~0u, sum, 3);
    return (sum + a) + (b + c);
  }
};

// Writes the loss and the correct rows of this block for the host. One warp does it.
WS_DEVICE void note_loss(const Arguments& a, const Block& block, int step, int lane) {
  const int t = lane & 3, row = lane >> 2 & (R - 1);
  const float4 outputs = load_f4(block.at(choice::at_outputs) + row * 64 + t * 16);
  const float z[4] = {outputs.x, outputs.y, outputs.z, outputs.w};
  float loss = 0.f, correct = 0.f;
  if constexpr (kClasses) {
    const int label = static_cast<int>(load_u(block.target(step, row, 0)));
    float each[4];
    const float top = Middle::top_of(z), sum = Middle::exp_sum(z, top, each);
    int best = O;
#pragma unroll
    for (int i = 3; i >= 0; --i) {
      if (4 * t + i < O && z[i] == top) best = 4 * t + i;
      if (4 * t + i == label) loss = top - z[i];
    }
#pragma unroll
    for (int d = 1; d < 4; d *= 2) {
      best = min(best, __shfl_xor_sync(~0u, best, d));
      loss += __shfl_xor_sync(~0u, loss, d);
    }
    loss += log_of(sum);
    correct = best == label;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (4 * t + i >= O) continue;
      const float off = z[i] - load_f(block.target(step, row, 4 * t + i));
      loss += off * off / static_cast<float>(O);
    }
    loss += __shfl_xor_sync(~0u, loss, 1);
    loss += __shfl_xor_sync(~0u, loss, 2);
  }
  if (block.own_row(row) >= a.batch) loss = correct = 0.f;
#pragma unroll
  for (int d = 4; d < 4 * R; d *= 2) {
    loss += __shfl_xor_sync(~0u, loss, d);
    correct += __shfl_xor_sync(~0u, correct, d);
  }
  if (lane != 0) return;
  float* out = a.partials + (static_cast<size_t>(step) * kAllBlocks + block.number()) * 2;
  out[0] = loss, out[1] = correct;
}

// ---- the big layer ----
using Operand = Operands<(kForwardSteps > kBackwardSteps ? kForwardSteps : kBackwardSteps)>;

struct BigLayer : InputWeights {
  const Block& block;
  int lane, g;

  WS_DEVICE BigLayer(const Arguments& args, const Block& b, int warp, int l)
      : InputWeights(args, b.rank, warp, l), block(b), lane(l), g(l >> 2) {}

  WS_DEVICE void multiply_rows(float (&sums)[B / 4], const Operand& weights, uint tile, bool first) const {
    const ulong x = matrix(tile, kChunkStride, 128);
#pragma unroll
    for (int s = 0; s < kForwardSteps; ++s)
      forward_product(sums, weights.v[s][0], weights.v[s][1], weights.v[s][2], weights.v[s][3],
                      x + ((2 * s * kChunkStride) >> 4), !first || s > 0);
  }
  WS_DEVICE void multiply_half(float (&sums)[B / 4], const Operand& weights, const Operand& low, uint rows,
                               uint rest) const {
    if constexpr (kPasses == 3) {
      multiply_rows(sums, low, rows, true);
      multiply_rows(sums, weights, rest, false);
    }
    multiply_rows(sums, weights, rows, kPasses == 1);
    wgmma_commit();
  }

  // Sends partial z1 of the whole batch to the owners of the rows. One half of the batch is sent while the other is
  // multiplied. `rows`, `rest`: tiles of the batch; rest is only for fp32.
  WS_DEVICE void forward(int step, uint rows, uint rest, int warp) const {
    const bool sends = !(a.lose_message_at == step && block.rank == 1);
    constexpr uint half = B / 2 * 16;  // bytes of half of the places in a chunk
    Operand weights, low;
    operand<0>(weights);
    settle<0, kForwardSteps>(weights);
    if constexpr (kPasses == 3) operand<1>(low), settle<0, kForwardSteps>(low);
    float first[B / 4], second[B / 4];
    wgmma_fence();
    multiply_half(first, weights, low, rows, rest);
    multiply_half(second, weights, low, rows + half, rest + half);
    wgmma_wait<1>();
    send_partials(sends, first, 0, warp);
    wgmma_wait<0>();
    send_partials(sends, second, 1, warp);
  }

  // Sends hidden units `hidden` and `hidden` + 8 of the R rows of each owner in this half of the places.
  WS_DEVICE void send_partials(bool sends, const float (&sums)[B / 4], int half, int warp) const {
    const uint inbox = block.at(choice::at_partials) + block.rank * choice::partials_each;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const uint to = static_cast<uint>(8 * half + 2 * t + e) ^ block.rank;
      const uint base = in_block(block.shared, to) - block.shared, barrier = base + block.barrier(kPartials);
      const auto sum = [&](int row, int second) { return sums[4 * row + 2 * second + e]; };
      if constexpr (!choice::half_partials) {
#pragma unroll
        for (int second = 0; second < 2; ++second)
#pragma unroll
          for (int row = 0; row < R; row += 4)
            send4_if(sends, base + inbox + (hidden + 8 * second) * R * 4 + row * 4, barrier, bits(sum(row, second)),
                  bits(sum(row + 1, second)), bits(sum(row + 2, second)), bits(sum(row + 3, second)));
      } else if constexpr (R == 4) {
        send4_if(sends, base + inbox + warp * 128 + g * 16, barrier, fp16_pair_limited(sum(0, 0), sum(1, 0)),
              fp16_pair_limited(sum(2, 0), sum(3, 0)), fp16_pair_limited(sum(0, 1), sum(1, 1)),
              fp16_pair_limited(sum(2, 1), sum(3, 1)));
      } else {
#pragma unroll
        for (int second = 0; second < 2; ++second)
          send4_if(sends, base + inbox + (hidden + 8 * second) * 16, barrier, fp16_pair_limited(sum(0, second), sum(1, second)),
                fp16_pair_limited(sum(2, second), sum(3, second)), fp16_pair_limited(sum(4, second), sum(5, second)),
                fp16_pair_limited(sum(6, second), sum(7, second)));
      }
    }
  }

  // The slopes of four values of dz1, for two rows and two hidden units.
  struct Slopes {
    uint word[4];
  };
  WS_DEVICE Slopes load_slopes(int warp, int tile) const {
    const uint slopes = block.at(choice::at_slopes);
    const int owner = column_owner(tile, kHalves ? 2 * t : 0), row = column_row(tile, 2 * t);
    Slopes s{};
    if constexpr (kBits && R == 4) {
      const uint4 words = load_u4(slopes + (warp * kBlocks + owner) * 8);
      s = {{words.x, words.z, words.y, words.w}};
    }
    if constexpr (kBits && R == 8) {
      const uint from = slopes + (warp * kBlocks + owner) * 16 + (g >> 2) * 4;
      s = {{load_u(from), load_u(from + 16), load_u(from + 8), load_u(from + 24)}};
    }
    if constexpr (kSlopes) {
      const uint from = slopes + ((warp * kBlocks + owner) * kSlopeOwner + row * 16 + (g & 3) * 4 + (g >> 2)) * 4;
      s = {{load_u(from), load_u(from + kSlopeOwner * 4), load_u(from + 8), load_u(from + kSlopeOwner * 4 + 8)}};
    }
    return s;
  }
  WS_DEVICE void apply_slopes(int tile, const Slopes& s, float (&c)[4]) const {
    const int row = column_row(tile, 2 * t);
    const uint bit = R == 4 ? 1u << (8 * row + g) : 1u << (4 * row + (g & 3));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (kBits) c[k] = s.word[k] & bit ? c[k] : 0.f;
      if constexpr (kSlopes) c[k] *= __uint_as_float(s.word[k]);
    }
  }
  // Slopes of relu as masks for pairs of 16 bits. `words`: the bits of R tiles, whose places in the words differ by row
  // only. First they are moved so that the bit of each row is the sign of a byte, with eight rows the bit of two rows.
  WS_DEVICE void align_bits(Slopes& words) const {
#pragma unroll
    for (uint& word : words.word) word <<= R == 4 ? 7 - g : 3 - (g & 3);
  }
  template <int Row>
  WS_DEVICE static uint pair_mask(uint low, uint high) {
    constexpr uint byte = R == 4 ? Row : Row / 2, shift = R == 8 && Row % 2 == 0 ? 4 : 0;
    return signs_of_bytes<(8 + byte) * 0x11 + (12 + byte) * 0x1100>(low << shift, high << shift);
  }
  template <int Row>
  WS_DEVICE static void mask_pairs(const Slopes& words, uint& first, uint& second) {
    first &= pair_mask<Row>(words.word[0], words.word[1]);
    second &= pair_mask<Row>(words.word[2], words.word[3]);
  }
  template <int Row = 0>
  WS_DEVICE static void mask_rows(int tile, const Slopes& words, Operand& dz) {
    if constexpr (Row < R) {
      const int j = tile + Row;
      mask_pairs<Row>(words, dz.v[j / 2][2 * (j & 1)], dz.v[j / 2][2 * (j & 1) + 1]);
      mask_rows<Row + 1>(tile, words, dz);
    }
  }

  // Begins the product that gives the gradient of W1. Its first operand is dz1 of this warp's sixteen units, computed
  // here. With kInParts, one half of the batch is multiplied while the other is prepared. fp16: judges dz1.
  WS_DEVICE void begin_backward(int step, const TurnedWeights& w2t, int warp, uint rows, float (&sums)[4 * kTiles]) const {
    float c[B / 8][4];  // the products of W2 and the gradients
    begin_on_tensor_cores(w2t, c);
    constexpr int each = kHalves && kBits ? R : 1;  // tiles whose slopes are loaded together
    Slopes slopes[B / 8 / each];
#pragma unroll
    for (int i = 0; i < B / 8 / each; ++i) {
      slopes[i] = load_slopes(warp, i * each);
      if constexpr (each > 1) align_bits(slopes[i]);
    }
    wgmma_wait<0>();
    Operand dz;
    uint check[4] = {};
    prepare_half<0>(c, slopes, dz, check);
    if constexpr (kInParts) {
      wgmma_fence();
      multiply_gradient(sums, dz, rows, true, 0, kBackwardSteps / 2);
      wgmma_commit();
    }
    prepare_half<1>(c, slopes, dz, check);
    block.judge(step, lane, ((check[0] | check[1] | check[2] | check[3]) & 0x7fff7fffu) != 0);
    wgmma_fence();
    multiply_gradient(sums, dz, rows, true, kInParts ? kBackwardSteps / 2 : 0, kBackwardSteps);
    wgmma_commit();
  }
  // On an H100 steps in 16 bits and steps of several clusters are up to 2 % faster with it (bf16 at batch 64 0.6 % slower),
  // tf32 in one cluster is 1 % slower.
  static constexpr bool kInParts = kHalves || kClusters > 1;
  template <int Half, int Count>
  WS_DEVICE void prepare_half(float (&c)[B / 8][4], const Slopes (&slopes)[Count], Operand& dz, uint (&check)[4]) const {
    constexpr int tiles = B / 16, first = Half * tiles;
    Operand none;
#pragma unroll
    for (int j = first; j < first + tiles; ++j) {
      if constexpr (Count == B / 8) apply_slopes(j, slopes[j], c[j]);
      operand_of(j, c[j], dz, none);
    }
    if constexpr (Count == 2 && Count < B / 8) mask_rows(first, slopes[Half], dz);
    // Zero times a value that is not finite is NaN, and NaN stays in every further sum.
    if constexpr (kJudges)
#pragma unroll
      for (int s = Half * kBackwardSteps / 2; s < (Half + 1) * kBackwardSteps / 2; ++s)
#pragma unroll
        for (int k = 0; k < 4; ++k) add_zero_times(check[k], dz.v[s][k]);
    settle<Half * kBackwardSteps / 2, (Half + 1) * kBackwardSteps / 2>(dz);
  }
  // fp32: computes dz1 of this warp's sixteen units for all rows, as register operands.
  WS_DEVICE void hidden_gradient(const TurnedWeights& w2t, int warp, Operand& high, Operand& low) const {
    float c[B / 8][4];
#pragma unroll
    for (int first = 0; first < B / 8; first += 4) {
      Slopes slopes[4];
      multiply_by_output_weights(w2t, first, c);
#pragma unroll
      for (int j = 0; j < 4; ++j) slopes[j] = load_slopes(warp, first + j);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        apply_slopes(first + j, slopes[j], c[first + j]);
        operand_of(first + j, c[first + j], high, low);
      }
    }
  }
  // The same with fp32, in three products: `rest` is the part of the rows that tf32 operands lose.
  WS_DEVICE void begin_backward_fp32(const TurnedWeights& w2t, int warp, uint rows, uint rest,
                                     float (&sums)[4 * kTiles]) const {
    Operand high, low;
    hidden_gradient(w2t, warp, high, low);
    settle<0, kBackwardSteps>(high), settle<0, kBackwardSteps>(low);
    wgmma_fence();
    multiply_gradient(sums, low, rows, true);
    multiply_gradient(sums, high, rest, false);
    multiply_gradient(sums, high, rows, false);
    wgmma_commit();
  }
  // Four tiles from `first` on: first all loads, then all products.
  WS_DEVICE void multiply_by_output_weights(const TurnedWeights& w2t, int first, float (&c)[B / 8][4]) const {
    float4 d[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      d[j] = make_float4(0.f, 0.f, 0.f, 0.f);
      if (OW == 16 || 4 * t < OW)
        d[j] = load_f4(block.at(choice::at_gradients) + t * kGradientStride + (8 * (first + j) + g) * 16);
#pragma unroll
      for (int k = 0; k < 4; ++k) c[first + j][k] = 0.f;
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float w[4] = {__uint_as_float(w2t.v[k][0]), __uint_as_float(w2t.v[k][1]), __uint_as_float(w2t.v[k][2]),
                          __uint_as_float(w2t.v[k][3])};
#pragma unroll
      for (int j = 0; j < 4; ++j) multiply(c[first + j], w, k ? d[j].z : d[j].x, k ? d[j].w : d[j].y);
    }
  }
  WS_DEVICE void begin_on_tensor_cores(const TurnedWeights& w2t, float (&c)[B / 8][4]) const {
    float (&sums)[B / 2] = reinterpret_cast<float (&)[B / 2]>(c);
    const ulong gradients = matrix(block.at(choice::at_gradients), kGradientStride, 128);
    stores_for_tensor_cores();
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < (kHalves ? 1 : kOutputSteps); ++k)
      hidden_product(sums, w2t.v[k][0], w2t.v[k][1], w2t.v[k][2], w2t.v[k][3],
                     gradients + ((2 * k * kGradientStride) >> 4), k > 0);
    wgmma_commit();
  }
  WS_DEVICE static void operand_of(int j, const float (&c)[4], Operand& high, Operand& low) {
    if constexpr (kHalves) {
      high.v[j / 2][2 * (j & 1)] = half_pair(c[0], c[1]);
      high.v[j / 2][2 * (j & 1) + 1] = half_pair(c[2], c[3]);
    } else {
      const int order[4] = {0, 2, 1, 3};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        high.v[j][k] = choice::precision == kTf32 ? bits(to_tf32(c[order[k]])) : bits(c[order[k]]);
        if constexpr (kPasses == 3) low.v[j][k] = bits(below_tf32(c[order[k]]));
      }
    }
  }

  WS_DEVICE void multiply_gradient(float (&sums)[4 * kTiles], const Operand& dz, uint tile, bool is_first, int begin = 0,
                                   int end = kBackwardSteps) const {
#pragma unroll
    for (int s = begin; s < end; ++s) {
      const ulong x = kHalves ? matrix(tile + s * 256, 128, kChunkStride)
                              : matrix(tile + 2 * s * choice::turned_stride, choice::turned_stride, 128);
      backward_product(sums, dz.v[s][0], dz.v[s][1], dz.v[s][2], dz.v[s][3], x, !is_first || s > 0);
    }
  }
};

// ---- the helper: rows of the next step, and W2 ----
struct Rows {
  const Arguments& a;
  const Block& block;
  int warp, lane;
  uint row[B / 32];
  uint target_row = 0;

  WS_DEVICE int batch_row(int k) const {
    const int place = warp * (B / 4) + (lane & 7) + 8 * k;
    return block.first_row() + ((8 * (place / (8 * R)) + (place & 7)) ^ static_cast<int>(block.rank)) +
           kBlocks * ((place >> 3) % R);
  }
  WS_DEVICE void find(int step) {
#pragma unroll
    for (int k = 0; k < B / 32; ++k) {
      const int b = batch_row(k);
      find_row(a, a.first_row + step * a.rows_onward + (b < a.batch ? b : 0), row[k]);
    }
    const int i = 32 * warp + lane, b = block.own_row(i / kTargets);
    if (i < R * kTargets) find_row(a, a.first_row + step * a.rows_onward + (b < a.batch ? b : 0), target_row);
  }
  WS_DEVICE uint tile(int step) const {
    return block.at(choice::at_rows) + (step % 3) * choice::rows_bytes;
  }
  WS_DEVICE uint rest(int step) const { return block.at(choice::at_rest) + (step & 1) * choice::rows_bytes; }
  WS_DEVICE uint turned(int step) const { return block.at(choice::at_turned) + (step & 1) * choice::turned_bytes; }
  WS_DEVICE uint turned_rest(int step) const {
    return block.at(choice::at_turned_rest) + (step & 1) * choice::turned_bytes;
  }
  WS_DEVICE void load(int step) {
    const int i = 32 * warp + lane;
    if (i < R * kTargets)
      copy4(block.target(step, i / kTargets, i % kTargets),
            static_cast<const uint*>(a.targets) + static_cast<size_t>(target_row) * kTargets + i % kTargets);
    const char* from = static_cast<const char*>(a.rows) + block.rank * choice::row_bytes;
    const uint to = tile(step) + (warp * (B / 4) + (lane & 7)) * 16;
#pragma unroll
    for (int k = 0; k < B / 32; ++k) {
      const char* mine = from + static_cast<size_t>(row[k]) * (kBlocks * choice::row_bytes);
#pragma unroll
      for (int i = 0; i < (kChunks + 3) / 4; ++i) {
        const int c = (lane >> 3) + 4 * i;
        if (c < kChunks) copy16(to + k * 128 + c * kChunkStride, mine + 16 * c);
      }
    }
  }
  // fp32: writes the part of the rows that tf32 operands lose.
  WS_DEVICE void make_rest(int step) const {
    const uint from = tile(step), to = rest(step);
    for (int i = static_cast<int>(threadIdx.x) - kMathThreads; i < choice::rows_bytes / 16; i += 128) {
      const float4 x = load_f4(from + 16 * i);
      store_f4(to + 16 * i, below_tf32(x.x), below_tf32(x.y), below_tf32(x.z), below_tf32(x.w));
    }
  }
  // Transposes rows by inputs to inputs by rows. Four rows of one owner make a chunk.
  WS_DEVICE void turn(uint from, uint to) const {
#pragma unroll
    for (int part = 0; part < B / 64; ++part) {
      const int q = (lane & 15) + 16 * part, owner = q & 15, row0 = 4 * (q >> 4);
      const int place = 8 * R * (owner >> 3) + 8 * row0 + (owner & 7);
#pragma unroll
      for (int i = 0; i < (kChunks / 2 + 3) / 4; ++i) {
        const int pair = warp + 4 * i, c = 2 * pair + (lane >> 4);
        if (pair >= kChunks / 2) break;
        const uint x = from + c * kChunkStride + place * 16;
        const float4 r0 = load_f4(x), r1 = load_f4(x + 128), r2 = load_f4(x + 256), r3 = load_f4(x + 384);
        const uint y = to + q * choice::turned_stride + (8 * pair + (lane >> 4)) * 16;
        store_f4(y, r0.x, r1.x, r2.x, r3.x), store_f4(y + 32, r0.y, r1.y, r2.y, r3.y);
        store_f4(y + 64, r0.z, r1.z, r2.z, r3.z), store_f4(y + 96, r0.w, r1.w, r2.w, r3.w);
      }
    }
  }
  // Call when the rows of `step` have arrived: the forward product may read them.
  WS_DEVICE void hand_over(int step) const {
    warps_meet(2, 128);
    if constexpr (kPasses == 3) {
      make_rest(step);
    }
    stores_for_tensor_cores();
    barrier_arrive(block.barrier(kRows0 + (step & 1)));
  }
  // Converts rows that were handed over to the form that the backward product reads.
  WS_DEVICE void hand_over_turned(int step) const {
    if constexpr (kHalves) return;
    turn(tile(step), turned(step));
    if constexpr (kPasses == 3) {
      warps_meet(2, 128);
      turn(rest(step), turned_rest(step));
    }
    stores_for_tensor_cores();
    barrier_arrive(block.barrier(kTurned0 + (step & 1)));
  }
};

struct SmallLayer {
  const Arguments& a;
  const Block& block;
  int thread, warp, lane, g, t, out, unit;  // out, unit: the weight that this thread updates
  bool has_weight, has_bias;
  struct Values {
    float w = 0.f, m = 0.f, v = 0.f, b = 0.f, bm = 0.f, bv = 0.f;
  } now;

  WS_DEVICE SmallLayer(const Arguments& args, const Block& bl, int th)
      : a(args), block(bl), thread(th), warp(th >> 5), lane(th & 31), g(lane >> 2), t(lane & 3) {
    out = thread / kOwn, unit = static_cast<int>(block.rank) * kOwn + thread % kOwn;
    has_weight = out < O && unit < choice::hidden;
    has_bias = choice::bias && thread == 0 && block.rank < O;
    each([](float& value, const float* from) { value = *from; });
  }
  template <class F>
  WS_DEVICE void each(F f) {
    const LayerState& l = a.layers[1];
    if (has_weight) {
      f(now.w, l.w + unit * O + out);
      if constexpr (kMoves) f(now.m, l.w_m + unit * O + out);
      if constexpr (kSquares) f(now.v, l.w_v + unit * O + out);
    }
    if (has_bias) {
      f(now.b, l.b + block.rank);
      if constexpr (kMoves) f(now.bm, l.b_m + block.rank);
      if constexpr (kSquares) f(now.bv, l.b_v + block.rank);
    }
  }
  WS_DEVICE void store() {
    each([](float& value, float* to) { *to = value; });
  }
  WS_DEVICE float gradient(int output, int column) const {
    const uint from = block.at(choice::at_gradients) + column * 16;
    if constexpr (kHalves) return from_half(load_half(from + (output >> 3) * kGradientStride + (output & 7) * 2));
    return output < OW ? load_f(from + (output >> 2) * kGradientStride + (output & 3) * 4) : 0.f;
  }
  // Computes the gradients of all outputs for this block's hidden units. Each warp sums a quarter of the batch.
  // Returns true if a gradient of the outputs is not finite.
  WS_DEVICE bool sum_quarter() const {
    float c[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    const float one = 1.f;
#pragma unroll
    for (int k = 0; k < B / 32; ++k) {
      const int column = warp * (B / 4) + 8 * k + t;
      const uint h = block.at(choice::at_hidden) + column * kOwn * 4 + ((g & 3) * kSend + (kSend == 2 ? g >> 2 : 0)) * 4;
      const float dz[4] = {gradient(g, column), gradient(g + 8, column), gradient(g, column + 4), gradient(g + 8, column + 4)};
      multiply(c, dz, load_f(h), load_f(h + 16 * kOwn));
      multiply(e, dz, one, one);
    }
    const uint to = block.at(choice::at_small) + (warp * 16 + g) * 48;
    store_f(to + 8 * t, c[0]), store_f(to + 8 * t + 4, c[1]);
    store_f(to + 384 + 8 * t, c[2]), store_f(to + 384 + 8 * t + 4, c[3]);
    if (t == 0) store_f(to + 32, e[0]), store_f(to + 416, e[2]);
    return !(fabsf(e[0]) + fabsf(e[2]) < 1e30f);  // sums of finite values of fp16 are much smaller
  }
  WS_DEVICE float sum_of(int o, int column) const {
    const uint from = block.at(choice::at_small) + o * 48 + column * 4;
    return load_f(from) + load_f(from + 768) + load_f(from + 1536) + load_f(from + 2304);
  }
  // Returns false if the wait for other clusters timed out.
  WS_DEVICE bool move(int step, const StepFactors& f) {
    float weight = has_weight ? sum_of(out, thread % kOwn) : 0.f;
    float bias = has_bias ? sum_of(static_cast<int>(block.rank), 8) : 0.f;
    bool well = true;
    if constexpr (kClusters > 1) well = add_clusters(a, block, step, has_weight, weight, has_bias, bias);
    if (has_weight) persistent::move(a, f, true, now.w, now.m, now.v, weight);
    if (has_bias) persistent::move(a, f, false, now.b, now.bm, now.bv, bias);
    __syncwarp();
    return well;
  }
  // Four adjacent lanes collect four hidden units of one output, and each lane sends them to four blocks.
  WS_DEVICE void send(uint copy) const {
    const float value = has_weight ? rounded(now.w) : 0.f;
    const uint weights = block.output_weights(copy);
    const int first = lane & ~3;
    const float v0 = __shfl_sync(~0u, value, first), v1 = __shfl_sync(~0u, value, first + 1),
                v2 = __shfl_sync(~0u, value, first + 2), v3 = __shfl_sync(~0u, value, first + 3);
    if (out < O) {
      const uint where = weights + (out * kW2Stride + block.rank * kOwn + (thread % kOwn & ~3)) * 4;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint to = static_cast<uint>((thread & 3) * 4 + i) ^ block.rank,
                   base = in_block(block.shared, to) - block.shared;
        send4(base + where, base + block.barrier(kWeights), bits(v0), bits(v1), bits(v2), bits(v3));
      }
    }
    if (choice::bias && block.rank < O && thread < kBlocks) {
      const float bias = __shfl_sync(0xffffu, now.b, 0);
      const uint to = static_cast<uint>(thread) ^ block.rank, base = in_block(block.shared, to) - block.shared;
      persistent::send(base + weights + kW2Bytes + block.rank * 4, base + block.barrier(kWeights), bias);
    }
  }
};

// ---- the kernel ----
WS_DEVICE void prepare_block(const Arguments& a, const Block& block, float* memory) {
  for (int i = static_cast<int>(threadIdx.x); i < choice::shared_bytes / 4; i += kThreads) memory[i] = 0.f;
  __syncthreads();
  float* w2 = memory + choice::at_w2 / 4;
  for (int i = static_cast<int>(threadIdx.x); i < O * choice::hidden; i += kThreads)
    w2[i % O * kW2Stride + i / O] = rounded(a.layers[1].w[i]);
  if (threadIdx.x < 16) {
    const int o = static_cast<int>(threadIdx.x);
    // An output that does not exist has the logit minus infinity.
    const float b = o >= O ? (kClasses ? __int_as_float(0xff800000) : 0.f) : choice::bias ? a.layers[1].b[o] : 0.f;
    for (int copy = 0; copy < (kJudges ? 2 : 1); ++copy) w2[(copy * kOutputBytes + kW2Bytes) / 4 + o] = b;
  }
  if (threadIdx.x == 0) {
    for (int i = kPartials; i <= kWeights; ++i) barrier_init(block.barrier(i), 1);
    for (int i = 0; i < 2; ++i) {
      barrier_init(block.barrier(kJudged0 + i), kMathWarps + 4);
      barrier_init(block.barrier(kRows0 + i), 128);
      barrier_init(block.barrier(kTurned0 + i), 128);
      barrier_init(block.barrier(kFree0 + i), kMathWarps);
    }
    barriers_are_ready();
    barrier_expect(block.barrier(kPartials), kPartialBytes);
    barrier_expect(block.barrier(kGradients), kGradientBytes);
    barrier_expect(block.barrier(kHidden), kHiddenBytes);
    barrier_expect(block.barrier(kWeights), kWeightBytes);
  }
  __syncthreads();
  cluster_meets();
}

WS_DEVICE void run_math(const Arguments& a, const Block& block, LossScaling& scaling) {
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) >> 5, 0),
            lane = kept(static_cast<int>(threadIdx.x) & 31);
  const bool leads = kept(threadIdx.x == 0);
  BigLayer layer(a, block, warp, lane);
  layer.load();
  Middle middle(a, block, warp, lane);
  const Rows rows{a, block, 0, 0};
  const float per_row = 1.f / static_cast<float>(a.batch);
  Rates rates(a);
  StampLane stamps(a, 2 * block.number(), leads);
  bool alive = true;
  uint copy = 0;  // of W2
#pragma unroll 1
  for (int s = 0; s < a.steps; ++s) {
    const float rate = rates.take();
    stamps.begin(s, kPartWait, kWaitRows);
    alive &= wait(block.watch, block.barrier(kRows0 + (s & 1)), (s >> 1) & 1, kWaitRows, s);
    stamps.begin(s, kPartForward, 0);
    layer.forward(s, rows.tile(s), rows.rest(s), warp);
    stamps.begin(s, kPartWait, kWaitWeights);
    if (s > 0) alive &= wait(block.watch, block.barrier(kWeights), (s - 1) & 1, kWaitWeights, s);
    middle.load_weights(copy), middle.load_turned_weights(copy);
    stamps.begin(s, kPartWait, kWaitPartials);
    alive &= wait(block.watch, block.barrier(kPartials), s & 1, kWaitPartials, s);
    stamps.begin(s, kPartLosses, 1);
    float z[kValues], h[kValues];
    middle.add_partials(z);
    middle.activate(z, h);
    if (middle.run(s, h, scaling.scale * per_row, alive)) break;
    if (warp == kMathWarps - 1) note_loss(a, block, s, lane);
    if (leads && alive) barrier_expect(block.barrier(kPartials), kPartialBytes);
    stamps.begin(s, kPartWait, kWaitGradients);
    alive &= wait(block.watch, block.barrier(kGradients), s & 1, kWaitGradients, s);
    stamps.begin(s, kPartBackward, 0);
    if (leads && alive) {
      barrier_expect(block.barrier(kGradients), kGradientBytes);
      if (s > 0) barrier_expect(block.barrier(kWeights), kWeightBytes);
    }
    float sums[4 * kTiles];
    const uint x = kHalves ? rows.tile(s) : rows.turned(s);
    if constexpr (!kHalves)
      alive &= wait(block.watch, block.barrier(kTurned0 + (s & 1)), (s >> 1) & 1, kWaitRows, s);
    if constexpr (kPasses == 3)
      layer.begin_backward_fp32(middle.w2t, warp, x, rows.turned_rest(s), sums);
    else
      layer.begin_backward(s, middle.w2t, warp, x, sums);
    const bool skip = block.is_bad(s, alive);
    wgmma_wait<0>();
    if constexpr (kClusters > 1) {
      stamps.begin(s, kPartWait, kWaitSums);
      alive &= GradientExchange(a, block, s).run(sums);
    }
    stamps.begin(s, kPartUpdate, 0);
    const StepFactors factors = step_factors(a, rate, scaling.inverse_of_scale(), a.first_step + s);
    if (!skip) layer.move_weights(sums, factors);
    __syncwarp();
    if (lane == 0) barrier_arrive(block.barrier(kFree0 + (s & 1)));
    if constexpr (kJudges) scaling.decide(skip), copy ^= skip ? 0u : 1u;
  }
  stamps.end(a.steps);
  if (block.cluster == 0 && !*block.watch.dead) layer.store();
}

WS_DEVICE void run_helper(const Arguments& a, const Block& block, LossScaling& scaling) {
  const int thread = kept(static_cast<int>(threadIdx.x) - kMathThreads), warp = thread >> 5, lane = thread & 31;
  Rows rows{a, block, warp, lane};
  SmallLayer layer(a, block, thread);
  Rates rates(a);
  StampLane stamps(a, 2 * block.number() + 1, kept(thread == 0));
  bool alive = true;
  uint copy = 0;  // of W2
  const auto load = [&](int step) {
    if (step < a.steps) rows.load(step);
    copies_commit();
    if (step + 1 < a.steps) rows.find(step + 1);
  };
  const auto load_late = [&](int s) {
    stamps.begin(s, kPartRows);
    load(s + 2);
  };
  rows.find(0), load(0), load(1);
  copies_wait<1>();
  rows.hand_over(0), rows.hand_over_turned(0);
#pragma unroll 1
  for (int s = 0; s < a.steps; ++s) {
    const float rate = rates.take();
    stamps.begin(s, kPartWait, kWaitBuffers);
    if (s > 0)
      alive &= wait(block.watch, block.barrier(kFree0 + ((s - 1) & 1)), ((s - 1) >> 1) & 1, kWaitBuffers, s);
    stamps.begin(s, kPartRows);
    if constexpr (!kLateRows) load(s + 2);
    copies_wait<kLateRows ? 0 : 1>();
    if (s + 1 < a.steps) rows.hand_over(s + 1), rows.hand_over_turned(s + 1);
    stamps.begin(s, kPartWait, kWaitGradients);
    alive &= wait(block.watch, block.barrier(kGradients), s & 1, kWaitGradients, s);
    stamps.begin(s, kPartWait, kWaitHidden);
    alive &= wait(block.watch, block.barrier(kHidden), s & 1, kWaitHidden, s);
    stamps.begin(s, kPartBackward, 1);
    block.judge(s, lane, layer.sum_quarter());
    if constexpr (kLateRows && kClusters > 1) load_late(s);
    const bool lost = warps_meet_any(2, 128, !alive);
    if (thread == 0 && alive) barrier_expect(block.barrier(kHidden), kHiddenBytes);
    stamps.begin(s, kPartUpdate, 1);
    const SmallLayer::Values before = layer.now;
    alive &= layer.move(s, step_factors(a, rate, scaling.inverse_of_scale(), a.first_step + s));
    if constexpr (kLateRows && kClusters == 1) {
      load_late(s);
      stamps.begin(s, kPartUpdate, 1);
    }
    layer.send(copy ^ 1u);
    if constexpr (kJudges) {
      // All blocks have the new weights before it is known that they may use them.
      stamps.begin(s, kPartWait, kWaitGradients);
      const bool skip = block.is_bad(s, alive);
      if (skip) layer.now = before;
      scaling.decide(skip);
      copy ^= skip ? 0u : 1u;
    }
    if (lost) break;
  }
  stamps.end(a.steps);
  if (block.cluster == 0 && !*block.watch.dead) layer.store();
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) ws_train(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Block block{static_cast<uint>(kept(static_cast<int>(shared_address(memory)))),
                    static_cast<uint>(kept(static_cast<int>(cluster_rank()))),
                    kClusters == 1 ? 0 : kept(static_cast<int>(blockIdx.x) / kBlocks),
                    {reinterpret_cast<volatile int*>(memory + choice::at_dead), a.limit, a.fault}};
  prepare_block(a, block, reinterpret_cast<float*>(memory));
  LossScaling scaling;
  scaling.load(a);
  // The compiler keeps products in flight only if it sees that whole warps take the branch.
  if (__shfl_sync(~0u, static_cast<int>(threadIdx.x) >> 5, 0) < kMathWarps)
    run_math(a, block, scaling);
  else
    run_helper(a, block, scaling);
  __syncwarp();
  // No block may leave while messages are in flight.
  if (a.steps > 0) wait(block.watch, block.barrier(kWeights), (a.steps - 1) & 1, kWaitWeights, a.steps);
  __syncwarp();
  cluster_meets();
  if (block.rank != 0) return;
  if constexpr (kClusters > 1) {
    // The first block adds the losses of all clusters.
    uint* flags = static_cast<uint*>(a.exchange);
    const uint number = a.exchange_base + static_cast<uint>(a.steps) + 1;
    if (block.cluster != 0) {
      if (threadIdx.x == 0) raise(flags + block.cluster, number);
      return;
    }
    if (threadIdx.x > 0 && threadIdx.x < kClusters)
      wait_for_flag(block.watch, flags + threadIdx.x, number, kWaitSums, a.steps);
    __syncthreads();
  }
  write_metrics(a, kThreads, kAllBlocks, kAllBlocks);
  if (choice::precision == kFp16 && threadIdx.x == 0 && !*block.watch.dead)
    scaling.store(a);
}

}  // namespace ws::cuda::persistent
