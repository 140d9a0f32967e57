// The last layer for large batches: a warp keeps the weights in registers and computes two rows at a time. Its lanes
// share the inputs, and every row is read and written once. Shapes: h (n, in), w (in, out), z and dz (n, out).
#include "engine/cuda/kernels/output_layer.cuh"

namespace ws::cuda {
namespace {

constexpr int64_t kManyRows = 1024;
// Gradients need registers, so a multiprocessor holds one block of more warps instead of two. Unaligned rows need some
// more registers.
template <bool Whole, bool Gradients>
constexpr int kRowThreads = Whole&& Gradients ? 352 : 256;

template <class T>
constexpr DType kTypeOf = DType::F32;
template <>
constexpr DType kTypeOf<__half> = DType::F16;
template <>
constexpr DType kTypeOf<__nv_bfloat16> = DType::Bf16;

template <class T>
__device__ __forceinline__ Ref ref(const void* data) {
  return {static_cast<char*>(const_cast<void*>(data)), kTypeOf<T>};
}

// N: maximum number of outputs. Fours: packs of four inputs per lane, 128 inputs apart. After the sums over the lanes,
// lane o · rows + r holds output o of row r.
template <class T, int N, int Fours, bool Whole>
struct WarpOfRows {
  static constexpr int rows = N <= 16 ? 2 : 1;
  using Rows = Pack<4>[rows][Fours];

  const OutputArguments& l;
  const int lane = threadIdx.x % 32, output = lane / rows, row_of_lane = lane % rows;
  float w[Fours][4][N] = {};
  float bias = 0;

  // All weights go through shared memory. Each lane's share begins at a bank of its own.
  __device__ WarpOfRows(const OutputArguments& layer, float* staged) : l(layer) {
    const T* from = static_cast<const T*>(l.w);
    const int share = 4 * l.out;
    for (int i = threadIdx.x; i < l.in * l.out; i += blockDim.x) staged[i + i / share] = static_cast<float>(from[i]);
    __syncthreads();
#pragma unroll
    for (int f = 0; f < Fours; ++f)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int o = 0; o < N; ++o)
          if (input(f) + j < l.in && o < l.out) w[f][j][o] = staged[input(f) / 4 * (share + 1) + j * l.out + o];
    if (l.bias && output < l.out) bias = load(Ref{static_cast<char*>(const_cast<void*>(l.bias)), l.bias_type}, output);
  }

  __device__ int input(int f) const { return 4 * lane + 128 * f; }
  __device__ int inputs(int f) const { return min(4, l.in - input(f)); }

  __device__ void ask(Rows& h, int64_t h_first, int64_t row) const {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int f = 0; f < Fours; ++f)
        h[r][f] = row + r < l.rows && inputs(f) > 0
                      ? load_some<4>(ref<T>(l.h), (h_first + row + r) * l.in + input(f), inputs(f), Whole)
                      : Pack<4>{};
  }

  // In each of five exchanges a lane gives away half of its sums and keeps the other half.
  template <int Half>
  __device__ void halve(float (&sums)[32]) const {
    const bool upper = lane & Half;
#pragma unroll
    for (int j = 0; j < Half; ++j) {
      const float give = upper ? sums[j] : sums[j + Half], keep = upper ? sums[j + Half] : sums[j];
      sums[j] = keep + __shfl_xor_sync(0xffffffffu, give, Half);
    }
    if constexpr (Half > 1) halve<Half / 2>(sums);
  }

