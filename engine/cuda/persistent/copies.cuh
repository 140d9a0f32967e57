// A kernel for a network with several hidden layers of up to 128 units, in fp16 or bf16, in one cluster of 16 blocks.
//
// The first layer is split by inputs. Every block keeps a copy of all other layers and computes them for the whole
// batch, which takes less time than the messages of a split. A step:
//   1. Forward: the block multiplies its slice of the batch by its slice of W1 and sends partial sums of z1. Each block
//      owns eight units: it adds their partial sums, activates, and sends h1 to all blocks.
//   2. Every block computes the other layers, the loss and all gradients of units, for all rows.
//   3. It updates its slice of W1 and sends the partial sums of the next step. While messages are on their way, it
//      updates its copies of the other layers. All blocks add in the same order, so the copies keep the same bits.
//
// Shared memory holds units and their gradients in chunks: 8 units of all rows. Weights lie in chunks of 8 inputs of
// all units, rounded for the products; the exact weights stay in registers, in the layout of the sums of wgmma.
#pragma once

namespace ws::cuda::persistent {

constexpr int kThreads = 256, B = choice::batch, H = 128, O = choice::outputs;
constexpr int kHiddenLayers = choice::layers - 1, kRowTiles = B / 8, kBatchSteps = B / 16;
constexpr int kChunk = B * 16, kWeightChunk = H * 16, kOutputChunk = 256;  // bytes
constexpr int kUnitBytes = H / 8 * kChunk, kWeightBytes = H / 8 * kWeightChunk;
constexpr bool kBits = choice::activation == kRelu, kSlopes = !kBits && choice::activation != kNone;
constexpr int kPartialBytes = kBlocks * kChunk, kHiddenBytes = kBlocks * kChunk * (kSlopes ? 2 : 1);
constexpr int kPartsOfSum = 64 / B;  // threads that share the partial sums of two rows
constexpr int kTargets = kClasses ? 1 : O;
constexpr int kRowChunks = choice::row_bytes / 16;
constexpr int kCopies = (B * kRowChunks + kThreads - 1) / kThreads, kTargetCopies = (B * kTargets + kThreads - 1) / kThreads;

// Hidden layers count from 1. Tiles of 8 inputs of layers 2 and higher.
WS_BOTH constexpr int tiles(int l) { return (width(l - 1) + 15) / 16 * 2; }
WS_BOTH constexpr int parts(int l) { return tiles(l) > 8 ? 2 : 1; }  // products of a gradient: sums need registers
WS_BOTH constexpr int tile_at(int l) { return l == 2 ? 0 : tile_at(l - 1) + tiles(l - 1); }
constexpr int kCopyTiles = tile_at(kHiddenLayers + 1);

enum Barriers { kPartials, kHidden };

struct Block {
  uint shared, rank;
  Watch watch;
  WS_DEVICE uint at(int offset) const { return shared + static_cast<uint>(offset); }
  WS_DEVICE uint barrier(int i) const { return at(choice::at_barriers + 8 * i); }
  // Units of layer l. The first layer has two buffers, because messages of the next step can arrive early.
  WS_DEVICE uint units(int l, int step) const {
    return l == 1 ? at(choice::at_first + (step & 1) * kUnitBytes) : at(choice::at_units + (l - 2) * kUnitBytes);
  }
  WS_DEVICE uint gradients(int l) const { return at(choice::at_gradients + (l - 1) * kUnitBytes); }
  WS_DEVICE uint weights(int l) const { return at(choice::at_weights + (l - 2) * kWeightBytes); }
  WS_DEVICE uint rows(int step) const { return at(choice::at_rows + step % 3 * B * choice::row_bytes); }
  WS_DEVICE uint target(int step, int row, int i) const {
    return at(choice::at_targets + (((step & 3) * B + row) * kTargets + i) * 4);
  }
};

// ---- fragments of 8 by 8 values of 16 bits ----
WS_DEVICE void load_matrices(uint (&r)[4], uint address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
WS_DEVICE void load_turned(uint (&r)[4], uint address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
WS_DEVICE void store_turned(uint address, uint r0, uint r1, uint r2, uint r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r0), "r"(r1),
               "r"(r2), "r"(r3)
               : "memory");
}
WS_DEVICE void store_half(uint address, uint value) {
  asm volatile("{\n.reg .b16 l,h;\nmov.b32 {l,h},%1;\nst.shared.b16 [%0], l;\n}" ::"r"(address), "r"(value) : "memory");
}
WS_DEVICE void store_pair(uint address, uint value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
WS_DEVICE float low_of(uint pair) { return choice::precision == kBf16 ? __uint_as_float(pair << 16) : fp16_low(pair); }
WS_DEVICE float high_of(uint pair) {
  return choice::precision == kBf16 ? __uint_as_float(pair & 0xffff0000u) : fp16_high(pair);
}
constexpr uint kOnes = choice::precision == kBf16 ? 0x3f803f80u : 0x3c003c00u;

// Sixteen units of all rows. Pair [j][e] has rows 8j + 2t and 8j + 2t + 1 of unit g + 8e of this warp.
using UnitPairs = uint[kRowTiles][2];

struct Moved {
  float m = 0.f, v = 0.f;
};

struct Training {
  const Arguments& a;
  const Block& block;
  int thread, warp, lane, g, t;
  uint mine;  // offset of this lane's row in the matrices of its warp's two chunks
  InputWeights input;
  float w[kCopyTiles][4], m[kMoves ? kCopyTiles : 1][4], v[kSquares ? kCopyTiles : 1][4];
  // Biases of units g and g + 8 of this warp. All lanes of a unit keep the same.
  float bias[kHiddenLayers - 1][2], bias_m[kHiddenLayers - 1][2], bias_v[kHiddenLayers - 1][2];
  float bias_gradient[kHiddenLayers - 1][2];
  // Weights of outputs g and g + 8, units 16 · warp + 8j + 2t and the next; all lanes of an output keep its bias.
  float top[2][4], top_m[2][4], top_v[2][4], top_bias[2], top_bias_m[2], top_bias_v[2];
  uint on[kHiddenLayers - 1];  // relu: one bit per value
  uint slope[kSlopes ? kHiddenLayers - 1 : 1][kRowTiles][2];
  uint row[kCopies], target_row[kTargetCopies];
  uint check = 0;  // not zero after a gradient that is not finite
  bool alive = true;
  int now = 0;  // step of the loop, for stamps
  StampLane stamps;

  WS_DEVICE Training(const Arguments& args, const Block& b, int th, int w_, int l)
      : a(args), block(b), thread(th), warp(w_), lane(l), g(l >> 2), t(l & 3), input(args, b.rank, w_, l),
        stamps(args, static_cast<int>(b.rank), kept(th == 0) != 0) {
    mine = static_cast<uint>((2 * warp + (lane >> 3 & 1)) * kChunk + (8 * (lane >> 4) + (lane & 7)) * 16);
  }
  WS_DEVICE int group() const { return warp >> 2; }
  WS_DEVICE int unit(int e) const { return 16 * warp + g + 8 * e; }

  // ---- rows ----
  WS_DEVICE static int place_of(int i) { return (i & 7) + i / (8 * kRowChunks) * 8; }
  WS_DEVICE void find(int step) {
    const long long first = a.first_row + step * a.rows_onward;
#pragma unroll
    for (int k = 0; k < kCopies; ++k) {
      const int place = place_of(thread + k * kThreads);
      find_row(a, first + (place < a.batch ? place : 0), row[k]);
    }
#pragma unroll
    for (int k = 0; k < kTargetCopies; ++k) {
      const int place = (thread + k * kThreads) / kTargets;
      find_row(a, first + (place < a.batch ? place : 0), target_row[k]);
    }
  }
  // Starts the copies of rows that were found, and looks for the next.
  WS_DEVICE void load(int step) {
    if (step < a.steps) {
      const char* from = static_cast<const char*>(a.rows) + block.rank * choice::row_bytes;
#pragma unroll
      for (int k = 0; k < kCopies; ++k) {
        const int i = thread + k * kThreads, chunk = (i >> 3) % kRowChunks;
        if (i < B * kRowChunks)
          copy16(block.rows(step) + static_cast<uint>(chunk * kChunk + place_of(i) * 16),
                 from + static_cast<size_t>(row[k]) * (kBlocks * choice::row_bytes) + 16 * chunk);
      }
#pragma unroll
      for (int k = 0; k < kTargetCopies; ++k) {
        const int i = thread + k * kThreads;
        if (i < B * kTargets)
          copy4(block.target(step, 0, i), static_cast<const uint*>(a.targets) +
                                              static_cast<size_t>(target_row[k]) * kTargets + i % kTargets);
      }
      if (step + 1 < a.steps) find(step + 1);
    }
    copies_commit();
  }

  // ---- the first layer ----
  // Sends partial z1 of the whole batch to the owners of the units: each lane eight rows of a unit in a message.
  WS_DEVICE void forward_input(int step) {
    Operands<kForwardSteps> weights;
    input.template operand<0>(weights);
    settle<0, kForwardSteps>(weights);
    float z[B / 2];
    const uint rows = block.rows(step);
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kForwardSteps; ++s)
      forward_product(z, weights.v[s][0], weights.v[s][1], weights.v[s][2], weights.v[s][3],
                      matrix(rows + 2 * s * kChunk, kChunk, 128), s > 0);
    wgmma_commit();
    wgmma_wait<0>();
    if (a.lose_message_at == step && block.rank == 1) return;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const uint base = in_block(block.shared, static_cast<uint>(2 * warp + e)) - block.shared;
      const uint to = base + block.at(choice::at_partials) + block.rank * choice::partials_each;
#pragma unroll
      for (int q = 0; q < kRowTiles / 4; ++q) {
        const auto pair = [&](int j) { return fp16_pair_limited(z[16 * q + 4 * j + 2 * e], z[16 * q + 4 * j + 2 * e + 1]); };
        send4(to + static_cast<uint>(lane * (kRowTiles / 4) + q) * 16, base + block.barrier(kPartials), pair(0), pair(1),
              pair(2), pair(3));
      }
    }
  }
  // Adds the partial sums of this block's eight units: each warp one unit, each lane two rows. Sends h1 to all blocks.
  WS_DEVICE void add_partials(int step) {
    stamps.begin(now, kPartWait, kWaitPartials);
    alive &= wait(block.watch, block.barrier(kPartials), step & 1, kWaitPartials, step);
    stamps.begin(now, kPartForward, 0);
    if (thread == 0 && alive) barrier_expect(block.barrier(kPartials), kPartialBytes);
    const int word = kPartsOfSum == 2 ? 16 * warp + (lane & 15) : thread, part = kPartsOfSum == 2 ? lane >> 4 : 0;
    const uint from = block.at(choice::at_partials + part * choice::partials_each + word * 4);
    float z[2] = {};
#pragma unroll
    for (int k = 0; k < kBlocks / kPartsOfSum; ++k) {
      const uint pair = load_u(from + k * kPartsOfSum * choice::partials_each);
      z[0] += fp16_low(pair), z[1] += fp16_high(pair);
    }
    if constexpr (kPartsOfSum == 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) z[i] += __shfl_xor_sync(~0u, z[i], 16);
    }
    const bool is = static_cast<int>(block.rank) * 8 + warp < width(1);
    const int first = 8 * (word % kRowTiles) + 2 * (word / kRowTiles & 3);
    const uint stage = block.at(choice::at_stage + first * 16 + warp * 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (kPartsOfSum == 2 && i != part) continue;
      const float h = activated(z[i]);
      store_half(stage + 16 * i, half_pair(is ? h : 0.f, 0.f));
      if constexpr (kSlopes) store_half(stage + kChunk + 16 * i, fp16_pair(is ? slope_at(z[i], h) : 0.f, 0.f));
    }
    __syncthreads();
    if (!alive) return;
    const int r = thread % B;
    const uint4 units = load_u4(block.at(choice::at_stage + r * 16));
    [[maybe_unused]] uint4 slopes{};
    if constexpr (kSlopes) slopes = load_u4(block.at(choice::at_stage + kChunk + r * 16));
    const uint offset = block.rank * kChunk + static_cast<uint>(r) * 16;
#pragma unroll
    for (int k = 0; k < kBlocks * B / kThreads; ++k) {
      const uint to = static_cast<uint>(thread / B + k * (kThreads / B)) ^ block.rank;
      const uint base = in_block(block.shared, to) - block.shared, barrier = base + block.barrier(kHidden);
      send4(base + block.units(1, step) + offset, barrier, units.x, units.y, units.z, units.w);
      if constexpr (kSlopes)
        send4(base + block.at(choice::at_slopes) + offset, barrier, slopes.x, slopes.y, slopes.z, slopes.w);
    }
  }

  // ---- units in shared memory ----
  WS_DEVICE void write_units(uint to, const UnitPairs& pairs) const {
#pragma unroll
    for (int j = 0; j < kRowTiles; j += 2)
      store_turned(to + mine + j * 128, pairs[j][0], pairs[j][1], pairs[j + 1][0], pairs[j + 1][1]);
  }
  WS_DEVICE void read_units(uint from, UnitPairs& pairs) const {
#pragma unroll
    for (int j = 0; j < kRowTiles; j += 2) {
      uint r[4];
      load_turned(r, from + mine + j * 128);
      pairs[j][0] = r[0], pairs[j][1] = r[1], pairs[j + 1][0] = r[2], pairs[j + 1][1] = r[3];
    }
  }
  // Lets wgmma of all warps read what this warp wrote.
  WS_DEVICE static void publish() {
    stores_for_tensor_cores();
    __syncthreads();
  }

  // ---- forward ----
  template <int L>
  WS_DEVICE void forward(int step) {
    if constexpr (L <= kHiddenLayers) {
      stamps.begin(now, kPartForward, L - 1);
      float z[B / 2];
#pragma unroll
      for (int i = 0; i < B / 2; ++i) z[i] = choice::bias ? bias[L - 2][i >> 1 & 1] : 0.f;
      const uint from = block.weights(L) + static_cast<uint>(group() * 64 * 16), h = block.units(L - 1, step);
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < tiles(L) / 2; ++s)
        layer_product(z, matrix(from + 2 * s * kWeightChunk, kWeightChunk, 128), matrix(h + 2 * s * kChunk, kChunk, 128), 1);
      wgmma_commit();
      wgmma_wait<0>();
      UnitPairs pairs;
      on[L - 2] = 0;
#pragma unroll
      for (int j = 0; j < kRowTiles; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const bool is = unit(e) < width(L);
          const float z0 = z[4 * j + 2 * e], z1 = z[4 * j + 2 * e + 1];
          const float h0 = is ? activated(z0) : 0.f, h1 = is ? activated(z1) : 0.f;
          pairs[j][e] = half_pair(h0, h1);
          if constexpr (kBits) on[L - 2] |= (h0 > 0.f ? 1u : 0u) << (4 * j + 2 * e) | (h1 > 0.f ? 2u : 0u) << (4 * j + 2 * e);
          if constexpr (kSlopes)
            slope[L - 2][j][e] = is ? fp16_pair(slope_at(z0, h0), slope_at(z1, h1)) : 0u;  // also for bf16
        }
      write_units(block.units(L, step), pairs);
      publish();
      forward<L + 1>(step);
    }
  }

  // Computes outputs, loss and the gradients of the outputs: each warp eight rows.
  WS_DEVICE void losses(int step, float scale) const {
    if (warp >= kRowTiles) return;
    const uint weights = block.at(choice::at_output + (lane >> 4) * kOutputChunk + ((lane >> 3 & 1) * 8 + (lane & 7)) * 16);
    const uint units = block.units(kHiddenLayers, step) + static_cast<uint>((lane >> 3) * kChunk + (8 * warp + (lane & 7)) * 16);
    float c[2][4] = {};
#pragma unroll
    for (int s = 0; s < H / 16; s += 2) {
      uint h[4], first[4], second[4];
      load_matrices(h, units + 2 * s * kChunk);
      load_matrices(first, weights + 2 * s * kOutputChunk);
      load_matrices(second, weights + 2 * (s + 1) * kOutputChunk);
      mma_halves(c[0], first, h[0], h[1]);
      mma_halves(c[1], second, h[2], h[3]);
    }
    // z[r][e]: row 8 · warp + 2t + r, output g + 8e.
    float z[2][2], d[2][2], loss = 0.f, correct = 0.f;
    constexpr float nothing = -3e38f;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        z[r][e] = g + 8 * e < O ? c[0][2 * e + r] + c[1][2 * e + r] + (choice::bias ? top_bias[e] : 0.f) : nothing;
      const int place = 8 * warp + 2 * t + r;
      const bool valid = place < a.batch;
      float row_loss = 0.f, is_correct = 0.f;
      if constexpr (kClasses) {
        const int label = static_cast<int>(load_u(block.target(step, place, 0)));
        float best = fmaxf(z[r][0], z[r][1]), sum = 0.f, at_label = 0.f;
#pragma unroll
        for (int k = 4; k < 32; k *= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, k));
        int at = O;
#pragma unroll
        for (int e = 1; e >= 0; --e) {
          const bool is = g + 8 * e < O;
          d[r][e] = is ? exp_of(z[r][e] - best) : 0.f;
          sum += d[r][e];
          if (g + 8 * e == label) at_label = z[r][e];
          if (is && z[r][e] == best) at = g + 8 * e;
        }
#pragma unroll
        for (int k = 4; k < 32; k *= 2) {
          sum += __shfl_xor_sync(~0u, sum, k);
          at_label += __shfl_xor_sync(~0u, at_label, k);
          at = min(at, __shfl_xor_sync(~0u, at, k));
        }
        const float factor = __fdividef(scale, sum);
#pragma unroll
        for (int e = 0; e < 2; ++e)
          d[r][e] = valid && g + 8 * e < O ? d[r][e] * factor - (g + 8 * e == label ? scale : 0.f) : 0.f;
        row_loss = log_of(sum) + best - at_label, is_correct = at == label;
      } else {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const bool is = g + 8 * e < O;
          const float off = is ? z[r][e] - load_f(block.target(step, place, g + 8 * e)) : 0.f;
          d[r][e] = valid ? off * 2.f * scale / static_cast<float>(O) : 0.f;
          row_loss += off * off / static_cast<float>(O);
        }
