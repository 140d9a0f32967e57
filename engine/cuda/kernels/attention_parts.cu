// The parts of attention as kernels of their own, with the scores in memory: products for each head, and softmax.
#include <cmath>

#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

// One head's matrix in a wider one: its rows begin `stride` numbers after each other.
template <class T>
struct HeadOperand {
  const T* data;
  int rows, cols, stride;
};

// Copies a piece as for a whole matrix. Whole: the rows and the columns of the head fit accesses of 16 bytes.
template <bool Whole, class Lies, class T, int ROWS, int COLS, int THREADS>
__device__ __forceinline__ void bring_piece(T* shared, const HeadOperand<T>& from, int row0, int col0) {
  constexpr int n = Whole ? 16 / sizeof(T) : 1, per_row = COLS / n;
#pragma unroll 4
  for (int i = threadIdx.x; i < ROWS * per_row; i += THREADS) {
    const int r = i / per_row, c = i % per_row * n;
    const bool inside = row0 + r < from.rows && col0 + c < from.cols;
    const int64_t at = inside ? static_cast<int64_t>(row0 + r) * from.stride + col0 + c : 0;
    if constexpr (Whole)
      copy_async<16>(shared + Lies::at(r, c), from.data + at, inside);
    else if constexpr (sizeof(T) == 4)
      copy_async<4>(shared + Lies::at(r, c), from.data + at, inside);
    else
      shared[Lies::at(r, c)] = inside ? from.data[at] : T(0.f);
  }
}

namespace {

constexpr int kRowThreads = 256, kRowWarps = kRowThreads / 32;

// Where the matrices of the heads lie in an operand, in numbers.
struct HeadPlaces {
  char* data;
  int64_t text, head;  // from one text, and from one head, to the next
  int first, stride;
};

struct HeadArguments {
  HeadPlaces a, b, c;
  int m, n, k, heads, tiles, tiles_n;
  float scale;
  DType type;
};

__device__ __forceinline__ int64_t place_of(const HeadPlaces& p, int64_t text, int64_t head) {
  return text * p.text + head * p.head + p.first;
}

template <Math M, bool TA, bool TB, class Shape, bool Whole>
__global__ __launch_bounds__(Shape::threads) void head_product_kernel(const __grid_constant__ HeadArguments g) {
  using Product = TileProduct<M, TA, TB, Shape, Whole>;
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  const int set = blockIdx.x / g.tiles, tile = blockIdx.x % g.tiles, text = set / g.heads, head = set % g.heads;
  const int row0 = tile / g.tiles_n * Shape::BM, col0 = tile % g.tiles_n * Shape::BN;
  const HeadOperand<T> a{reinterpret_cast<const T*>(g.a.data) + place_of(g.a, text, head), TA ? g.k : g.m, TA ? g.m : g.k,
                         g.a.stride};
  const HeadOperand<T> b{reinterpret_cast<const T*>(g.b.data) + place_of(g.b, text, head), TB ? g.n : g.k, TB ? g.k : g.n,
                         g.b.stride};
  Product product(memory);
  wait_for_previous();
  product.begin_b(b, col0, g.k);
  product.begin_a(a, row0, g.k);
  product.run(a, b, row0, col0, g.k, [](const T*, int) {});
  product.meet();
  const Ref c{g.c.data, g.type};
#pragma unroll
  for (int i = 0; i < Product::quads_per_thread; ++i) {
    const int2 q = Product::quad_at(i);
    const int row = row0 + q.x, col = col0 + q.y;
    if (q.x >= Shape::BM || row >= g.m || col >= g.n) continue;
    Pack<4> v = product.quad(q.x, q.y);
#pragma unroll
    for (int j = 0; j < 4; ++j) v.v[j] *= g.scale;
    store_some<4>(c, place_of(g.c, text, head) + static_cast<int64_t>(row) * g.c.stride + col, v, min(4, g.n - col), Whole);
  }
}

template <Math M, bool TA, bool TB, class Shape, bool Whole>
void launch_heads(Queue queue, HeadArguments g, int64_t sets) {
  const auto kernel = head_product_kernel<M, TA, TB, Shape, Whole>;
  const size_t shared = TileProduct<M, TA, TB, Shape, Whole>::shared_bytes(g.k);
  g.tiles_n = static_cast<int>(ceil_div(g.n, Shape::BN));
  g.tiles = static_cast<int>(ceil_div(g.m, Shape::BM)) * g.tiles_n;
  allow_shared(kernel, shared);
  launch(queue, kernel, sets * g.tiles, Shape::threads, shared, g);
}

template <Math M, bool TA, bool TB>
void launch_sized(Queue queue, const HeadArguments& g, int64_t sets, bool whole) {
  if (whole)
    launch_heads<M, TA, TB, Tile64, true>(queue, g, sets);
  else
    launch_heads<M, TA, TB, Tile16, false>(queue, g, sets);
}

template <Math M>
void launch_of(Queue queue, const HeadArguments& g, const HeadMultiplication& p, int64_t sets, bool whole) {
  if (p.transpose_a) return launch_sized<M, true, false>(queue, g, sets, whole);
  if (p.transpose_b) return launch_sized<M, false, true>(queue, g, sets, whole);
  launch_sized<M, false, false>(queue, g, sets, whole);
}

HeadPlaces places(const Heads& h, HeadPart part, const Tensor& t) {
  char* const data = static_cast<char*>(t.data);
  const int64_t width = h.heads * h.head_width;
  if (part == HeadPart::Scores) return {data, h.heads * h.time * h.time, h.time * h.time, 0, static_cast<int>(h.time)};
  if (part == HeadPart::Output) return {data, h.time * width, h.head_width, 0, static_cast<int>(width)};
  return {data, h.time * 3 * width, h.head_width, static_cast<int>(static_cast<int64_t>(part) * width), static_cast<int>(3 * width)};
}

// Each warp has one row of scores, of a symbol that sees `seen` symbols.
template <class F>
__device__ __forceinline__ void for_score_rows(const Tensor& scores, F row) {
  const int64_t r = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / 32;
  if (r < scores.rows) row(r * scores.cols, static_cast<int>(r % scores.cols) + 1, static_cast<int>(threadIdx.x % 32));
}

__global__ void causal_softmax_kernel(Tensor scores, Tensor shares) {
  wait_for_previous();
  const Ref from = resolve(scores), to = resolve(shares);
  for_score_rows(scores, [&](int64_t at, int seen, int lane) {
    float top = -INFINITY, sum = 0;
    for (int c = lane; c < seen; c += 32) top = fmaxf(top, load(from, at + c));
    top = warp_max(top);
    for (int c = lane; c < seen; c += 32) sum += expf(load(from, at + c) - top);
    sum = warp_sum(sum);
    for (int c = lane; c < scores.cols; c += 32) store(to, at + c, c < seen ? expf(load(from, at + c) - top) / sum : 0.f);
  });
}

__global__ void causal_softmax_grad_kernel(Tensor dshares, Tensor shares, Tensor dscores) {
  wait_for_previous();
  const Ref dp = resolve(dshares), p = resolve(shares), ds = resolve(dscores);
  for_score_rows(shares, [&](int64_t at, int seen, int lane) {
    float mean = 0;
    for (int c = lane; c < seen; c += 32) mean = fmaf(load(p, at + c), load(dp, at + c), mean);
    mean = warp_sum(mean);
    for (int c = lane; c < shares.cols; c += 32)
      store(ds, at + c, c < seen ? load(p, at + c) * (load(dp, at + c) - mean) : 0.f);
  });
}

}  // namespace

