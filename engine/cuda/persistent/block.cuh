// A kernel for a network whose weights, state and activations fit into the shared memory of one block. Products run in
// fp32: at this size a step waits for shared memory, so tensor cores would not help.
//
// All widths are padded to four with zeros. A thread computes tiles of four by four. The rows of a tile lie batch / 4
// apart, so adjacent threads read adjacent rows.
#pragma once

namespace ws::cuda::persistent {

constexpr int kLayers = choice::layers, kThreads = choice::threads, B = choice::batch;

WS_BOTH constexpr int padded(int l) { return (width(l) + 3) / 4 * 4; }
WS_BOTH constexpr int row_of(int l) { return padded(l) + 4; }  // floats per row of units in shared memory
// Offsets in floats: weights (in, out) of a layer, then its biases.
WS_BOTH constexpr int weight_at(int l) { return l == 0 ? 0 : weight_at(l - 1) + (padded(l - 1) + 1) * padded(l); }
WS_BOTH constexpr int bias_at(int l) { return weight_at(l) + padded(l) * padded(l + 1); }
// Units: two buffers of inputs, then h, slope and dz of each layer.
WS_BOTH constexpr int units_at(int l) { return l == 0 ? 0 : units_at(l - 1) + (l == 1 ? 2 : 3) * B * row_of(l - 1); }
constexpr int kOutputs = width(kLayers), kTargets = kClasses ? 1 : kOutputs;

struct Memory {
  float *parameters, *units, *targets, *sums;
  int* places;  // row numbers in the data set: two buffers
  WS_DEVICE float* inputs(int step) const { return units + (choice::all_rows ? 0 : step & 1) * B * row_of(0); }
  WS_DEVICE float* h(int l, int step) const { return l == 0 ? inputs(step) : units + units_at(l); }
  WS_DEVICE float* slope(int l) const { return units + units_at(l) + B * row_of(l); }
  WS_DEVICE float* dz(int l) const { return units + units_at(l) + 2 * B * row_of(l); }
  WS_DEVICE float* target(int step) const { return targets + (choice::all_rows ? 0 : step & 1) * B * kTargets; }
};

WS_DEVICE float4 at4(const float* p) { return *reinterpret_cast<const float4*>(p); }
WS_DEVICE void add_products(float& sum, const float4& a, const float4& b) {
  sum += a.x * b.x, sum += a.y * b.y, sum += a.z * b.z, sum += a.w * b.w;
}

template <int L>
WS_DEVICE void forward(const Memory& memory, int step) {
  if constexpr (L < kLayers) {
    constexpr int in = padded(L), out = padded(L + 1);
    const float *h = memory.h(L, step), *w = memory.parameters + weight_at(L), *b = memory.parameters + bias_at(L);
    for (int i = static_cast<int>(threadIdx.x); i < B / 4 * (out / 4); i += kThreads) {
      const int row = i % (B / 4), column = i / (B / 4) * 4;
      float z[4][4];
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c) z[r][c] = choice::bias ? b[column + c] : 0.f;
#pragma unroll 4
      for (int k = 0; k < in; k += 4) {
        float4 wk[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) wk[j] = at4(w + (k + j) * out + column);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float4 x = at4(h + (row + r * (B / 4)) * row_of(L) + k);
          const float xs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
          for (int j = 0; j < 4; ++j)
            z[r][0] += xs[j] * wk[j].x, z[r][1] += xs[j] * wk[j].y, z[r][2] += xs[j] * wk[j].z,
                z[r][3] += xs[j] * wk[j].w;
        }
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int at = (row + r * (B / 4)) * row_of(L + 1) + column;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const bool is = column + c < width(L + 1);
          const float value = L + 1 < kLayers ? activated(z[r][c]) : z[r][c];
          memory.h(L + 1, step)[at + c] = is ? value : 0.f;
          if (L + 1 < kLayers) memory.slope(L + 1)[at + c] = is ? slope_at(z[r][c], value) : 0.f;
        }
      }
    }
    __syncthreads();
    forward<L + 1>(memory, step);
  }
}