#pragma unroll
        for (int k = 4; k < 32; k *= 2) row_loss += __shfl_xor_sync(~0u, row_loss, k);
      }
      loss += valid ? row_loss : 0.f, correct += valid ? is_correct : 0.f;
    }
    const uint to = block.at(choice::at_dz + (lane >> 3 & 1) * kChunk + (8 * warp + (lane & 7)) * 16);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" ::"r"(to), "r"(half_pair(d[0][0], d[1][0])),
                 "r"(half_pair(d[0][1], d[1][1]))
                 : "memory");
#pragma unroll
    for (int k = 1; k < 4; k *= 2) {
      loss += __shfl_xor_sync(~0u, loss, k);
      correct += __shfl_xor_sync(~0u, correct, k);
    }
    if (lane == 0) store_f(block.at(choice::at_sums + 8 * warp), loss), store_f(block.at(choice::at_sums + 8 * warp + 4), correct);
  }
  WS_DEVICE void write_metrics(int step) const {
    if (block.rank != 0 || thread != 0) return;
    float loss = 0.f, correct = 0.f;
    for (int i = 0; i < kRowTiles; ++i) loss += load_f(block.at(choice::at_sums + 8 * i)), correct += load_f(block.at(choice::at_sums + 8 * i + 4));
    float* out = a.metrics + 3 * ((a.first_step + step) % a.ring);
    out[0] = loss, out[1] = correct, out[2] = static_cast<float>(a.batch);
  }

  // ---- backward ----
  WS_DEVICE void check_finite(uint pair) {
    if constexpr (choice::precision == kFp16) add_zero_times(check, pair);  // NaN stays in every further sum
  }
  // Multiplies the gradients of layer L by the slopes, writes them and adds the gradients of the bias.
  template <int L>
  WS_DEVICE void write_gradients(int step, const float (&dh)[B / 2]) {
    [[maybe_unused]] UnitPairs first;
    if constexpr (L == 1 && choice::activation != kNone)
      read_units(kSlopes ? block.at(choice::at_slopes) : block.units(1, step), first);
    UnitPairs pairs;
    float sums[2] = {};
#pragma unroll
    for (int j = 0; j < kRowTiles; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float d0 = dh[4 * j + 2 * e], d1 = dh[4 * j + 2 * e + 1];
        if constexpr (kSlopes) {
          const uint by = L == 1 ? first[j][e] : slope[L > 1 ? L - 2 : 0][j][e];
          d0 *= fp16_low(by), d1 *= fp16_high(by);
        } else if constexpr (kBits) {
          const uint two = L == 1 ? 0u : on[L > 1 ? L - 2 : 0] >> (4 * j + 2 * e);
          d0 = (L == 1 ? (first[j][e] & 0xffffu) != 0 : (two & 1u) != 0) ? d0 : 0.f;
          d1 = (L == 1 ? first[j][e] >> 16 != 0 : (two & 2u) != 0) ? d1 : 0.f;
        }
        pairs[j][e] = half_pair(d0, d1);
        check_finite(pairs[j][e]);
        if constexpr (L > 1 && choice::bias) sums[e] += low_of(pairs[j][e]) + high_of(pairs[j][e]);
      }
    if constexpr (L > 1 && choice::bias) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        sums[e] += __shfl_xor_sync(~0u, sums[e], 1);
        bias_gradient[L - 2][e] = sums[e] + __shfl_xor_sync(~0u, sums[e], 2);
      }
    }
    write_units(block.gradients(L), pairs);
    stores_for_tensor_cores();
  }
  WS_DEVICE void top_gradients(int step) {
    stamps.begin(now, kPartBackward, kHiddenLayers);
    const uint weights = block.at(choice::at_output + (2 * warp + (lane >> 3 & 1)) * kOutputChunk + ((lane >> 4) * 8 + (lane & 7)) * 16);
    const uint dz = block.at(choice::at_dz + (lane >> 3 & 1) * kChunk + (8 * (lane >> 4) + (lane & 7)) * 16);
    uint turned[4];
    load_turned(turned, weights);
    float dh[B / 2] = {};
#pragma unroll
    for (int j = 0; j < kRowTiles; j += 2) {
      uint d[4];
      load_matrices(d, dz + j * 128);
#pragma unroll
      for (int i = 0; i < 4; ++i) check_finite(d[i]);
      mma_halves(reinterpret_cast<float (&)[4]>(dh[4 * j]), turned, d[0], d[1]);
      mma_halves(reinterpret_cast<float (&)[4]>(dh[4 * j + 4]), turned, d[2], d[3]);
    }
    write_gradients<kHiddenLayers>(step, dh);
  }
  // Computes the gradients of the units of layer L - 1.
  template <int L>
  WS_DEVICE void backward(int step) {
    if constexpr (L > 1) {
      __syncthreads();
      stamps.begin(now, kPartBackward, L - 1);
      const uint from = block.weights(L) + static_cast<uint>(group() * 8 * kWeightChunk), dz = block.gradients(L);
      float dh[B / 2];
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < (width(L) + 15) / 16; ++s)
        back_product(dh, matrix(from + 256 * s, 128, kWeightChunk), matrix(dz + 2 * s * kChunk, kChunk, 128), s > 0);
      wgmma_commit();
      wgmma_wait<0>();
      write_gradients<L - 1>(step, dh);
      backward<L - 1>(step);
    }
  }

  // ---- updates ----
  WS_DEVICE uint gradient_operand(int l, int s) const {
    return block.gradients(l) + static_cast<uint>(group() * 8 * kChunk + 256 * s);
  }
  WS_DEVICE void move_input(int step, const StepFactors& f, bool skip) {
    stamps.begin(now, kPartUpdate, 0);
    if (skip) return;
    float sums[4 * kTiles];
    const uint x = block.rows(step);
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kBatchSteps; ++s)
      input_gradient(sums, matrix(gradient_operand(1, s), 128, kChunk), matrix(x + 256 * s, 128, kChunk), s > 0);
    wgmma_commit();
    wgmma_wait<0>();
    input.move_weights(sums, f);
  }
  template <int L>
  WS_DEVICE void move_copy(int step, const StepFactors& f, bool skip) {
    stamps.begin(now, kPartUpdate, L - 1);
    if (skip) return;
    const uint h = block.units(L - 1, step);
    float none = 0.f;
#pragma unroll
    for (int part = 0; part < parts(L); ++part) {
      constexpr int each = tiles(L) / parts(L);
      float sums[4 * each];
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < kBatchSteps; ++s)
        copy_gradient(sums, matrix(gradient_operand(L, s), 128, kChunk), matrix(h + part * each * kChunk + 256 * s, 128, kChunk), s > 0);
      wgmma_commit();
      wgmma_wait<0>();
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const int i = tile_at(L) + each * part + j;
#pragma unroll
        for (int k = 0; k < 4; ++k)
          move(a, f, true, w[i][k], kMoves ? m[kMoves ? i : 0][k] : none, kSquares ? v[kSquares ? i : 0][k] : none, sums[4 * j + k]);
        write_copy<L>(each * part + j, i);
      }
    }
    if constexpr (choice::bias) {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        move(a, f, false, bias[L - 2][e], bias_m[L - 2][e], bias_v[L - 2][e], bias_gradient[L - 2][e]);
    }
  }
  template <int L>
  WS_DEVICE void write_copy(int tile, int i) const {
    const uint to = block.weights(L) + static_cast<uint>(tile * kWeightChunk + unit(0) * 16 + 4 * t);
    store_pair(to, half_pair(w[i][0], w[i][1])), store_pair(to + 128, half_pair(w[i][2], w[i][3]));
  }
  template <int L>
  WS_DEVICE void move_copies_above(int step, const StepFactors& f, bool skip) {
    if constexpr (L <= kHiddenLayers) {
      move_copy<L>(step, f, skip);
      move_copies_above<L + 1>(step, f, skip);
    }
  }
  WS_DEVICE void move_output(int step, const StepFactors& f, bool skip) {
    stamps.begin(now, kPartUpdate, kHiddenLayers);
    if (skip) return;
    const uint dz = block.at(choice::at_dz + (lane >> 3 & 1) * kChunk + (8 * (lane >> 4) + (lane & 7)) * 16);
    const uint units = block.units(kHiddenLayers, step) + static_cast<uint>((2 * warp + (lane >> 4)) * kChunk + (8 * (lane >> 3 & 1) + (lane & 7)) * 16);
    float sums[3][4] = {};
#pragma unroll
    for (int s = 0; s < kBatchSteps; ++s) {
      uint d[4], h[4];
      load_turned(d, dz + 256 * s);
      load_turned(h, units + 256 * s);
      mma_halves(sums[0], d, h[0], h[1]);
      mma_halves(sums[1], d, h[2], h[3]);
      if constexpr (choice::bias) mma_halves(sums[2], d, kOnes, kOnes);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k) move(a, f, true, top[j][k], top_m[j][k], top_v[j][k], sums[j][k]);
    }
    write_output();
    if constexpr (choice::bias) {
#pragma unroll
      for (int e = 0; e < 2; ++e) move(a, f, false, top_bias[e], top_bias_m[e], top_bias_v[e], sums[2][2 * e]);
    }
  }
  WS_DEVICE void write_output() const {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint to = block.at(choice::at_output + (2 * warp + j) * kOutputChunk + g * 16 + 4 * t);
      store_pair(to, half_pair(top[j][0], top[j][1])), store_pair(to + 128, half_pair(top[j][2], top[j][3]));
    }
  }

  // ---- weights between device memory and this block ----
  template <int L, class F>
  WS_DEVICE void each_copy(F f) {
    if constexpr (L <= kHiddenLayers) {
      const LayerState& l = a.layers[L - 1];
#pragma unroll
      for (int j = 0; j < tiles(L); ++j)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int in = 8 * j + 2 * t + (k & 1), out = unit(k >> 1), i = tile_at(L) + j;
          const bool is = in < width(L - 1) && out < width(L);
          const size_t at = static_cast<size_t>(in) * width(L) + out;
          f(is, w[i][k], l.w + at);
          if constexpr (kMoves) f(is, m[i][k], l.w_m + at);
          if constexpr (kSquares) f(is, v[i][k], l.w_v + at);
        }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const bool is = choice::bias && unit(e) < width(L);
        f(is, bias[L - 2][e], l.b + unit(e));
        f(is && kMoves, bias_m[L - 2][e], l.b_m + unit(e));
        f(is && kSquares, bias_v[L - 2][e], l.b_v + unit(e));
      }
      each_copy<L + 1>(f);
    }
  }
  template <class F>
  WS_DEVICE void each_output(F f) {
    const LayerState& l = a.layers[kHiddenLayers];
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int in = 16 * warp + 8 * j + 2 * t + (k & 1), out = g + 8 * (k >> 1);
        const bool is = in < width(kHiddenLayers) && out < O;
        const size_t at = static_cast<size_t>(in) * O + out;
        f(is, top[j][k], l.w + at);
        f(is && kMoves, top_m[j][k], l.w_m + at);
        f(is && kSquares, top_v[j][k], l.w_v + at);
      }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int out = g + 8 * e;
      const bool is = choice::bias && out < O;
      f(is, top_bias[e], l.b + out);
      f(is && kMoves, top_bias_m[e], l.b_m + out);
      f(is && kSquares, top_bias_v[e], l.b_v + out);
    }
  }
  template <int L>
  WS_DEVICE void write_copies() const {
    if constexpr (L <= kHiddenLayers) {
#pragma unroll
      for (int j = 0; j < tiles(L); ++j) write_copy<L>(j, tile_at(L) + j);
      write_copies<L + 1>();
    }
  }
  WS_DEVICE void begin() {
    const auto read = [](bool is, float& value, const float* from) { value = is ? *from : 0.f; };
    input.load();
    each_copy<2>(read);
    each_output(read);
    for (int i = thread; i < choice::shared_bytes / 4; i += kThreads) store_f(block.at(4 * i), 0.f);
    __syncthreads();
    write_copies<2>();
    write_output();
    if (thread == 0) {
      barrier_init(block.barrier(kPartials), 1), barrier_init(block.barrier(kHidden), 1);
      barriers_are_ready();
      barrier_expect(block.barrier(kPartials), kPartialBytes);
      barrier_expect(block.barrier(kHidden), kHiddenBytes);
    }
    find(0), load(0), load(1);
    copies_wait<1>();
    publish();
    cluster_meets();
  }
  // All blocks have the same copies: the first one stores them.
  WS_DEVICE void store() {
    const auto write = [](bool is, float& value, float* to) {
      if (is) *to = value;
    };
    input.store();
    if (block.rank != 0) return;
    each_copy<2>(write);
    each_output(write);
  }

  // Returns true if a wait timed out.
  WS_DEVICE bool receive_units(int step) {
    stamps.begin(now, kPartWait, kWaitHidden);
    alive &= wait(block.watch, block.barrier(kHidden), step & 1, kWaitHidden, step);
    if (thread == 0 && alive) barrier_expect(block.barrier(kHidden), kHiddenBytes);
    stores_for_tensor_cores();  // what this and the other blocks wrote
    return warps_meet_any(1, kThreads, !alive);
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, 1) ws_train(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Block block{static_cast<uint>(kept(static_cast<int>(shared_address(memory)))),
                    static_cast<uint>(kept(static_cast<int>(cluster_rank()))),
                    {reinterpret_cast<volatile int*>(memory + choice::at_dead), a.limit, a.fault}};
  const int thread = kept(static_cast<int>(threadIdx.x));
  Training training(a, block, thread, __shfl_sync(~0u, thread >> 5, 0), thread & 31);
  training.begin();
  LossScaling scaling;
  scaling.load(a);
  const float per_row = 1.f / static_cast<float>(a.batch);
  Rates rates(a);
  StepFactors factors{};
  bool skip = false;
  training.stamps.begin(0, kPartForward, 0);
  if (a.steps > 0) training.forward_input(0);
  int s = 0;
#pragma unroll 1
  for (; s < a.steps; ++s) {
    training.now = s;
    // The updates of the last step fill the time of the messages.
    if (s > 0) {
      training.move_output(s - 1, factors, skip);
      training.move_copies_above<3>(s - 1, factors, skip);
      training.write_metrics(s - 1);
    }
    training.add_partials(s);
    training.load(s + 2);
    if (s > 0) training.move_copy<2>(s - 1, factors, skip);
    if (training.receive_units(s)) break;
    training.forward<2>(s);
    training.stamps.begin(s, kPartLosses, kHiddenLayers);
    training.losses(s, scaling.scale * per_row);
    __syncthreads();
    training.top_gradients(s);
    training.backward<kHiddenLayers>(s);
    copies_wait<1>();
    stores_for_tensor_cores();
    const float rate = rates.take();
    skip = false;
    if constexpr (choice::precision == kFp16) {
      skip = warps_meet_any(1, kThreads, (training.check & 0x7fff7fffu) != 0);
      training.check = 0;
      scaling.decide(skip);
    } else {
      __syncthreads();
    }
    factors = step_factors(a, rate, scaling.inverse, a.first_step + s);
    training.move_input(s, factors, skip);
    if (s + 1 < a.steps) {
      training.stamps.begin(s, kPartForward, 0);
      training.forward_input(s + 1);
    }
  }
  const bool ends = s == a.steps;
  if (ends && s > 0) {
    training.move_output(s - 1, factors, skip);
    training.move_copies_above<2>(s - 1, factors, skip);
    training.write_metrics(s - 1);
  }
  training.stamps.end(a.steps);
  if (ends && !*block.watch.dead) training.store();
  cluster_meets();  // no block may leave while messages are in flight
  if (block.rank == 0 && thread == 0 && ends && choice::precision == kFp16 && !*block.watch.dead)
    scaling.store(a);
}

}  // namespace ws::cuda::persistent
