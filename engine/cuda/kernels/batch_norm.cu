// Batch norm over the rows of a matrix, with its gradient, each fused with a following activation and with a max pool of
// 2 × 2 after that. Shapes: x, dx (rows, c); y, dy (rows or windows, c); everything else (1, c). Sums are made in strips
// of rows, and the strips are added in order.
#include "engine/cuda/kernels/packs.cuh"
#include "engine/cuda/kernels/patches.h"

namespace ws::cuda {
namespace {

constexpr int kNormThreads = 256, kColumns = 8, kMostNormPacks = 8;

// A block has a strip of rows and up to 64 columns; a thread has eight adjacent columns and every lanes-th row. With a
// pool, a row is one of its windows.
struct Strips {
  int64_t rows;
  int c, packs, lanes, column_blocks, strips, rows_each;
  int width = 0;       // of the picture below a pool
  Divisor by_windows;  // in a row of them
};

// The row of x where a window of Side × Side begins. The pictures are as high as their windows, so they follow each other
// like the rows of one picture.
template <int Side>
__device__ __forceinline__ int64_t first_row(const Strips& s, int64_t window) {
  if constexpr (Side == 1) return window;
  const int row = s.by_windows.divide(static_cast<int>(window));
  return Side * (static_cast<int64_t>(row) * (s.width - static_cast<int>(s.by_windows.by)) + window);
}

struct Mine {
  int strip, lane, col, count;  // count 0: no column
  int64_t row, end;
};
// Backwards: the first blocks have the last rows. The kernel before has just used them, so they are still in the cache.
template <bool Backwards = false>
__device__ __forceinline__ Mine mine(const Strips& s) {
  const int from_first = blockIdx.x / s.column_blocks, block = blockIdx.x % s.column_blocks;
  const int strip = Backwards ? s.strips - 1 - from_first : from_first;
  const int lane = threadIdx.x / s.packs, col = (block * s.packs + threadIdx.x % s.packs) * kColumns;
  const int64_t first = static_cast<int64_t>(strip) * s.rows_each;
  return {strip, lane, col, max(0, min(kColumns, s.c - col)), first + lane, min(first + s.rows_each, s.rows)};
}

__device__ __forceinline__ Pack<kColumns> columns(const Tensor& t, const Mine& m) {
  return load_some<kColumns>(resolve(t), m.col, m.count, false);
}

// Calls use(row, load(row)) for the thread's rows, and loads `Ahead` rows before it uses the first.
template <int Ahead, class Load, class Use>
__device__ __forceinline__ void each_row(const Strips& s, const Mine& m, Load load, Use use) {
  int64_t row = m.row;
  for (; row + (Ahead - 1) * s.lanes < m.end; row += Ahead * s.lanes) {
    decltype(load(row)) rows[Ahead];
#pragma unroll
    for (int i = 0; i < Ahead; ++i) rows[i] = load(row + i * s.lanes);
#pragma unroll
    for (int i = 0; i < Ahead; ++i) use(row + i * s.lanes, rows[i]);
  }
  for (; row < m.end; row += s.lanes) use(row, load(row));
}
template <int Side>
constexpr int kAhead = Side == 1 ? 4 : 1;

// Blocks of a multiprocessor: what the registers allow.
template <class T>
constexpr int kNormBlocks = sizeof(Eight<T>) == 16 ? 2 : 1;

// Adds two sums per column over the block's rows, and writes them to parts[strip][2][c].
__device__ __forceinline__ void write_sums(const Strips& s, const Mine& m, const Pack<kColumns>& a, const Pack<kColumns>& b,
                                           float* parts) {
  __shared__ float shared[2][kNormThreads * kColumns];
  const int width = s.packs * kColumns, at = m.lane * width + threadIdx.x % s.packs * kColumns;
#pragma unroll
  for (int j = 0; j < kColumns; ++j) shared[0][at + j] = a.v[j], shared[1][at + j] = b.v[j];
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * width; i += kNormThreads) {
    const int which = i / width, col = i % width, to = blockIdx.x % s.column_blocks * width + col;
    float sum = 0;
    for (int lane = 0; lane < s.lanes; ++lane) sum += shared[which][lane * width + col];
    if (to < s.c) parts[(static_cast<int64_t>(m.strip) * 2 + which) * s.c + to] = sum;
  }
}

// Sums of x - pivot and of its square. The pivot, the first row, keeps the square small if the mean is large.
template <class T>
__global__ __launch_bounds__(kNormThreads, 2 * kNormBlocks<T>) void sums_kernel(const __grid_constant__ BatchNormalization n, Strips s,
                                                        float* parts) {
  wait_for_previous();
  const Mine m = mine(s);
  const Ref x = resolve(n.x);
  Pack<kColumns> sum{}, squares{};
  if (m.count > 0) {
    const Pack<kColumns> pivot = columns(n.x, m);
    const auto load = [&](int64_t row) { return Eight<T>(x, row * s.c + m.col, m.count); };
    each_row<kAhead<1>>(s, m, load, [&](int64_t, const Eight<T>& row) {
      const Pack<kColumns> v = row.floats();
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float d = v.v[j] - pivot.v[j];
        sum.v[j] += d, squares.v[j] = fmaf(d, d, squares.v[j]);
      }
    });
  }
  write_sums(s, m, sum, squares, parts);
}