// One thread per row.
WS_DEVICE void losses(const Arguments& a, const Memory& memory, int step) {
  const float per_row = 1.f / static_cast<float>(a.batch);
  for (int r = static_cast<int>(threadIdx.x); r < B; r += kThreads) {
    const float* z = memory.h(kLayers, step) + r * row_of(kLayers);
    float* dz = memory.dz(kLayers) + r * row_of(kLayers);
    const float* target = memory.target(step) + r * kTargets;
    float loss = 0.f, correct = 0.f;
    const bool valid = r < a.batch;
    if constexpr (kClasses) {
      const int label = __float_as_int(target[0]);
      float top = z[0], sum = 0.f;
      int best = 0;
#pragma unroll 4
      for (int o = 1; o < kOutputs; ++o)
        if (z[o] > top) top = z[o], best = o;
#pragma unroll 4
      for (int o = 0; o < kOutputs; ++o) {
        const float e = expf(z[o] - top);
        dz[o] = e, sum += e;
      }
      const float factor = valid ? per_row / sum : 0.f;
#pragma unroll 4
      for (int o = 0; o < kOutputs; ++o) dz[o] = valid ? dz[o] * factor - (o == label ? per_row : 0.f) : 0.f;
      loss = logf(sum) + top - (valid ? z[label] : 0.f), correct = best == label;
    } else {
#pragma unroll 4
      for (int o = 0; o < kOutputs; ++o) {
        const float difference = z[o] - target[o];
        dz[o] = valid ? difference * 2.f * per_row / static_cast<float>(kOutputs) : 0.f;
        loss += difference * difference / static_cast<float>(kOutputs);
      }
    }
    memory.sums[2 * r] = valid ? loss : 0.f, memory.sums[2 * r + 1] = valid ? correct : 0.f;
  }
  __syncthreads();
}

template <int L>
WS_DEVICE void backward(const Memory& memory) {
  if constexpr (L > 0) {
    constexpr int in = padded(L), out = padded(L + 1);
    const float *dz = memory.dz(L + 1), *w = memory.parameters + weight_at(L), *slope = memory.slope(L);
    for (int i = static_cast<int>(threadIdx.x); i < B / 4 * (in / 4); i += kThreads) {
      const int row = i % (B / 4), column = i / (B / 4) * 4;
      float back[4][4] = {};
#pragma unroll 4
      for (int o = 0; o < out; o += 4) {
        float4 wo[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) wo[c] = at4(w + (column + c) * out + o);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float4 d = at4(dz + (row + r * (B / 4)) * row_of(L + 1) + o);
#pragma unroll
          for (int c = 0; c < 4; ++c) add_products(back[r][c], d, wo[c]);
        }
      }
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int at = (row + r * (B / 4)) * row_of(L) + column + c;
          memory.dz(L)[at] = back[r][c] * slope[at];
        }
    }
    __syncthreads();
    backward<L - 1>(memory);
  }
}

WS_DEVICE void move_at(const Arguments& a, const StepFactors& f, const Memory& memory, int at, bool decays,
                       float gradient) {
  float none = 0.f;
  move(a, f, decays, memory.parameters[at], kMoves ? memory.parameters[choice::parameters + at] : none,
       kSquares ? memory.parameters[2 * choice::parameters + at] : none, gradient);
}

// Updates tile `i` of the weights of layer L, or four of its biases. Tiles are counted over all layers.
template <int L>
WS_DEVICE void update(const Arguments& a, const StepFactors& f, const Memory& memory, int step, int i) {
  if constexpr (L < kLayers) {
    constexpr int in = padded(L) / 4, out = padded(L + 1) / 4;
    if (i < in * out) {
      const float* h = memory.h(L, step) + i / out * 4;
      const float* dz = memory.dz(L + 1) + i % out * 4;
      float sums[4][4] = {};
#pragma unroll 4
      for (int r = 0; r < B; ++r) {
        const float4 x = at4(h + r * row_of(L)), d = at4(dz + r * row_of(L + 1));
        const float xs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int k = 0; k < 4; ++k)
          sums[k][0] += xs[k] * d.x, sums[k][1] += xs[k] * d.y, sums[k][2] += xs[k] * d.z, sums[k][3] += xs[k] * d.w;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          move_at(a, f, memory, weight_at(L) + (i / out * 4 + k) * padded(L + 1) + i % out * 4 + c, true, sums[k][c]);
    } else if (choice::bias && i < in * out + out) {
      const int column = (i - in * out) * 4;
      float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
      for (int r = 0; r < B; ++r) {
        const float4 d = at4(memory.dz(L + 1) + r * row_of(L + 1) + column);
        sum.x += d.x, sum.y += d.y, sum.z += d.z, sum.w += d.w;
      }
      const int at = bias_at(L) + column;
      move_at(a, f, memory, at, false, sum.x), move_at(a, f, memory, at + 1, false, sum.y);
      move_at(a, f, memory, at + 2, false, sum.z), move_at(a, f, memory, at + 3, false, sum.w);
    } else {
      update<L + 1>(a, f, memory, step, i - in * out - (choice::bias ? out : 0));
    }
  }
}
WS_BOTH constexpr int tiles_below(int l) {
  return l == 0 ? 0 : tiles_below(l - 1) + padded(l - 1) / 4 * (padded(l) / 4) + (choice::bias ? padded(l) / 4 : 0);
}

