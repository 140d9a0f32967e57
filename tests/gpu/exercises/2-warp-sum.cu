// A block adds up 32 columns: each warp every 32nd row, then one warp for each column.
constexpr int kThreads = 1024, kBlocks = (db_cols + 31) / 32, kSharedBytes = 0;

extern "C" __global__ void own_kernel(const dz_t* dz, db_t* db) {
  __shared__ float part[32][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = blockIdx.x * 32 + lane;
  float sum = 0;
  if (col < db_cols)
    for (int row = warp; row < dz_rows; row += 32) sum += float(dz[row * db_cols + col]);
  part[warp][lane] = sum;
  __syncthreads();
  float all = part[lane][warp];
  for (int apart = 16; apart > 0; apart /= 2) all += __shfl_down_sync(0xffffffffu, all, apart);
  const int mine = blockIdx.x * 32 + warp;
  if (lane == 0 && mine < db_cols) db[mine] = db_t(all);
}
