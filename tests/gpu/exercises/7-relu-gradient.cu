// A block computes 32 x 32 results, from strips of 16; a thread computes 4 x 4 of them.
constexpr int kTileRows = 32, kTileCols = 32, kStrip = 16;
constexpr int kThreads = kTileRows / 4 * (kTileCols / 4), kAcross = (dz_cols + kTileCols - 1) / kTileCols;
constexpr int kBlocks = (dz_rows + kTileRows - 1) / kTileRows * kAcross, kSharedBytes = 0;
constexpr int kDepth = a_cols;

__device__ float left(const a_t* a, int row, int k) { return row < dz_rows && k < kDepth ? float(a[row * a_cols + k]) : 0.f; }
__device__ float right(const b_t* b, int k, int col) { return k < kDepth && col < dz_cols ? float(b[col * b_cols + k]) : 0.f; }
constexpr bool kLeftAcross = true, kRightAcross = true;
#define OPERANDS const a_t* a, const b_t* b, const saved_t* saved, dz_t* dz
#define KEEP(row, col, value) if (row < dz_rows && col < dz_cols) dz[row * dz_cols + col] = dz_t(value * activation_slope(float(saved[row * dz_cols + col])))
#include "tiles.cuh"
