// A block computes 64 x 64 results, from strips of 16; a thread computes 4 x 4 of them.
constexpr int kTileRows = 64, kTileCols = 64, kStrip = 16;
constexpr int kThreads = kTileRows / 4 * (kTileCols / 4), kAcross = (c_cols + kTileCols - 1) / kTileCols;
constexpr int kBlocks = (c_rows + kTileRows - 1) / kTileRows * kAcross, kSharedBytes = 0;
constexpr int kDepth = a_cols;

__device__ float left(const a_t* a, int row, int k) { return row < c_rows && k < kDepth ? float(a[row * a_cols + k]) : 0.f; }
__device__ float right(const b_t* b, int k, int col) { return k < kDepth && col < c_cols ? float(b[k * b_cols + col]) : 0.f; }

extern "C" __global__ void own_kernel(const a_t* a, const b_t* b, c_t* c) {
  __shared__ float rows[2][kStrip][kTileRows + 4], cols[2][kStrip][kTileCols + 4];
  const int top = blockIdx.x / kAcross * kTileRows, first = blockIdx.x % kAcross * kTileCols;
  const int y = threadIdx.x / (kTileCols / 4) * 4, x = threadIdx.x % (kTileCols / 4) * 4;
  constexpr int kLeft = kStrip * kTileRows / kThreads, kRight = kStrip * kTileCols / kThreads;
  float next_left[kLeft], next_right[kRight], sum[4][4] = {};
  const auto load = [&](int k0) {
#pragma unroll
    for (int n = 0; n < kLeft; ++n) {
      const int at = n * kThreads + threadIdx.x;
      next_left[n] = left(a, top + (at / kStrip), k0 + (at % kStrip));
    }
#pragma unroll
    for (int n = 0; n < kRight; ++n) {
      const int at = n * kThreads + threadIdx.x;
      next_right[n] = right(b, k0 + (at / kTileCols), first + (at % kTileCols));
    }
  };
  const auto store = [&](int into) {
#pragma unroll
    for (int n = 0; n < kLeft; ++n) {
      const int at = n * kThreads + threadIdx.x;
      rows[into][at % kStrip][at / kStrip] = next_left[n];
    }
#pragma unroll
    for (int n = 0; n < kRight; ++n) {
      const int at = n * kThreads + threadIdx.x;
      cols[into][at / kTileCols][at % kTileCols] = next_right[n];
    }
  };
  load(0);
  store(0);
  __syncthreads();
  for (int k0 = 0, now = 0; k0 < kDepth; k0 += kStrip, now ^= 1) {
    const bool more = k0 + kStrip < kDepth;
    if (more) load(k0 + kStrip);
#pragma unroll
    for (int k = 0; k < kStrip; ++k) {
      const float4 u = *reinterpret_cast<const float4*>(&rows[now][k][y]), v = *reinterpret_cast<const float4*>(&cols[now][k][x]);
      const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int c2 = 0; c2 < 4; ++c2) sum[r][c2] += us[r] * vs[c2];
    }
    if (more) store(now ^ 1);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int c2 = 0; c2 < 4; ++c2) {
      const int row = top + y + r, col = first + x + c2;
      if (row < c_rows && col < c_cols) c[row * c_cols + col] = c_t(sum[r][c2]);
    }
}