  // Returns the lane's logit.
  __device__ float logit(const Rows& h) const {
    float sums[32] = {};
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int f = 0; f < Fours; ++f)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int o = 0; o < N; ++o) sums[o * rows + r] = fmaf(h[r][f].v[j], w[f][j][o], sums[o * rows + r]);
    halve<16>(sums);
    return sums[0] + bias;
  }

  template <class Join>
  __device__ float over_outputs(float v, Join join) const {
#pragma unroll
    for (int d = 16; d >= rows; d /= 2) v = join(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
  }
  __device__ float sum_of_outputs(float v) const {
    return over_outputs(v, [](float a, float b) { return a + b; });
  }

  // Returns dz of the lane's output. The lane of output 0 adds the row's loss to `sums`.
  __device__ float cross_entropy(float z, int label, bool inside, float factor, Sums& sums) const {
    const float value = output < l.out ? z : -INFINITY;
    const float max = over_outputs(value, [](float a, float b) { return fmaxf(a, b); });
    const unsigned mine = (rows == 2 ? 0x55555555u : 0xffffffffu) << row_of_lane;
    const int best = (__ffs(__ballot_sync(0xffffffffu, value == max) & mine) - 1) / rows;
    const float e = output < l.out ? expf(value - max) : 0.f, sum = sum_of_outputs(e);
    const float chosen = __shfl_sync(0xffffffffu, z, label * rows + row_of_lane);
    if (output == 0 && inside)
      sums = {sums.loss + logf(sum) + max - chosen, sums.correct + (best == label ? 1.f : 0.f), sums.rows + 1.f};
    return (e / sum - (output == label ? 1.f : 0.f)) * factor;
  }

  __device__ float squared_error(float z, float target, bool inside, float factor, Sums& sums) const {
    const float difference = output < l.out ? z - target : 0.f, outs = static_cast<float>(l.out);
    const float loss = sum_of_outputs(difference * difference) / outs;
    if (output == 0 && inside) sums = {sums.loss + loss, sums.correct, sums.rows + 1.f};
    return 2.f * difference * factor / outs;
  }

  // Computes dz·Wᵀ ∘ f'(saved) for one row. Calls each(f, stored values).
  template <class Each>
  __device__ void gradient_before(int64_t row, const Pack<4> (&h)[Fours], const float (&d)[N], Each each) const {
#pragma unroll
    for (int f = 0; f < Fours; ++f) {
      if (inputs(f) <= 0) continue;
      const int64_t at = row * l.in + input(f);
      Pack<4> slope{{1.f, 1.f, 1.f, 1.f}}, out;
      if (l.saved) {
        const Ref saved{static_cast<char*>(const_cast<void*>(l.saved)), l.saved_type};
        slope = activation_slope(l.activation, l.saved == l.h ? h[f] : load_some<4>(saved, at, inputs(f), Whole));
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float sum = 0;
#pragma unroll
        for (int o = 0; o < N; ++o) sum = fmaf(d[o], w[f][j][o], sum);
        out.v[j] = sum * slope.v[j];
      }
      store_some<4>(Ref{static_cast<char*>(l.dz_before), l.dz_type}, at, out, inputs(f), Whole);
      each(f, out);
    }
  }
};

// The lane's part of the sums over rows that give the gradients.
template <int N>
struct LaneGradients {
  float dw[4][N] = {}, before[4] = {}, db = 0;

  __device__ void add_row(const Pack<4>& h, const float (&d)[N]) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int o = 0; o < N; ++o) dw[j][o] = fmaf(h.v[j], d[o], dw[j][o]);
  }
  __device__ void add_before(const Pack<4>& dz) {
#pragma unroll
    for (int j = 0; j < 4; ++j) before[j] += dz.v[j];
  }

  static constexpr int numbers = 4 * N + 5;     // per lane
  static constexpr int columns = 32 * numbers;  // per block: number k of lane l is column 32 k + l
  __device__ void write(float* to) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int o = 0; o < N; ++o) to[32 * (j * N + o)] = dw[j][o];
      to[32 * (4 * N + j)] = before[j];
    }
    to[32 * (4 * N + 4)] = db;
  }
};

struct NoGradients {};

// Blocks write their gradient sums behind the partial sums of the losses.
constexpr int64_t kLossBytes = 64 << 10;
__device__ __forceinline__ float* gradient_parts(Scratch s) {
  return reinterpret_cast<float*>(static_cast<char*>(s.data) + kCounterBytes + kLossBytes);
}

