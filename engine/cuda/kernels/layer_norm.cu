// Layer norm and its gradient. A warp has one row, which it keeps in registers if the row is narrow enough.
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kNormThreads = 256, kNormWarps = kNormThreads / 32;
constexpr int kGradThreads = 512;
constexpr int kNormEach = 4;                 // adjacent elements of a lane
constexpr int kNormAcross = 32 * kNormEach;  // columns that a warp covers at once
constexpr int kMostPacks = 8;                // of four elements that a lane keeps
constexpr float kEpsilon = static_cast<float>(kNormEpsilon);

struct NormArguments {
  Norm n;
  int64_t rows;
  int cols;
};

struct NormGradArguments {
  Tensor dy, x, gain, mean, inverse, more, dx, dgain, dshift, dbias;
  int64_t rows, rows_each;
  int cols, sums;  // column sums: of dgain, dshift and, if there are three, dbias
  float share;   // of a column: 1 / cols
  float* parts;  // the column sums of each block
  bool kept;     // the update adds them
};

__device__ __forceinline__ float pack_sum(const Pack<kNormEach>& p) { return (p.v[0] + p.v[1]) + (p.v[2] + p.v[3]); }

// The packs of a row that a lane has; Packs of them exist or lie beyond the end and are zero.
template <int Packs>
struct LaneRow {
  Pack<kNormEach> p[Packs];
  __device__ __forceinline__ void load(Ref from, int64_t row, int cols) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      const int c = i * kNormAcross + lane * kNormEach;
      p[i] = c < cols ? load_pack<kNormEach>(from, row * cols + c) : Pack<kNormEach>{};
    }
  }
  __device__ __forceinline__ void store(Ref to, int64_t row, int cols) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      const int c = i * kNormAcross + lane * kNormEach;
      if (c < cols) store_pack<kNormEach>(to, row * cols + c, p[i]);
    }
  }
};

// ---- forward ----
template <DType Type>
__device__ __forceinline__ float rounded(float v) {
  if constexpr (Type == DType::Bf16) return __bfloat162float(__float2bfloat16_rn(v));
  if constexpr (Type == DType::F16) return __half2float(__float2half_rn(v));
  return v;
}

// x becomes the sum, as the gradient will read it.
template <DType Type, int Packs>
__device__ __forceinline__ void add_more(const NormArguments& a, LaneRow<Packs>& x, int64_t row) {
  LaneRow<Packs> more;
  more.load(Ref{static_cast<char*>(a.n.more.data), Type}, row, a.cols);
#pragma unroll
  for (int i = 0; i < Packs; ++i)
#pragma unroll
    for (int j = 0; j < kNormEach; ++j) x.p[i].v[j] = rounded<Type>(x.p[i].v[j] + more.p[i].v[j]);
  x.store(Ref{static_cast<char*>(a.n.sum.data), Type}, row, a.cols);
}

template <DType Type, int Packs>
__global__ __launch_bounds__(kNormThreads) void layer_norm_kernel(const __grid_constant__ NormArguments a) {
  wait_for_previous();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kNormWarps + threadIdx.x / 32;
  if (row >= a.rows) return;
  const int lane = threadIdx.x % 32;
  LaneRow<Packs> x;
  x.load(Ref{static_cast<char*>(a.n.x.data), Type}, row, a.cols);
  if (a.n.more) add_more<Type>(a, x, row);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Packs; ++i) sum += pack_sum(x.p[i]);
  const float mean = warp_sum(sum) / static_cast<float>(a.cols);
  float squares = 0;
#pragma unroll
  for (int i = 0; i < Packs; ++i)
    if (i * kNormAcross + lane * kNormEach < a.cols)
#pragma unroll
      for (int j = 0; j < kNormEach; ++j) squares = fmaf(x.p[i].v[j] - mean, x.p[i].v[j] - mean, squares);
  const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(a.cols) + kEpsilon);
  LaneRow<Packs> gain, shift;
  gain.load(resolve(a.n.gain), 0, a.cols);
  shift.load(resolve(a.n.shift), 0, a.cols);