void head_product(Queue queue, Precision precision, const HeadMultiplication& p) {
  const Heads& h = p.heads;
  const auto columns = [&](HeadPart part) { return static_cast<int>(part == HeadPart::Scores ? h.time : h.head_width); };
  HeadArguments g{places(h, p.parts.a, p.a), places(h, p.parts.b, p.b), places(h, p.parts.c, p.c)};
  const int time = static_cast<int>(h.time);
  g.m = time, g.n = columns(p.parts.c), g.k = p.transpose_a ? time : columns(p.parts.a);
  g.heads = static_cast<int>(h.heads), g.type = p.c.type;
  g.scale = p.parts.scaled ? 1.f / std::sqrt(static_cast<float>(h.head_width)) : 1.f;
  const int64_t n = 16 / size_of(p.a.type);
  const auto begins_whole = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data) % 16 == 0; };
  const bool whole = h.time % n == 0 && h.head_width % n == 0 && begins_whole(p.a) && begins_whole(p.b) && begins_whole(p.c);
  const Tensor& scores = p.parts.a == HeadPart::Scores ? p.a : p.c;
  const int64_t sets = scores.elements() / (h.time * h.time);
  with_math(precision, [&]<Math M>() { launch_of<M>(queue, g, p, sets, whole); });
}

void causal_softmax(Queue queue, const Tensor& scores, const Tensor& shares) {
  launch(queue, causal_softmax_kernel, ceil_div(scores.rows, kRowWarps), kRowThreads, 0, scores, shares);
}

void causal_softmax_grad(Queue queue, const Tensor& dshares, const Tensor& shares, const Tensor& dscores) {
  launch(queue, causal_softmax_grad_kernel, ceil_div(shares.rows, kRowWarps), kRowThreads, 0, dshares, shares, dscores);
}

}  // namespace ws::cuda
