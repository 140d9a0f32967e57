// Matrix products and weight gradients in 16 bits on Hopper's warpgroup instructions. This file is compiled for sm_90a
// alone.
#include "engine/cuda/kernels/patches.cuh"
#include "engine/cuda/kernels/small_gemm.cuh"
#include "engine/cuda/kernels/warpgroup_product.cuh"
#include "engine/cuda/kernels/weight_gradients.cuh"

namespace ws::cuda {
namespace {

// b as the product reads it: (k, n), or (n, k) if it is transposed.
template <class Product, bool TB>
__device__ __forceinline__ auto lines_of_b(const GemmArguments& g, int col0) {
  using T = typename Product::T;
  const T* b = static_cast<const T*>(g.b);
  if constexpr (TB)
    return Lines<T, true, Product::BN, Product::BK, Product::threads>(b, g.n, g.k, col0, 0);
  else
    return Lines<T, false, Product::BK, Product::BN, Product::threads>(b, g.k, g.n, 0, col0);
}

// What follows the product. With gelu known, an element takes few enough instructions to unroll. Each kind has kernels of
// its own, because a block runs only once through its code and waits for all of it.
enum class Finish : uint8_t { Bias, Float, Gelu, GeluGrad, Any };  // Float: as Bias, with results in fp32

template <Math M>
constexpr DType kTypeOf = M == Math::Bf16 ? DType::Bf16 : DType::F16;

template <Finish F>
__device__ __forceinline__ Pack<4> finished(const GemmArguments& g, Pack<4> v, const Pack<4>& kept) {
  if constexpr (F == Finish::Gelu || F == Finish::GeluGrad) {
#pragma unroll
    for (int e = 0; e < 4; ++e) v.v[e] *= F == Finish::Gelu ? gelu_share(v.v[e]) : gelu_slope(kept.v[e]);
  } else if constexpr (F == Finish::Any) {
    if (g.epilogue != Epilogue::ActivateGrad) return activated(g.activation, v);
    const Pack<4> slope = activation_slope(g.activation, kept);
#pragma unroll
    for (int e = 0; e < 4; ++e) v.v[e] *= slope.v[e];
  }
  return v;
}

// The epilogue. A thread's groups of four lie below each other; it requests what it reads of several at once. All
// operands have the type of the product, if the results are not in fp32.
template <Finish F, class Product>
__device__ __forceinline__ void finish_tile(const GemmArguments& g, const Product& product, int row0, int col0,
                                            const Pack<4>& bias) {
  constexpr int at_once = F == Finish::Any ? 1 : 8, below = Product::threads / (Product::BN / 4);
  static_assert(Product::quads_per_thread % at_once == 0);
  const int2 mine = Product::quad_at(0);
  if (col0 + mine.y >= g.n) return;
  const Ref saved{static_cast<char*>(g.saved), kTypeOf<Product::math>},
      c{static_cast<char*>(g.c), F == Finish::Float ? DType::F32 : saved.type};
  const bool bends_back = F == Finish::GeluGrad || (F == Finish::Any && g.epilogue == Epilogue::ActivateGrad);
#pragma unroll 1
  for (int i = 0; i < Product::quads_per_thread; i += at_once) {
    const int row = mine.x + i * below, left = g.m - row0 - row;
    const int64_t at = static_cast<int64_t>(row0 + row) * g.n + col0 + mine.y, next = static_cast<int64_t>(below) * g.n;
    Pack<4> kept[at_once];
    if (bends_back) {
#pragma unroll
      for (int j = 0; j < at_once; ++j)
        if (j * below < left) kept[j] = load_pack<4>(saved, at + j * next);
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      if (j * below >= left) break;
      Pack<4> v = product.quad(row + j * below, mine.y);
#pragma unroll
      for (int e = 0; e < 4; ++e) v.v[e] += bias.v[e];
      if (g.saved && !bends_back) store_pack<4>(saved, at + j * next, v);
      store_pack<4>(c, at + j * next, finished<F>(g, v, kept[j]));
    }
  }
}

template <class Product, bool TB, Finish F>
__global__ __launch_bounds__(Product::threads, Product::threads > 128 ? 2 : 3) void warpgroup_gemm_kernel(
    const __grid_constant__ GemmArguments g) {
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  const int row0 = blockIdx.x / g.tiles_n * Product::BM, col0 = blockIdx.x % g.tiles_n * Product::BN;
  Product product(memory);
  auto b = lines_of_b<Product, TB>(g, col0);
  if (g.settled) product.begin_b(b, col0, g.k);
  wait_for_previous();
  if (!g.settled) product.begin_b(b, col0, g.k);
  const T* data = static_cast<const T*>(g.a) + (g.clock ? (g.clock->row + g.view_row) * g.k : 0);
  Lines<T, true, Product::BM, Product::BK, Product::threads> a(data, g.m, g.k, row0, 0);
  product.begin_a(a, row0, g.k);
  const Pack<4> bias = early_bias<true, Product>(g, col0);
  product.run(a, b, row0, col0, g.k, [](const T*, int) {});
  product.meet();
  finish_tile<F>(g, product, row0, col0, bias);
}

template <Math M, bool TB, Finish F, int Columns, int Groups>
void launch_tiles_of(Queue queue, GemmArguments g) {
  using Product = WarpgroupProduct<M, false, TB, Columns, Groups>;
  const auto kernel = warpgroup_gemm_kernel<Product, TB, F>;
  const size_t shared = Product::shared_bytes(g.k);
  g.tiles_n = static_cast<int>(ceil_div(g.n, Columns));
  allow_shared(kernel, shared);
  launch(queue, kernel, ceil_div(g.m, Product::BM) * g.tiles_n, Product::threads, shared, g);
}

// The largest tile that gives every multiprocessor work.
template <Math M, bool TB, Finish F>
void launch_finished(Queue queue, const GemmArguments& g) {
  constexpr int64_t enough = kMultiprocessors;
  if (ceil_div(g.m, 128) * ceil_div(g.n, 128) >= enough) return launch_tiles_of<M, TB, F, 128, 2>(queue, g);
  if (ceil_div(g.m, 128) * ceil_div(g.n, 64) >= enough) return launch_tiles_of<M, TB, F, 64, 2>(queue, g);
  launch_tiles_of<M, TB, F, 64, 1>(queue, g);
}

template <Math M, bool TB>
void launch_gemm_of(Queue queue, const GemmArguments& g) {
  const bool gelu = g.activation == Activation::Gelu;
  if (g.c_type == DType::F32) return launch_finished<M, TB, Finish::Float>(queue, g);
  if (g.epilogue == Epilogue::None || g.epilogue == Epilogue::Bias) return launch_finished<M, TB, Finish::Bias>(queue, g);
  constexpr Finish usual = TB ? Finish::GeluGrad : Finish::Gelu;
  if (gelu && g.epilogue == (TB ? Epilogue::ActivateGrad : Epilogue::BiasActivate))
    return launch_finished<M, TB, usual>(queue, g);
  launch_finished<M, TB, Finish::Any>(queue, g);
}

template <Math M>
void gemm_of(Queue queue, const Product& p) {
  const GemmArguments g = gemm_arguments(p);
  p.transpose_b ? launch_gemm_of<M, true>(queue, g) : launch_gemm_of<M, false>(queue, g);
}

}  // namespace

void gemm_by_warpgroups(Queue queue, const Product& p) {
  p.precision == Precision::Bf16 ? gemm_of<Math::Bf16>(queue, p) : gemm_of<Math::Fp16>(queue, p);
}

void weight_gradients_by_warpgroups(Queue queue, Precision precision, std::span<const WeightGradient> layers) {
  if (precision == Precision::Bf16)
    return launch_weight_gradients<WarpgroupProduct<Math::Bf16, true, false, 128>, true>(queue, layers);
  launch_weight_gradients<WarpgroupProduct<Math::Fp16, true, false, 128>, true>(queue, layers);
}

}  // namespace ws::cuda