// The same from what the convolution left. x has `rows` rows, and a row of the strips is a part of the moments.
__global__ __launch_bounds__(kNormThreads) void moments_kernel(const __grid_constant__ BatchNormalization n, Strips s,
                                                               int64_t rows, float* parts) {
  wait_for_previous();
  const Mine m = mine(s);
  Pack<kColumns> sum{}, squares{};
  if (m.count > 0) {
    const Pack<kColumns> pivot = columns(n.x, m);
    const Ref from{reinterpret_cast<char*>(n.moments.data), DType::F32};
    for (int64_t part = m.row; part < m.end; part += s.lanes) {
      const auto of = [&](int which) { return load_pack<kColumns>(from, (3 * part + which) * s.c + m.col); };
      const Pack<kColumns> a = of(0), b = of(1), other = of(2);
      const auto count = static_cast<float>(min(n.moments.rows, rows - part * n.moments.rows));
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float d = other.v[j] - pivot.v[j];
        sum.v[j] += fmaf(count, d, a.v[j]);
        squares.v[j] += fmaf(d, fmaf(count, d, 2.f * a.v[j]), b.v[j]);
      }
    }
  }
  write_sums(s, m, sum, squares, parts);
}

// The totals of a column, in the threads of warp 0. Eight warps add runs of strips.
struct Totals {
  float a = 0, b = 0;
};
__device__ __forceinline__ Totals totals(const Strips& s, const float* parts, int col) {
  __shared__ Totals shared[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int each = (s.strips + 7) / 8, end = min(s.strips, (warp + 1) * each);
  Totals t;
  if (col < s.c) {
#pragma unroll 8
    for (int i = warp * each; i < end; ++i) {
      const float* from = parts + static_cast<int64_t>(i) * 2 * s.c + col;
      t.a += from[0], t.b += from[s.c];
    }
  }
  shared[warp][lane] = t;
  __syncthreads();
  if (warp != 0) return t;
  for (int i = 1; i < 8; ++i) t.a += shared[i][lane].a, t.b += shared[i][lane].b;
  return t;
}

__device__ __forceinline__ void move_running(const Tensor& t, int col, float batch) {
  constexpr auto share = static_cast<float>(kRunningMomentum);
  const Ref r = resolve(t);
  store(r, col, (1.f - share) * load(r, col) + share * batch);
}

__global__ void statistics_kernel(const __grid_constant__ BatchNormalization n, Strips s, const float* parts) {
  wait_for_previous();
  const int col = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x) % 32;
  const Totals t = totals(s, parts, col);
  if (threadIdx.x >= 32 || col >= s.c) return;
  const auto rows = static_cast<float>(s.rows);
  const float shifted = t.a / rows, mean = load(resolve(n.x), col) + shifted;
  const float variance = fmaxf(t.b / rows - shifted * shifted, 0.f);
  store(resolve(n.mean), col, mean);
  store(resolve(n.inverse), col, 1.f / sqrtf(variance + static_cast<float>(kNormEpsilon)));
  move_running(n.running_mean, col, mean);
  move_running(n.running_var, col, variance * rows / fmaxf(rows - 1.f, 1.f));
}

// A number as a buffer of T, or of `type`, holds it.
template <class T>
__device__ __forceinline__ float stored(DType type, float v) {
  if constexpr (std::is_same_v<T, AnyType>) {
    if (type == DType::F16) return __half2float(__float2half_rn(v));
    return type == DType::Bf16 ? __bfloat162float(__float2bfloat16_rn(v)) : v;
  } else {
    return static_cast<float>(static_cast<T>(v));
  }
}

