// Decides how a matrix product is computed.
#include "engine/cuda/kernels/blas.h"
#include "engine/cuda/kernels/small_gemm.h"

namespace ws::cuda {
namespace {

constexpr double kSmallFlops = 1.2e9;  // below it, cuBLASLt's larger tiles leave most of the GPU idle
constexpr int64_t kLongSum = 2048;     // such a long sum should be split over multiprocessors, as cuBLASLt does
constexpr int64_t kFewRows = 64;       // the weights are read once: bandwidth is the limit, not arithmetic
constexpr int64_t kManyRows = 4096;    // rows of the result: enough for cuBLASLt's larger tiles in every case
constexpr int64_t kManyCols = 96;      // with so many columns already at kManyRows: 3.9 instead of 7.5 µs for 4096×384
constexpr int64_t kManyWeights = 1 << 22;  // from this size on cuBLASLt reads them faster
constexpr int64_t kWarpgroupRows = 2048, kWarpgroupCols = 64;
constexpr double kWarpgroupFlops = 2e9;
constexpr int64_t kManyOddResults = 1 << 18;  // results with odd rows, which our kernels read element by element

int64_t sum_length(const Product& p) { return p.transpose_a ? p.a.rows : p.a.cols; }
int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// True if some row does not begin at a 16-byte boundary.
bool has_odd_rows(const Product& p) {
  const auto odd = [](const Tensor& t) { return t.cols * size_of(t.type) % 16 != 0; };
  return odd(p.a) || odd(p.b) || odd(p.c);
}

// True for a few columns with short sums: one thread per result is faster than any tile.
bool thin(const Product& p) { return p.c.cols <= 4 && sum_length(p) <= 16; }

double flops_of(const Product& p) {
  return 2.0 * static_cast<double>(p.c.rows) * static_cast<double>(p.c.cols) * static_cast<double>(sum_length(p));
}

bool small(const Product& p) {
  if (p.transpose_a && p.transpose_b) return false;
  const int64_t most_rows = p.c.cols < kManyCols ? kManyRows : kManyRows - 1;
  if (p.c.rows > most_rows || (p.transpose_a && sum_length(p) > kLongSum)) return false;
  if (p.c.cols * sum_length(p) >= kManyWeights) return false;
  if (has_odd_rows(p) && p.c.rows * p.c.cols > kManyOddResults) return false;
  return flops_of(p) < kSmallFlops || p.c.rows <= kFewRows;
}

// True for many rows of 16 bits with sums so short that cuBLASLt's launch and its gap cost more than the product.
// The results may be in fp32, like the logits.
bool suits_warpgroups(const Product& p) {
  const auto moves_whole = [](const Tensor& t) {
    return t.cols * size_of(t.type) % 16 == 0 && reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
  };
  if (p.transpose_a || size_of(p.a.type) != 2 || p.accumulate != Accumulate::Fp32) return false;
  if (p.c.rows < kWarpgroupRows || p.c.cols < kWarpgroupCols || flops_of(p) > kWarpgroupFlops) return false;
  const bool in_fp32 = p.c.type == DType::F32;
  if (in_fp32 && p.epilogue != Epilogue::None && p.epilogue != Epilogue::Bias) return false;
  const auto fits = [&](const Tensor& t) { return !t || (t.type == p.a.type && moves_whole(t)); };
  const auto fits_results = [&](const Tensor& t) { return in_fp32 ? !t || moves_whole(t) : fits(t); };
  return fits(p.a) && fits(p.b) && fits(p.saved) && fits_results(p.c) && fits_results(p.bias) && runs_warpgroups();
}

std::string_view tile_name(SmallTile tile) {
  constexpr std::string_view kNames[] = {"64×64", "32×32", "32×16", "16×16"};
  return kNames[static_cast<size_t>(tile)];
}

}  // namespace

SmallTile small_tile(int64_t m, int64_t n) {
  constexpr int64_t enough = 96;  // blocks
  if (ceil_of(m, 64) * ceil_of(n, 64) >= enough) return SmallTile::T64;
  if (ceil_of(m, 32) * ceil_of(n, 32) >= enough) return SmallTile::T32;
  if (ceil_of(m, 32) * ceil_of(n, 16) >= enough) return SmallTile::T32x16;
  return SmallTile::T16;
}

Engine engine_of(Matmul how, const Product& p) {
  switch (how) {
    case Matmul::Naive:
      return Engine::Naive;
    case Matmul::Tiled:
      return Engine::Tiled;
    case Matmul::Library:
      if (thin(p)) return Engine::Naive;
      return suits_warpgroups(p) ? Engine::Warpgroups : small(p) ? Engine::Small : Engine::Library;
  }
  return Engine::Library;
}

bool takes_views(Matmul how, const Product& p) { return engine_of(how, p) != Engine::Library; }

std::string describe(Matmul how, const Product& p) {
  switch (engine_of(how, p)) {
    case Engine::Naive:
      return "own kernel, one thread a result";
    case Engine::Tiled:
      return "own kernel, 16×16 tiles in shared memory";
    case Engine::Small:
      return "own kernel, " + std::string(tile_name(small_tile(p.c.rows, p.c.cols))) +
             (p.precision == Precision::Fp32 ? " tiles" : " tiles on tensor cores");
    case Engine::Warpgroups:
      return "own kernel on warpgroups' tensor cores";
    case Engine::Library:
      return blas_epilogue_found(p) == p.epilogue ? "cuBLASLt" : "cuBLASLt, then own kernels for the epilogue";
  }
  return "";
}

void prepare(Blas& blas, Matmul how, const Product& p) {
  if (engine_of(how, p) == Engine::Library) blas_prepare(blas, p);
}

void matmul(Queue queue, Blas& blas, Scratch scratch, Matmul how, const Product& p) {
  const Engine engine = engine_of(how, p);
  if (engine == Engine::Library) return blas_product(queue, blas, scratch, p);
  if (engine == Engine::Small) return small_gemm(queue, p);
  if (engine == Engine::Warpgroups) return gemm_by_warpgroups(queue, p);
  engine == Engine::Naive ? naive_gemm(queue, p) : tiled_gemm(queue, p);
  if (p.epilogue == Epilogue::BiasGrad) column_sum(queue, scratch, p.b, p.bias_grad, p.kept);
}

}  // namespace ws::cuda
