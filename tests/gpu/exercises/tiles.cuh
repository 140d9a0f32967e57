// The kernel of a tiled product. The exercise before it says what its operands are: kTileRows × kTileCols results a block, from strips
// of kStrip; OPERANDS, left() and right(); kLeftAcross and kRightAcross: neighbours lie along k; and KEEP for each result.
extern "C" __global__ void own_kernel(OPERANDS) {
  __shared__ float rows[2][kStrip][kTileRows + 4], cols[2][kStrip][kTileCols + 4];
  const int top = blockIdx.x / kAcross * kTileRows, first = blockIdx.x % kAcross * kTileCols;
  const int y = threadIdx.x / (kTileCols / 4) * 4, x = threadIdx.x % (kTileCols / 4) * 4;
  constexpr int kLeft = kStrip * kTileRows / kThreads, kRight = kStrip * kTileCols / kThreads;
  float next_left[kLeft], next_right[kRight], sum[4][4] = {};
  const auto load = [&](int k0) {
#pragma unroll
    for (int n = 0; n < kLeft; ++n) {
      const int at = n * kThreads + threadIdx.x;
      next_left[n] = left(a, top + (kLeftAcross ? at / kStrip : at % kTileRows), k0 + (kLeftAcross ? at % kStrip : at / kTileRows));
    }
#pragma unroll
    for (int n = 0; n < kRight; ++n) {
      const int at = n * kThreads + threadIdx.x;
      next_right[n] = right(b, k0 + (kRightAcross ? at % kStrip : at / kTileCols), first + (kRightAcross ? at / kStrip : at % kTileCols));
    }
  };
  const auto store = [&](int into) {
#pragma unroll
    for (int n = 0; n < kLeft; ++n) {
      const int at = n * kThreads + threadIdx.x;
      rows[into][kLeftAcross ? at % kStrip : at / kTileRows][kLeftAcross ? at / kStrip : at % kTileRows] = next_left[n];
    }
#pragma unroll
    for (int n = 0; n < kRight; ++n) {
      const int at = n * kThreads + threadIdx.x;
      cols[into][kRightAcross ? at % kStrip : at / kTileCols][kRightAcross ? at / kStrip : at % kTileCols] = next_right[n];
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
      KEEP(row, col, sum[r][c2]);
    }
}