template <class T>
__device__ __forceinline__ Pack<kColumns> as_stored(DType type, Pack<kColumns> v) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j) v.v[j] = stored<T>(type, v.v[j]);
  return v;
}

// What makes f((x - mean)·gain·inverse + shift) of x.
struct Scaling {
  Pack<kColumns> mean, factor, shift;
  Activation activation;

  __device__ __forceinline__ Pack<kColumns> centred(Pack<kColumns> v) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) v.v[j] -= mean.v[j];
    return v;
  }
  // Takes centred numbers.
  __device__ __forceinline__ Pack<kColumns> result(Pack<kColumns> v) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) v.v[j] = fmaf(v.v[j], factor.v[j], shift.v[j]);
    return activated(activation, v);
  }
};

// A window of x.
template <class T, int Side>
struct Pixels {
  Eight<T> v[Side * Side];
  Pixels() = default;
  __device__ __forceinline__ Pixels(const Strips& s, const Mine& m, Ref x, int64_t window) {
    const int64_t first = first_row<Side>(s, window);
#pragma unroll
    for (int i = 0; i < Side * Side; ++i)
      v[i] = Eight<T>(x, (first + i / Side * s.width + i % Side) * s.c + m.col, m.count);
  }
};

// The largest result of a window, which pixel has it, and that pixel's centred number. The first of equals wins, and a
// number that is none. Pixels are compared as they would be stored.
template <class T, int Side>
struct Winner {
  Pack<kColumns> centred, result;
  int pixel[kColumns] = {};
  __device__ __forceinline__ Winner(const Scaling& scaling, DType type, const Pixels<T, Side>& pixels) {
    centred = scaling.centred(pixels.v[0].floats());
    result = scaling.result(centred);
    if constexpr (Side > 1) result = as_stored<T>(type, result);
#pragma unroll
    for (int i = 1; i < Side * Side; ++i) {
      const Pack<kColumns> c = scaling.centred(pixels.v[i].floats()), r = as_stored<T>(type, scaling.result(c));
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
        if (r.v[j] > result.v[j] || r.v[j] != r.v[j]) result.v[j] = r.v[j], centred.v[j] = c.v[j], pixel[j] = i;
    }
  }
};

// Running: with the running statistics.
template <class T, bool Running, int Side>
__global__ __launch_bounds__(kNormThreads, kNormBlocks<T>) void normalize_kernel(const __grid_constant__ BatchNormalization n, Strips s) {
  wait_for_previous();
  const Mine m = mine<true>(s);
  if (m.count == 0) return;
  const Ref x = resolve(n.x), y = resolve(n.y);
  Scaling scaling{columns(Running ? n.running_mean : n.mean, m), columns(n.gain, m), columns(n.shift, m), n.activation};
  const Pack<kColumns> spread = columns(Running ? n.running_var : n.inverse, m);
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
    scaling.factor.v[j] *= Running ? 1.f / sqrtf(spread.v[j] + static_cast<float>(kNormEpsilon)) : spread.v[j];
  const auto load = [&](int64_t row) { return Pixels<T, Side>(s, m, x, row); };
  each_row<kAhead<Side>>(s, m, load, [&](int64_t row, const Pixels<T, Side>& pixels) {
    Eight<T>::store(y, row * s.c + m.col, Winner<T, Side>(scaling, y.type, pixels).result, m.count);
  });
}

// What the gradient of a row or of a window needs.
template <class T, int Side>
struct Given {
  Eight<T> dy;
  Pixels<T, Side> x;
};
template <class T, int Side>
__device__ __forceinline__ Given<T, Side> given(const BatchNormGradient& g, const Strips& s, const Mine& m, int64_t row) {
  Given<T, Side> out;
  out.dy = Eight<T>(resolve(g.dy), row * s.c + m.col, m.count), out.x = Pixels<T, Side>(s, m, resolve(g.x), row);
  return out;
}

__device__ __forceinline__ Scaling scaling_of(const BatchNormGradient& g, const Mine& m, const Pack<kColumns>& inverse) {
  Scaling out{columns(g.mean, m), columns(g.gain, m), g.shift ? columns(g.shift, m) : Pack<kColumns>{}, g.activation};
#pragma unroll
  for (int j = 0; j < kColumns; ++j) out.factor.v[j] *= inverse.v[j];
  return out;
}