template <int N, int Threads>
__device__ __forceinline__ void hand_in(const LaneGradients<N>& g, float* shared, Scratch scratch) {
  constexpr int columns = LaneGradients<N>::columns;
  g.write(shared + threadIdx.x / 32 * columns + threadIdx.x % 32);
  __syncthreads();
  float* to = gradient_parts(scratch) + static_cast<int64_t>(blockIdx.x) * columns;
  for (int c = threadIdx.x; c < columns; c += Threads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < Threads / 32; ++w) sum += shared[w * columns + c];
    to[c] = sum;
  }
}

template <class T, int N, int Fours, bool Whole, bool Gradients>
__global__ __launch_bounds__(kRowThreads<Whole, Gradients>,
                             N* Fours <= 10 && !Gradients
                                 ? 2
                                 : 1) void output_layer_rows_kernel(const __grid_constant__ OutputArguments l) {
  using Warp = WarpOfRows<T, N, Fours, Whole>;
  constexpr int warps = kRowThreads<Whole, Gradients> / 32;
  extern __shared__ __align__(16) float memory[];  // the weights, later the gradients
  __shared__ __align__(8) float dz_of[warps][Warp::rows][N];
  __shared__ Sums shared[warps];
  wait_for_previous();
  const Warp warp(l, memory);
  float(&dz)[Warp::rows][N] = dz_of[threadIdx.x / 32];
  const int64_t first = l.clock ? l.clock->row : 0;
  const int64_t y_first = l.y_is_view ? first + l.y_row : 0, h_first = l.h_row >= 0 ? first + l.h_row : 0;
  const float factor = (l.scale ? l.scale->scale : 1.f) / static_cast<float>(l.rows);
  const int64_t step = static_cast<int64_t>(gridDim.x) * warps * Warp::rows;
  int64_t row = (static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / 32) * Warp::rows;
  typename Warp::Rows h, ahead;
  warp.ask(ahead, h_first, row);
  [[maybe_unused]] std::conditional_t<Gradients, LaneGradients<N>, NoGradients> gradients;
  Sums mine;
  for (; row < l.rows; row += step) {
#pragma unroll
    for (int r = 0; r < Warp::rows; ++r)
#pragma unroll
      for (int f = 0; f < Fours; ++f) h[r][f] = ahead[r][f];
    warp.ask(ahead, h_first, row + step);
    const int64_t own = row + warp.row_of_lane;
    const bool inside = own < l.rows, has_output = inside && warp.output < l.out;
    const int64_t y_at = y_first + (inside ? own : row);
    float d = 0;
    if (l.loss == LossKind::CrossEntropy) {
      const int label = static_cast<const int32_t*>(l.y)[y_at];
      d = warp.cross_entropy(warp.logit(h), label, inside, factor, mine);
    } else {
      const Ref y{static_cast<char*>(const_cast<void*>(l.y)), l.y_type};
      const float target = has_output ? load(y, y_at * l.out + warp.output) : 0.f;
      d = warp.squared_error(warp.logit(h), target, inside, factor, mine);
    }
    if (has_output) store(Ref{static_cast<char*>(l.dz), l.dz_type}, own * l.out + warp.output, d);
    if (!l.dz_before) continue;
    if constexpr (Gradients) gradients.db += has_output ? d : 0.f;
    __syncwarp();
    if (warp.output < N) dz[warp.row_of_lane][warp.output] = has_output ? d : 0.f;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < Warp::rows; ++r) {
      if (row + r >= l.rows) continue;
      float of_row[N];
#pragma unroll
      for (int o = 0; o < N; o += 2)
        *reinterpret_cast<float2*>(of_row + o) = *reinterpret_cast<const float2*>(&dz[r][o]);
      warp.gradient_before(row + r, h[r], of_row, [&](int, const Pack<4>& stored) {
        if constexpr (Gradients) gradients.add_before(stored);
      });
      if constexpr (Gradients) gradients.add_row(h[r][0], of_row);
    }
  }
  Sums total;
  mine = block_sum(mine, shared);
  if constexpr (Gradients) hand_in<N, kRowThreads<Whole, Gradients>>(gradients, memory, l.scratch);
  if (grid_sum(l.scratch, mine, total, shared)) write_metrics(l.at, total);
}