#pragma unroll
  for (int i = 0; i < Packs; ++i)
#pragma unroll
    for (int j = 0; j < kNormEach; ++j)
      x.p[i].v[j] = fmaf((x.p[i].v[j] - mean) * inverse, gain.p[i].v[j], shift.p[i].v[j]);
  x.store(Ref{static_cast<char*>(a.n.y.data), Type}, row, a.cols);
  if (lane != 0) return;
  static_cast<float*>(a.n.mean.data)[row] = mean;
  static_cast<float*>(a.n.inverse.data)[row] = inverse;
}

// Any width and alignment: the row is read again for each pass.
__global__ __launch_bounds__(kNormThreads) void layer_norm_any_kernel(const __grid_constant__ NormArguments a) {
  wait_for_previous();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kNormWarps + threadIdx.x / 32, at = row * a.cols;
  if (row >= a.rows) return;
  const int lane = threadIdx.x % 32;
  const Ref x = resolve(a.n.more ? a.n.sum : a.n.x), gain = resolve(a.n.gain), shift = resolve(a.n.shift),
            y = resolve(a.n.y);
  if (a.n.more)  // each lane reads only what it wrote itself
    for (int c = lane; c < a.cols; c += 32)
      store(x, at + c, load(resolve(a.n.x), at + c) + load(resolve(a.n.more), at + c));
  float sum = 0, squares = 0;
  for (int c = lane; c < a.cols; c += 32) sum += load(x, at + c);
  const float mean = warp_sum(sum) / static_cast<float>(a.cols);
  for (int c = lane; c < a.cols; c += 32) {
    const float d = load(x, at + c) - mean;
    squares = fmaf(d, d, squares);
  }
  const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(a.cols) + kEpsilon);
  for (int c = lane; c < a.cols; c += 32)
    store(y, at + c, fmaf((load(x, at + c) - mean) * inverse, load(gain, c), load(shift, c)));
  if (lane != 0) return;
  static_cast<float*>(a.n.mean.data)[row] = mean;
  static_cast<float*>(a.n.inverse.data)[row] = inverse;
}

// ---- gradient ----
// dx = inverse · (g − mean(g) − x̂ · mean(g·x̂)) with g = dy·gain, and x̂ the normalised x. `more`, if given, is added:
// the gradient that reaches x on another way. A block has adjacent rows and leaves their column sums of dy·x̂, dy and, if
// wanted, dx as parts. The update adds them, or else the last block, block 0 first.
__device__ __forceinline__ float* column_parts(const NormGradArguments& a, int64_t block) {
  return a.parts + block * a.sums * a.cols;
}

// Adds the sums of all blocks. Threads share the blocks of a column if there are enough threads. `shared`: a float for
// each thread.
template <int Threads, int AtOnce = 32>
__device__ void join_columns(const NormGradArguments& a, float* shared) {
  const int all = a.sums * a.cols, blocks = static_cast<int>(gridDim.x), thread = static_cast<int>(threadIdx.x);
  const int groups = max(1, Threads / all), each = (blocks + groups - 1) / groups;
  for (int first = 0; first < all; first += Threads) {
    const int group = groups > 1 ? thread / all : 0, c = groups > 1 ? thread % all : first + thread;
    const bool mine = group < groups && c < all;
    float sum = 0;
    if (mine) {
      const int end = min(blocks, (group + 1) * each);
#pragma unroll AtOnce
      for (int b = group * each; b < end; ++b) sum += __ldcg(a.parts + b * all + c);
    }
    shared[thread] = sum;
    __syncthreads();
    if (mine && group == 0) {
      for (int g = 1; g < groups; ++g) sum += shared[g * all + c];
      const Tensor& of_norm = c < a.cols ? a.dgain : a.dshift;
      store(resolve(c < 2 * a.cols ? of_norm : a.dbias), c % a.cols, sum);
    }
    __syncthreads();
  }
}

