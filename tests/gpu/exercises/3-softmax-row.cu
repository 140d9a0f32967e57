constexpr int kThreads = 128, kBlocks = (z_rows + kThreads - 1) / kThreads, kSharedBytes = 0;

extern "C" __global__ void own_kernel(const z_t* z, p_t* p) {
  __shared__ float rows[kThreads * (z_cols + (z_cols % 2 == 0))];
  constexpr int kStride = z_cols + (z_cols % 2 == 0);  // an odd stride has no bank conflict
  const int first = blockIdx.x * kThreads, count = min(kThreads, z_rows - first);
  for (int at = threadIdx.x; at < count * z_cols; at += kThreads) rows[at / z_cols * kStride + at % z_cols] = float(z[first * z_cols + at]);
  __syncthreads();
  if (threadIdx.x < count) {
    float* row = rows + threadIdx.x * kStride;
    float values[z_cols], most = -INFINITY, sum = 0;
#pragma unroll
    for (int col = 0; col < z_cols; ++col) values[col] = row[col], most = fmaxf(most, values[col]);
#pragma unroll
    for (int col = 0; col < z_cols; ++col) values[col] = expf(values[col] - most), sum += values[col];
#pragma unroll
    for (int col = 0; col < z_cols; ++col) row[col] = values[col] / sum;
  }
  __syncthreads();
  for (int at = threadIdx.x; at < count * z_cols; at += kThreads) p[first * z_cols + at] = p_t(rows[at / z_cols * kStride + at % z_cols]);
}
