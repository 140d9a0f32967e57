// A block of eight warps computes 64 x 128 results, a warp 32 x 32 of them, from strips of 32 columns.
#include <mma.h>
using namespace nvcuda;

constexpr int kTileRows = 64, kTileCols = 128, kStrip = 32;
constexpr int kThreads = 256, kAcross = (c_cols + kTileCols - 1) / kTileCols;
constexpr int kBlocks = (c_rows + kTileRows - 1) / kTileRows * kAcross, kSharedBytes = 0;

// Eight values at once where a row is a multiple of eight, else one by one.
template <class T, int kRows, int kCols>
struct Strip {
  static constexpr bool kWide = kCols % 8 == 0;
  __device__ static uint4 load(const T* from, int row, int col) {
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (row >= kRows) return eight;
    if constexpr (kWide) {
      if (col < kCols) eight = *reinterpret_cast<const uint4*>(from + row * kCols + col);
    } else {
      T values[8];
      for (int n = 0; n < 8; ++n) values[n] = col + n < kCols ? from[row * kCols + col + n] : T(0.f);
      memcpy(&eight, values, sizeof eight);
    }
    return eight;
  }
};

extern "C" __global__ void own_kernel(const a_t* a, const b_t* b, c_t* c) {
  __shared__ __align__(16) a_t rows[2][kTileRows][kStrip + 8];
  __shared__ __align__(16) b_t cols[2][kStrip][kTileCols + 8];
  __shared__ float results[8][16][20];
  const int top = blockIdx.x / kAcross * kTileRows, first = blockIdx.x % kAcross * kTileCols;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, y = warp / 4 * 32, x = warp % 4 * 32;
  const int a_row = threadIdx.x / 4, a_col = threadIdx.x % 4 * 8;                       // 64 rows of 32 values
  const int b_row = threadIdx.x / 16, b_col = threadIdx.x % 16 * 8;                     // twice 16 rows of 128 values
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
  for (auto& line : sum)
    for (auto& each : line) wmma::fill_fragment(each, 0.f);
  uint4 next_a, next_b[2];
  const auto load = [&](int k0) {
    next_a = Strip<a_t, c_rows, a_cols>::load(a, top + a_row, k0 + a_col);
    for (int n = 0; n < 2; ++n) next_b[n] = Strip<b_t, a_cols, c_cols>::load(b, k0 + b_row + 16 * n, first + b_col);
  };
  const auto store = [&](int into) {
    *reinterpret_cast<uint4*>(&rows[into][a_row][a_col]) = next_a;
    for (int n = 0; n < 2; ++n) *reinterpret_cast<uint4*>(&cols[into][b_row + 16 * n][b_col]) = next_b[n];
  };
  load(0);
  store(0);
  __syncthreads();
  for (int k0 = 0, now = 0; k0 < a_cols; k0 += kStrip, now ^= 1) {
    const bool more = k0 + kStrip < a_cols;
    if (more) load(k0 + kStrip);
#pragma unroll
    for (int k = 0; k < kStrip; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, a_t, wmma::row_major> u[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, b_t, wmma::row_major> v[2];
      for (int n = 0; n < 2; ++n) {
        wmma::load_matrix_sync(u[n], &rows[now][y + 16 * n][k], kStrip + 8);
        wmma::load_matrix_sync(v[n], &cols[now][k][x + 16 * n], kTileCols + 8);
      }
      for (int r = 0; r < 2; ++r)
        for (int n = 0; n < 2; ++n) wmma::mma_sync(sum[r][n], u[r], v[n], sum[r][n]);
    }
    if (more) store(now ^ 1);
    __syncthreads();
  }
  for (int r = 0; r < 2; ++r)
    for (int n = 0; n < 2; ++n) {
      wmma::store_matrix_sync(&results[warp][0][0], sum[r][n], 20, wmma::mem_row_major);
      __syncwarp();
      for (int at = lane; at < 256; at += 32) {
        const int row = top + y + 16 * r + at / 16, col = first + x + 16 * n + at % 16;
        if (row < c_rows && col < c_cols) c[row * c_cols + col] = c_t(results[warp][at / 16][at % 16]);
      }
      __syncwarp();
    }
}