// What the gradient of one row reads.
template <DType Type, int Packs>
struct GradientRow {
  LaneRow<Packs> dy, x, more{};
  float mean, inverse;

  __device__ __forceinline__ void load(const NormGradArguments& a, int64_t row) {
    dy.load(Ref{static_cast<char*>(a.dy.data), Type}, row, a.cols);
    x.load(Ref{static_cast<char*>(a.x.data), Type}, row, a.cols);
    if (a.more) more.load(Ref{static_cast<char*>(a.more.data), Type}, row, a.cols);
    mean = static_cast<const float*>(a.mean.data)[row];
    inverse = static_cast<const float*>(a.inverse.data)[row];
  }
};

// A lane's share of the column sums.
template <DType Type, int Packs>
struct GradientSums {
  LaneRow<Packs> dgain{}, dshift{}, dbias{};

  // Writes dx of a row and adds the row to the sums.
  __device__ __forceinline__ void add(const NormGradArguments& a, const LaneRow<Packs>& gain,
                                      GradientRow<Type, Packs>& r, int64_t row) {
    float sum = 0, sum_x = 0;
#pragma unroll
    for (int i = 0; i < Packs; ++i)
#pragma unroll
      for (int j = 0; j < kNormEach; ++j) {
        float &x = r.x.p[i].v[j], &dy = r.dy.p[i].v[j];
        x = (x - r.mean) * r.inverse;
        dgain.p[i].v[j] = fmaf(dy, x, dgain.p[i].v[j]);
        dshift.p[i].v[j] += dy;
        dy *= gain.p[i].v[j];
        sum += dy;
        sum_x = fmaf(dy, x, sum_x);
      }
    sum = warp_sum(sum) * a.share, sum_x = warp_sum(sum_x) * a.share;
#pragma unroll
    for (int i = 0; i < Packs; ++i)
#pragma unroll
      for (int j = 0; j < kNormEach; ++j) {
        float& dx = r.more.p[i].v[j];
        dx = fmaf(r.inverse, r.dy.p[i].v[j] - sum - r.x.p[i].v[j] * sum_x, dx);
        dbias.p[i].v[j] += dx;
      }
    r.more.store(Ref{static_cast<char*>(a.dx.data), Type}, row, a.cols);
  }
};