// dy times the slope of the activation.
template <class T, int Side>
__device__ __forceinline__ Pack<kColumns> gradient(const Given<T, Side>& from, Activation kind,
                                                   const Winner<T, Side>& winner) {
  Pack<kColumns> dy = from.dy.floats();
  if (kind == Activation::None) return dy;
  const Pack<kColumns> slope = activation_slope(kind, winner.result);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) dy.v[j] *= slope.v[j];
  return dy;
}

// Sums of dy and of dy·(x normalized).
template <class T, int Side>
__global__ __launch_bounds__(kNormThreads, kNormBlocks<T>) void gradient_sums_kernel(const __grid_constant__ BatchNormGradient g, Strips s,
                                                                 float* parts) {
  wait_for_previous();
  const Mine m = mine(s);
  Pack<kColumns> sum{}, products{};
  if (m.count > 0) {
    const Pack<kColumns> inverse = columns(g.inverse, m);
    const Scaling scaling = scaling_of(g, m, inverse);
    const auto load = [&](int64_t row) { return given<T, Side>(g, s, m, row); };
    each_row<kAhead<Side>>(s, m, load, [&](int64_t, const Given<T, Side>& row) {
      const Winner<T, Side> winner(scaling, g.dy.type, row.x);
      const Pack<kColumns> dy = gradient(row, g.activation, winner);
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
        sum.v[j] += dy.v[j], products.v[j] = fmaf(dy.v[j], winner.centred.v[j], products.v[j]);
    });
#pragma unroll
    for (int j = 0; j < kColumns; ++j) products.v[j] *= inverse.v[j];
  }
  write_sums(s, m, sum, products, parts);
}

__global__ void join_gradients_kernel(const __grid_constant__ BatchNormGradient g, Strips s, const float* parts) {
  wait_for_previous();
  const int col = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x) % 32;
  const Totals t = totals(s, parts, col);
  if (threadIdx.x >= 32 || col >= s.c) return;
  store(resolve(g.dshift), col, t.a);
  store(resolve(g.dgain), col, t.b);
}

// dx = gain·inverse·(dy - (dshift + normalized x · dgain) / rows)
template <class T, int Side>
__global__ __launch_bounds__(kNormThreads, kNormBlocks<T>) void data_gradient_kernel(const __grid_constant__ BatchNormGradient g,
                                                                 Strips s) {
  wait_for_previous();
  const Mine m = mine<true>(s);
  if (m.count == 0) return;
  const Ref dx = resolve(g.dx);
  const Pack<kColumns> inverse = columns(g.inverse, m);
  const Scaling scaling = scaling_of(g, m, inverse);
  Pack<kColumns> offset = columns(g.dshift, m), slope = columns(g.dgain, m);
  const float share = 1.f / (static_cast<float>(s.rows) * Side * Side);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) offset.v[j] *= share, slope.v[j] *= share * inverse.v[j];
  const auto load = [&](int64_t row) { return given<T, Side>(g, s, m, row); };
  each_row<kAhead<Side>>(s, m, load, [&](int64_t row, const Given<T, Side>& from) {
    const Winner<T, Side> winner(scaling, g.dy.type, from.x);
    const Pack<kColumns> dy = gradient(from, g.activation, winner);
    const int64_t first = first_row<Side>(s, row);
#pragma unroll
    for (int i = 0; i < Side * Side; ++i) {
      Pack<kColumns> out = scaling.centred(from.x.v[i].floats());
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float mine_of_dy = winner.pixel[j] == i ? dy.v[j] : 0.f;
        out.v[j] = scaling.factor.v[j] * (mine_of_dy - offset.v[j] - out.v[j] * slope.v[j]);
      }
      Eight<T>::store(dx, (first + i / Side * s.width + i % Side) * s.c + m.col, out, m.count);
    }
  });
}