// Adds what the blocks have written. Block b has the columns of number b of all lanes, and its warps share the parts of
// the blocks.
constexpr int kJoinWarps = 8;
template <int N>
__global__ void join_gradients_kernel(const __grid_constant__ OutputArguments l, int blocks) {
  __shared__ float sums[kJoinWarps][32];
  wait_for_previous();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, number = blockIdx.x;
  const float* from = gradient_parts(l.scratch) + 32 * number + lane;
  float sum = 0;
#pragma unroll 8
  for (int b = warp; b < blocks; b += kJoinWarps)
    sum += __ldcg(from + static_cast<int64_t>(b) * LaneGradients<N>::columns);
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0) return;
  for (int w = 1; w < kJoinWarps; ++w) sum += sums[w][lane];
  if (number == 4 * N + 4) {  // lanes 2o and 2o + 1 hold output o, for even and for odd rows
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (l.db && lane % 2 == 0 && lane / 2 < l.out) l.db[lane / 2] = sum;
  } else if (number >= 4 * N) {
    const int input = 4 * lane + number - 4 * N;
    if (l.db_before && input < l.in) l.db_before[input] = sum;
  } else {
    const int input = 4 * lane + number / N, output = number % N;
    if (input < l.in && output < l.out) l.dw[input * l.out + output] = sum;
  }
}

template <class T, int N, int Fours, bool Gradients>
int launch_rows(Queue queue, const OutputArguments& a) {
  const auto fit = [&](const void* data, DType type) {
    return packs(Tensor{const_cast<void*>(data), type, a.rows, a.in}, 4);
  };
  const bool whole = fit(a.h, kTypeOf<T>) && fit(a.saved, a.saved_type) && fit(a.dz_before, a.dz_type);
  const auto kernel = whole ? output_layer_rows_kernel<T, N, Fours, true, Gradients>
                            : output_layer_rows_kernel<T, N, Fours, false, Gradients>;
  const int threads = whole ? kRowThreads<true, Gradients> : kRowThreads<false, Gradients>;
  const size_t weights = Fours * (128 * N + 32) * sizeof(float);
  const size_t sums = Gradients ? threads / 32 * LaneGradients<N>::columns * sizeof(float) : 0;
  const int64_t blocks =
      std::min<int64_t>(ceil_div(a.rows, threads / 16), (Gradients ? 1 : 2) * int64_t{kMultiprocessors});
  allow_shared(kernel, std::max(weights, sums));
  launch(queue, kernel, blocks, threads, std::max(weights, sums), a);
  return static_cast<int>(blocks);
}

template <class T>
void launch_shaped(Queue queue, const OutputArguments& a) {
  if (a.dw) {
    const int blocks = launch_rows<T, 10, 1, true>(queue, a);
    return launch(queue, join_gradients_kernel<10>, LaneGradients<10>::numbers, 32 * kJoinWarps, 0, a, blocks);
  }
  if (a.out > 10)
    launch_rows<T, 32, 1, false>(queue, a);
  else
    a.in <= 128 ? launch_rows<T, 10, 1, false>(queue, a) : launch_rows<T, 10, 2, false>(queue, a);
}

}  // namespace

bool fits_many_rows(const OutputArguments& a) {
  const bool narrow = a.in <= 128 && a.out <= 32, few = a.in <= 256 && a.out <= 10;
  return a.rows > kManyRows && !a.join_later && (a.dw ? a.in <= 128 && a.out <= 10 : narrow || few);
}

void output_layer_of_many_rows(Queue queue, const OutputArguments& a) {
  switch (a.type) {
    case DType::F16:
      return launch_shaped<__half>(queue, a);
    case DType::Bf16:
      return launch_shaped<__nv_bfloat16>(queue, a);
    default:
      return launch_shaped<float>(queue, a);
  }
}

}  // namespace ws::cuda
