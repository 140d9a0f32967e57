// Batch norm over the rows of a matrix, with its gradient, each fused with a following activation. Shapes: x, y, dy, dx
// (rows, c); everything else (1, c). Sums are made in strips of rows, and the strips are added in order.
#include "engine/cuda/kernels/packs.cuh"

namespace ws::cuda {
namespace {

constexpr int kNormThreads = 256, kColumns = 8, kMostNormPacks = 8;

// A block has a strip of rows and up to 64 columns; a thread has eight adjacent columns and every lanes-th row.
struct Strips {
  int64_t rows;
  int c, packs, lanes, column_blocks, strips, rows_each;
};

struct Mine {
  int strip, lane, col, count;  // count 0: no column
  int64_t row, end;
};
__device__ __forceinline__ Mine mine(const Strips& s) {
  const int strip = blockIdx.x / s.column_blocks, block = blockIdx.x % s.column_blocks;
  const int lane = threadIdx.x / s.packs, col = (block * s.packs + threadIdx.x % s.packs) * kColumns;
  const int64_t first = static_cast<int64_t>(strip) * s.rows_each;
  return {strip, lane, col, max(0, min(kColumns, s.c - col)), first + lane, min(first + s.rows_each, s.rows)};
}

__device__ __forceinline__ Pack<kColumns> columns(const Tensor& t, const Mine& m) {
  return load_some<kColumns>(resolve(t), m.col, m.count, false);
}

// Calls use(index of the first element, load(that index)) for the thread's rows, and loads four rows ahead of it.
template <class Load, class Use>
__device__ __forceinline__ void each_row(const Strips& s, const Mine& m, Load load, Use use) {
  constexpr int ahead = 4;
  const int64_t step = static_cast<int64_t>(s.lanes) * s.c;
  int64_t at = m.row * s.c + m.col, end = m.end * s.c;
  for (; at + (ahead - 1) * step < end; at += ahead * step) {
    decltype(load(at)) rows[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) rows[i] = load(at + i * step);
#pragma unroll
    for (int i = 0; i < ahead; ++i) use(at + i * step, rows[i]);
  }
  for (; at < end; at += step) use(at, load(at));
}

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
__global__ __launch_bounds__(kNormThreads) void sums_kernel(const __grid_constant__ BatchNormalization n, Strips s,
                                                        float* parts) {
  wait_for_previous();
  const Mine m = mine(s);
  const Ref x = resolve(n.x);
  Pack<kColumns> sum{}, squares{};
  if (m.count > 0) {
    const Pack<kColumns> pivot = columns(n.x, m);
    const auto load = [&](int64_t at) { return Eight<T>(x, at, m.count); };
    each_row(s, m, load, [&](int64_t, const Eight<T>& row) {
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

// y = f((x - mean)·gain·inverse + shift). Running: with the running statistics.
template <class T, bool Running>
__global__ __launch_bounds__(kNormThreads) void normalize_kernel(const __grid_constant__ BatchNormalization n, Strips s) {
  wait_for_previous();
  const Mine m = mine(s);
  if (m.count == 0) return;
  const Ref x = resolve(n.x), y = resolve(n.y);
  const Pack<kColumns> mean = columns(Running ? n.running_mean : n.mean, m), shift = columns(n.shift, m);
  Pack<kColumns> factor = columns(n.gain, m);
  const Pack<kColumns> spread = columns(Running ? n.running_var : n.inverse, m);
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
    factor.v[j] *= Running ? 1.f / sqrtf(spread.v[j] + static_cast<float>(kNormEpsilon)) : spread.v[j];
  const auto load = [&](int64_t at) { return Eight<T>(x, at, m.count); };
  each_row(s, m, load, [&](int64_t at, const Eight<T>& row) {
    Pack<kColumns> v = row.floats();
#pragma unroll
    for (int j = 0; j < kColumns; ++j) v.v[j] = fmaf(v.v[j] - mean.v[j], factor.v[j], shift.v[j]);
    Eight<T>::store(y, at, activated(n.activation, v), m.count);
  });
}

// What the gradient of eight elements needs.
template <class T>
struct Given {
  Eight<T> dy, x, y;
};
template <class T>
__device__ __forceinline__ Given<T> given(const BatchNormGradient& g, const Mine& m, int64_t at) {
  Given<T> out;
  out.dy = Eight<T>(resolve(g.dy), at, m.count), out.x = Eight<T>(resolve(g.x), at, m.count);
  if (g.saved) out.y = Eight<T>(resolve(g.saved), at, m.count);
  return out;
}

// dy times the slope of the activation.
template <class T>
__device__ __forceinline__ Pack<kColumns> gradient(const BatchNormGradient& g, const Given<T>& from) {
  Pack<kColumns> dy = from.dy.floats();
  if (g.activation == Activation::None) return dy;
  const Pack<kColumns> slope = activation_slope(g.activation, from.y.floats());
#pragma unroll
  for (int j = 0; j < kColumns; ++j) dy.v[j] *= slope.v[j];
  return dy;
}

// Sums of dy and of dy·(x normalized).
template <class T>
__global__ __launch_bounds__(kNormThreads) void gradient_sums_kernel(const __grid_constant__ BatchNormGradient g, Strips s,
                                                                 float* parts) {
  wait_for_previous();
  const Mine m = mine(s);
  Pack<kColumns> sum{}, products{};
  if (m.count > 0) {
    const Pack<kColumns> mean = columns(g.mean, m), inverse = columns(g.inverse, m);
    const auto load = [&](int64_t at) { return given<T>(g, m, at); };
    each_row(s, m, load, [&](int64_t, const Given<T>& row) {
      const Pack<kColumns> dy = gradient(g, row), v = row.x.floats();
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        sum.v[j] += dy.v[j];
        products.v[j] = fmaf(dy.v[j], (v.v[j] - mean.v[j]) * inverse.v[j], products.v[j]);
      }
    });
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
template <class T>
__global__ __launch_bounds__(kNormThreads) void data_gradient_kernel(const __grid_constant__ BatchNormGradient g,
                                                                 Strips s) {
  wait_for_previous();
  const Mine m = mine(s);
  if (m.count == 0) return;
  const Ref dx = resolve(g.dx);
  const Pack<kColumns> mean = columns(g.mean, m), inverse = columns(g.inverse, m);
  Pack<kColumns> factor = columns(g.gain, m), offset = columns(g.dshift, m), slope = columns(g.dgain, m);
  const float share = 1.f / static_cast<float>(s.rows);
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
    factor.v[j] *= inverse.v[j], offset.v[j] *= share, slope.v[j] *= share * inverse.v[j];
  const auto load = [&](int64_t at) { return given<T>(g, m, at); };
  each_row(s, m, load, [&](int64_t at, const Given<T>& row) {
    const Pack<kColumns> v = row.x.floats();
    Pack<kColumns> out = gradient(g, row);
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      out.v[j] = factor.v[j] * (out.v[j] - offset.v[j] - (v.v[j] - mean.v[j]) * slope.v[j]);
    Eight<T>::store(dx, at, out, m.count);
  });
}

// `blocks`: about how many; each thread should have several rows.
Strips strips_of(const Tensor& x, int64_t c, int64_t blocks) {
  Strips s{};
  s.c = static_cast<int>(c), s.rows = x.elements() / c;
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
Strips strips_for_sums(const Tensor& x, int64_t c) {
  const int64_t room = (kScratchBytes / 2 - kCounterBytes) / 8 / c;  // strips
  const int64_t columns = ceil_div(c, kMostNormPacks * kColumns);
  return strips_of(x, c, std::min<int64_t>(4 * kMultiprocessors, std::max<int64_t>(room, 1) * columns));
}

Strips strips_for_rows(const Tensor& x, int64_t c) { return strips_of(x, c, 8 * kMultiprocessors); }

int64_t blocks_of(const Strips& s) { return static_cast<int64_t>(s.strips) * s.column_blocks; }
float* parts_of(Scratch s) { return reinterpret_cast<float*>(static_cast<char*>(s.data) + kCounterBytes); }

}  // namespace

void batch_norm(Queue queue, Scratch scratch, const BatchNormalization& n) {
  const int64_t c = n.gain.cols;
  const Strips sums = strips_for_sums(n.x, c), rows = strips_for_rows(n.x, c);
  with_type(c, {n.x, n.y}, [&]<class T>(T) {
    launch(queue, sums_kernel<T>, blocks_of(sums), kNormThreads, 0, n, sums, parts_of(scratch));
    launch(queue, statistics_kernel, ceil_div(c, 32), 256, 0, n, sums, parts_of(scratch));
    launch(queue, normalize_kernel<T, false>, blocks_of(rows), kNormThreads, 0, n, rows);
  });
}

void batch_norm_apply(Queue queue, const BatchNormalization& n) {
  const Strips rows = strips_for_rows(n.x, n.gain.cols);
  with_type(n.gain.cols, {n.x, n.y}, [&]<class T>(T) {
    launch(queue, normalize_kernel<T, true>, blocks_of(rows), kNormThreads, 0, n, rows);
  });
}

void batch_norm_grad(Queue queue, Scratch scratch, const BatchNormGradient& g) {
  const int64_t c = g.gain.cols;
  const Strips sums = strips_for_sums(g.x, c), rows = strips_for_rows(g.x, c);
  with_type(c, {g.x, g.dy, g.saved, g.dx}, [&]<class T>(T) {
    launch(queue, gradient_sums_kernel<T>, blocks_of(sums), kNormThreads, 0, g, sums, parts_of(scratch));
    launch(queue, join_gradients_kernel, ceil_div(c, 32), 256, 0, g, sums, parts_of(scratch));
    launch(queue, data_gradient_kernel<T>, blocks_of(rows), kNormThreads, 0, g, rows);
  });
}

}  // namespace ws::cuda