// `rows`: of x, or windows. `blocks`: about how many; each thread should have several rows.
Strips strips_of(int64_t rows, const Window& pool, int64_t c, int64_t blocks) {
  Strips s{};
  s.c = static_cast<int>(c), s.rows = rows;
  s.width = static_cast<int>(pool.w), s.by_windows = Divisor(std::max<int64_t>(pool.ow, 1));
  s.packs = 1;
  while (s.packs < kMostNormPacks && s.packs * kColumns < c) s.packs *= 2;
  s.lanes = kNormThreads / s.packs;
  s.column_blocks = static_cast<int>(ceil_div(c, s.packs * kColumns));
  const int64_t most = std::min(ceil_div(blocks, s.column_blocks), ceil_div(s.rows, 4 * s.lanes));
  s.rows_each = static_cast<int>(ceil_div(ceil_div(s.rows, std::max<int64_t>(most, 1)), s.lanes)) * s.lanes;
  s.strips = static_cast<int>(ceil_div(s.rows, s.rows_each));
  return s;
}

// Strips whose sums fit into the scratch.
Strips strips_for_sums(int64_t rows, const Window& pool, int64_t c) {
  const int64_t fitting = (kScratchBytes / 2 - kCounterBytes) / 8 / c;  // strips
  const int64_t columns = ceil_div(c, kMostNormPacks * kColumns);
  return strips_of(rows, pool, c, std::min<int64_t>(4 * kMultiprocessors, std::max<int64_t>(fitting, 1) * columns));
}

Strips strips_for_rows(int64_t rows, const Window& pool, int64_t c) {
  return strips_of(rows, pool, c, 8 * kMultiprocessors);
}

int64_t blocks_of(const Strips& s) { return static_cast<int64_t>(s.strips) * s.column_blocks; }
float* parts_of(Scratch s) { return reinterpret_cast<float*>(static_cast<char*>(s.data) + kCounterBytes); }

void check_pool(const Window& pool) {
  if (pool.kh != 0 && !tiles_by_two(pool)) throw Failure("a norm takes only max pools of 2 × 2 into its kernel");
}

}  // namespace

void batch_norm(Queue queue, Scratch scratch, const BatchNormalization& n) {
  check_pool(n.pool);
  const int64_t c = n.gain.cols, of_x = n.x.elements() / c;
  Strips sums = strips_for_sums(n.moments ? ceil_div(of_x, n.moments.rows) : of_x, {}, c);
  const Strips rows = strips_for_rows(n.y.elements() / c, n.pool, c);
  if (n.moments) launch(queue, moments_kernel, blocks_of(sums), kNormThreads, 0, n, sums, of_x, parts_of(scratch));
  with_type(c, {n.x, n.y}, [&]<class T>(T) {
    if (!n.moments) launch(queue, sums_kernel<T>, blocks_of(sums), kNormThreads, 0, n, sums, parts_of(scratch));
    sums.rows = of_x;
    launch(queue, statistics_kernel, ceil_div(c, 32), 256, 0, n, sums, parts_of(scratch));
    const auto normalize = n.pool.kh > 0 ? normalize_kernel<T, false, 2> : normalize_kernel<T, false, 1>;
    launch(queue, normalize, blocks_of(rows), kNormThreads, 0, n, rows);
  });
}

void batch_norm_apply(Queue queue, const BatchNormalization& n) {
  const int64_t c = n.gain.cols;
  const Strips rows = strips_for_rows(n.x.elements() / c, {}, c);
  with_type(c, {n.x, n.y}, [&]<class T>(T) {
    launch(queue, normalize_kernel<T, true, 1>, blocks_of(rows), kNormThreads, 0, n, rows);
  });
}

void batch_norm_grad(Queue queue, Scratch scratch, const BatchNormGradient& g) {
  check_pool(g.pool);
  const int64_t c = g.gain.cols, windows = g.dy.elements() / c;
  const Strips sums = strips_for_sums(windows, g.pool, c), rows = strips_for_rows(windows, g.pool, c);
  with_type(c, {g.x, g.dy, g.dx}, [&]<class T>(T) {
    const bool pools = g.pool.kh > 0;
    const auto add = pools ? gradient_sums_kernel<T, 2> : gradient_sums_kernel<T, 1>;
    const auto finish = pools ? data_gradient_kernel<T, 2> : data_gradient_kernel<T, 1>;
    launch(queue, add, blocks_of(sums), kNormThreads, 0, g, sums, parts_of(scratch));
    launch(queue, join_gradients_kernel, ceil_div(c, 32), 256, 0, g, sums, parts_of(scratch));
    launch(queue, finish, blocks_of(rows), kNormThreads, 0, g, rows);
  });
}

}  // namespace ws::cuda