template <DType Type, int Packs, int Threads>
__global__ __launch_bounds__(Threads) void layer_norm_grad_kernel(const __grid_constant__ NormGradArguments a,
                                                                  Scratch scratch) {
  constexpr int warps = Threads / 32;
  __shared__ __align__(16) float shared[warps][3 * kNormAcross];
  wait_for_previous();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t begin = blockIdx.x * a.rows_each, end = min(a.rows, begin + a.rows_each);
  LaneRow<Packs> gain;
  gain.load(resolve(a.gain), 0, a.cols);
  constexpr int at_once = Packs <= 3 ? 2 : 1;  // rows that a warp loads before it uses the first
  GradientSums<Type, Packs> sums;
  for (int64_t row = begin + warp; row < end; row += at_once * warps) {
    GradientRow<Type, Packs> rows[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (row + k * warps < end) rows[k].load(a, row + k * warps);
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (row + k * warps < end) sums.add(a, gain, rows[k], row + k * warps);
  }
#pragma unroll
  for (int i = 0; i < Packs; ++i) {
    *reinterpret_cast<Pack<kNormEach>*>(&shared[warp][lane * kNormEach]) = sums.dgain.p[i];
    *reinterpret_cast<Pack<kNormEach>*>(&shared[warp][kNormAcross + lane * kNormEach]) = sums.dshift.p[i];
    *reinterpret_cast<Pack<kNormEach>*>(&shared[warp][2 * kNormAcross + lane * kNormEach]) = sums.dbias.p[i];
    __syncthreads();
    for (int c = threadIdx.x; c < a.sums * kNormAcross; c += Threads) {
      const int col = i * kNormAcross + c % kNormAcross;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += shared[w][c];
      if (col < a.cols) column_parts(a, blockIdx.x)[c / kNormAcross * a.cols + col] = sum;
    }
    __syncthreads();
  }
  if (!a.kept && is_last_block(counter(scratch))) join_columns<Threads>(a, &shared[0][0]);
}

// Any width and alignment: warps write dx, then each thread adds up columns.
__global__ __launch_bounds__(kGradThreads) void layer_norm_grad_any_kernel(const __grid_constant__ NormGradArguments a,
                                                                           Scratch scratch) {
  __shared__ float shared[kGradThreads];
  wait_for_previous();
  const Ref dy = resolve(a.dy), x = resolve(a.x), gain = resolve(a.gain), more = resolve(a.more), dx = resolve(a.dx);
  const float *means = static_cast<const float*>(a.mean.data), *inverses = static_cast<const float*>(a.inverse.data);
  const int64_t begin = blockIdx.x * a.rows_each, end = min(a.rows, begin + a.rows_each);
  const int lane = threadIdx.x % 32;
  for (int64_t row = begin + threadIdx.x / 32; row < end; row += kGradThreads / 32) {
    const int64_t at = row * a.cols;
    float sum = 0, sum_x = 0;
    for (int c = lane; c < a.cols; c += 32) {
      const float g = load(dy, at + c) * load(gain, c);
      sum += g;
      sum_x = fmaf(g, (load(x, at + c) - means[row]) * inverses[row], sum_x);
    }
    sum = warp_sum(sum) / static_cast<float>(a.cols), sum_x = warp_sum(sum_x) / static_cast<float>(a.cols);
    for (int c = lane; c < a.cols; c += 32) {
      const float g = load(dy, at + c) * load(gain, c), v = (load(x, at + c) - means[row]) * inverses[row];
      store(dx, at + c, fmaf(inverses[row], g - sum - v * sum_x, a.more ? load(more, at + c) : 0.f));
    }
  }
  for (int c = threadIdx.x; c < a.cols; c += kGradThreads) {
    float dgain = 0, dshift = 0;
    for (int64_t row = begin; row < end; ++row) {
      const float d = load(dy, row * a.cols + c);
      dgain = fmaf(d, (load(x, row * a.cols + c) - means[row]) * inverses[row], dgain);
      dshift += d;
    }
    column_parts(a, blockIdx.x)[c] = dgain;
    column_parts(a, blockIdx.x)[a.cols + c] = dshift;
  }
  if (!a.kept && is_last_block(counter(scratch))) join_columns<kGradThreads, 8>(a, shared);
}

// ---- launch ----
// Packs of a row that a lane keeps. 0: the row is too wide, or does not allow packs.
int packs_of(std::initializer_list<Tensor> row_tensors, std::initializer_list<Tensor> vectors, int64_t cols) {
  for (const Tensor& t : row_tensors)
    if (!packs({t.data, t.type, t.elements() / cols, cols}, kNormEach)) return 0;
  for (const Tensor& t : vectors)
    if (!packs(t, kNormEach)) return 0;
  if (cols > kMostPacks * kNormAcross) return 0;
  for (const int packs : {1, 3, 4})
    if (cols <= packs * kNormAcross) return packs;
  return kMostPacks;
}

template <DType Type>
void launch_norm(Queue queue, const NormArguments& a, int packs) {
  const auto kernel = packs == 1   ? layer_norm_kernel<Type, 1>
                      : packs == 3 ? layer_norm_kernel<Type, 3>
                      : packs == 4 ? layer_norm_kernel<Type, 4>
                                   : layer_norm_kernel<Type, kMostPacks>;
  launch(queue, kernel, ceil_div(a.rows, kNormWarps), kNormThreads, 0, a);
}

template <DType Type>
void launch_norm_grad(Queue queue, Scratch scratch, const NormGradArguments& a, int64_t blocks, int packs) {
  if (packs == 1)
    return launch(queue, layer_norm_grad_kernel<Type, 1, kGradThreads>, blocks, kGradThreads, 0, a, scratch);
  constexpr int some = kGradThreads / 4 * 3, fewer = kGradThreads / 2;  // wide rows need the registers
  if (packs == 3) return launch(queue, layer_norm_grad_kernel<Type, 3, some>, blocks, some, 0, a, scratch);
  if (packs == 4) return launch(queue, layer_norm_grad_kernel<Type, 4, some>, blocks, some, 0, a, scratch);
  launch(queue, layer_norm_grad_kernel<Type, kMostPacks, fewer>, blocks, fewer, 0, a, scratch);
}

}  // namespace