// Calls f for each parameter of a layer, with its place in shared memory and its address in device memory.
template <int L, class F>
WS_DEVICE void each_parameter(const Arguments& a, const Memory& memory, F f) {
  if constexpr (L < kLayers) {
    const LayerState& s = a.layers[L];
    float* const places[6] = {s.w, s.w_m, s.w_v, s.b, s.b_m, s.b_v};
    for (int copy = 0; copy < 1 + kMoves + kSquares; ++copy) {
      float* to = memory.parameters + copy * choice::parameters;
      for (int i = static_cast<int>(threadIdx.x); i < width(L) * width(L + 1); i += kThreads)
        f(to[weight_at(L) + i / width(L + 1) * padded(L + 1) + i % width(L + 1)], places[copy] + i);
      if (choice::bias)
        for (int i = static_cast<int>(threadIdx.x); i < width(L + 1); i += kThreads)
          f(to[bias_at(L) + i], places[3 + copy] + i);
    }
    each_parameter<L + 1>(a, memory, f);
  }
}

WS_DEVICE void copy4(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
// Starts the copies of the rows of `step`, whose row numbers are known.
WS_DEVICE void fetch_rows(const Arguments& a, const Memory& memory, int step) {
  const int* places = memory.places + (step & 1) * B;
  for (int i = static_cast<int>(threadIdx.x); i < a.batch * width(0); i += kThreads) {
    const int r = i / width(0), k = i % width(0);
    copy4(memory.inputs(step) + r * row_of(0) + k,
          static_cast<const float*>(a.rows) + static_cast<long long>(places[r]) * width(0) + k);
  }
  for (int i = static_cast<int>(threadIdx.x); i < a.batch * kTargets; i += kThreads)
    copy4(memory.target(step) + i, static_cast<const float*>(a.targets) +
                                       static_cast<long long>(places[i / kTargets]) * kTargets + i % kTargets);
}
WS_DEVICE void find_rows(const Arguments& a, const Memory& memory, int step) {
  for (int r = static_cast<int>(threadIdx.x); r < a.batch; r += kThreads)
    memory.places[(step & 1) * B + r] = static_cast<int>(row_index(a, a.first_row + step * a.rows_onward + r));
}

// Runs in one warp, which always adds in the same order.
WS_DEVICE void write_metrics(const Arguments& a, const Memory& memory, int slot) {
  if (threadIdx.x >= 32) return;
  float loss = 0.f, correct = 0.f;
  for (int r = static_cast<int>(threadIdx.x); r < B; r += 32)
    loss += memory.sums[2 * r], correct += memory.sums[2 * r + 1];
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    loss += __shfl_xor_sync(~0u, loss, d);
    correct += __shfl_xor_sync(~0u, correct, d);
  }
  float* out = a.metrics + 3 * slot;
  if (threadIdx.x == 0) out[0] = loss, out[1] = correct, out[2] = static_cast<float>(a.batch);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) ws_train(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(128) unsigned char bytes[];
  const Memory memory{
      reinterpret_cast<float*>(bytes + choice::at_parameters), reinterpret_cast<float*>(bytes + choice::at_units),
      reinterpret_cast<float*>(bytes + choice::at_targets), reinterpret_cast<float*>(bytes + choice::at_sums),
      reinterpret_cast<int*>(bytes + choice::at_places)};
  for (int i = static_cast<int>(threadIdx.x); i < choice::shared_bytes / 4; i += kThreads)
    reinterpret_cast<float*>(bytes)[i] = 0.f;
  __syncthreads();
  each_parameter<0>(a, memory, [](float& here, const float* there) { here = *there; });
  find_rows(a, memory, 0);
  if (!choice::all_rows && a.steps > 1) find_rows(a, memory, 1);
  __syncthreads();
  fetch_rows(a, memory, 0);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  Rates rates(a);
  StampLane stamps(a, 0, threadIdx.x == 0);
#pragma unroll 1
  for (int s = 0; s < a.steps; ++s) {
    const int slot = rates.at;
    const float rate = rates.take();
    stamps.begin(s, kPartForward);
    if (!choice::all_rows && s + 1 < a.steps) fetch_rows(a, memory, s + 1);
    forward<0>(memory, s);
    stamps.begin(s, kPartLosses, kLayers - 1);
    losses(a, memory, s);
    stamps.begin(s, kPartBackward);
    backward<kLayers - 1>(memory);
    if (!choice::all_rows && s + 2 < a.steps) find_rows(a, memory, s + 2);
    const StepFactors f = step_factors(a, rate, 1.f, a.first_step + s);
    stamps.begin(s, kPartUpdate);
    for (int i = static_cast<int>(threadIdx.x); i < tiles_below(kLayers); i += kThreads) update<0>(a, f, memory, s, i);
    write_metrics(a, memory, slot);
    if (!choice::all_rows) {
      stamps.begin(s, kPartWait, kWaitRows);
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
  }
  stamps.end(a.steps);
  each_parameter<0>(a, memory, [](const float& here, float* there) { *there = here; });
}

}  // namespace ws::cuda::persistent
