// A block computes 32 x 32 results, from strips of 16; a thread computes 4 x 4 of them.
constexpr int kTileRows = 32, kTileCols = 32, kStrip = 16;
constexpr int kThreads = kTileRows / 4 * (kTileCols / 4), kAcross = (c_cols + kTileCols - 1) / kTileCols;
constexpr int kBlocks = (c_rows + kTileRows - 1) / kTileRows * kAcross, kSharedBytes = 0;
constexpr int kDepth = a_rows;

__device__ float left(const a_t* a, int row, int k) { return row < c_rows && k < kDepth ? float(a[k * a_cols + row]) : 0.f; }
__device__ float right(const b_t* b, int k, int col) { return k < kDepth && col < c_cols ? float(b[k * b_cols + col]) : 0.f; }
constexpr bool kLeftAcross = false, kRightAcross = false;
#define OPERANDS const a_t* a, const b_t* b, c_t* c
#define KEEP(row, col, value) if (row < c_rows && col < c_cols) c[row * c_cols + col] = c_t(value)
#include "tiles.cuh"