void layer_norm(Queue queue, const Norm& n) {
  const NormArguments a{n, n.x.elements() / n.gain.cols, static_cast<int>(n.gain.cols)};
  const auto has_type = [&](const Tensor& t) { return !t || t.type == n.x.type; };
  const bool one_type = has_type(n.y) && has_type(n.more) && has_type(n.sum);
  const Tensor &more = n.more ? n.more : n.x, &sum = n.sum ? n.sum : n.x;
  const int packs = one_type ? packs_of({n.x, n.y, more, sum}, {n.gain, n.shift}, n.gain.cols) : 0;
  if (packs == 0) return launch(queue, layer_norm_any_kernel, ceil_div(a.rows, kNormWarps), kNormThreads, 0, a);
  if (n.x.type == DType::Bf16) return launch_norm<DType::Bf16>(queue, a, packs);
  if (n.x.type == DType::F16) return launch_norm<DType::F16>(queue, a, packs);
  launch_norm<DType::F32>(queue, a, packs);
}

void layer_norm_grad(Queue queue, Scratch scratch, const NormGrad& n) {
  constexpr int64_t most_blocks = kMultiprocessors, rows_of_a_block = 32;
  const int64_t cols = n.gain.cols, rows = n.x.elements() / cols;
  const bool one_type = n.dy.type == n.x.type && n.dx.type == n.x.type && (!n.more || n.more.type == n.x.type);
  const int packs = one_type ? packs_of({n.dy, n.x, n.dx, n.more ? n.more : n.dx}, {n.gain}, cols) : 0;
  NormGradArguments a{n.dy, n.x, n.gain, n.mean, n.inverse, n.more, n.dx, n.dgain, n.dshift, n.dbias};
  a.sums = n.dbias && packs > 0 ? 3 : 2;
  const int64_t step = a.sums * cols, space = std::max<int64_t>(1, (kScratchBytes / 2 - kCounterBytes) / (4 * step));
  const int64_t wanted = std::clamp<int64_t>(ceil_div(rows, rows_of_a_block), 1, std::min(most_blocks, space));
  const int64_t rows_each = ceil_div(rows, wanted), blocks = ceil_div(rows, rows_each);
  a.rows = rows, a.rows_each = rows_each, a.cols = static_cast<int>(cols), a.share = 1.f / static_cast<float>(cols);
  a.kept = n.kept && n.kept->memory_left().bytes >= 4 * step * blocks;
  a.parts = static_cast<float*>(a.kept ? n.kept->memory_left().data : static_cast<char*>(scratch.data) + kCounterBytes);
  if (a.kept) {
    const void* const gradients[] = {n.dgain.data, n.dshift.data, n.dbias.data};
    for (int i = 0; i < a.sums; ++i) n.kept->keep(gradients[i], {a.parts + i * cols, step, static_cast<int>(blocks)});
  }
  if (packs == 0) {
    launch(queue, layer_norm_grad_any_kernel, blocks, kGradThreads, 0, a, scratch);
    if (n.dbias) column_sum(queue, scratch, {n.dx.data, n.dx.type, rows, cols}, n.dbias, n.kept);
    return;
  }
  if (n.x.type == DType::Bf16) return launch_norm_grad<DType::Bf16>(queue, scratch, a, blocks, packs);
  if (n.x.type == DType::F16) return launch_norm_grad<DType::F16>(queue, scratch, a, blocks, packs);
  launch_norm_grad<DType::F32>(queue, scratch, a, blocks, packs);
}

}  // namespace ws::cuda
