// The tiles of our own matrix products and the layout of their numbers in shared memory. It contains only arithmetic,
// so the tests can check every access without a GPU.
#pragma once

#ifdef __CUDACC__
#define WS_ANYWHERE __host__ __device__ __forceinline__
#else
#define WS_ANYWHERE
#endif

namespace ws::cuda {

// A tile of BM × BN, computed by WM × WN warps. Each piece of k is split over WK warps. K4 and K2: k of one stage for
// 4-byte and 2-byte numbers.
template <int BM_, int BN_, int WM_, int WN_, int WK_, int K4, int K2, int Stages>
struct TileShape {
  static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, WK = WK_, stages = Stages;
  static constexpr int threads = 32 * WM * WN * WK;
  template <class T>
  static constexpr int BK = sizeof(T) == 4 ? K4 : K2;
};

using Tile16 = TileShape<16, 16, 1, 1, 8, 128, 128, 4>;
using Tile32x16 = TileShape<32, 16, 1, 1, 8, 128, 128, 4>;
using Tile32 = TileShape<32, 32, 1, 1, 8, 128, 128, 3>;
using Tile64 = TileShape<64, 64, 2, 2, 2, 32, 64, 4>;
using NarrowTile = TileShape<32, 32, 1, 1, 8, 64, 128, 3>;  // few weights: warps share the sum over the batch
using WideTile = TileShape<64, 128, 2, 4, 1, 32, 32, 2>;    // many weights: each warp updates its own from registers

// Layout of a piece in shared memory without bank conflicts: what a warp accesses at once lies on different banks. Such
// an access is 128 consecutive bytes, or with Parts = 1 the same 16 bytes of eight rows, or with Parts = 2 the same 32
// bytes of four rows. Rows of at least 128 bytes are padded. In shorter rows the 16-byte parts are permuted,
// differently in each line of 128 bytes.
template <class T, int COLS, int Parts>
struct Layout {
  static constexpr unsigned part = 16 / sizeof(T), parts = COLS / part, rows_a_line = parts < 8 ? 8 / parts : 1;
  static constexpr int stride = COLS + (parts < 8 ? 0 : Parts * part);
  static_assert(COLS % part == 0 && (parts & (parts - 1)) == 0 && parts >= 2 * Parts);
  WS_ANYWHERE static int at(int row, int col) {
    if constexpr (parts >= 8) return row * stride + col;
    const unsigned swap = static_cast<unsigned>(row) / rows_a_line * Parts % parts;
    return row * stride + static_cast<int>(static_cast<unsigned>(col) ^ swap * part);
  }
};

// The pieces of a and b that are in shared memory at once, and the sums. 4-byte numbers across k are read from four
// rows at once, all others from eight.
template <class T, bool TA, bool TB, class Shape>
struct TilePieces {
  static constexpr int BK = Shape::template BK<T>;
  static constexpr int a_rows = TA ? BK : Shape::BM, a_cols = TA ? Shape::BM : BK;
  static constexpr int b_rows = TB ? Shape::BN : BK, b_cols = TB ? BK : Shape::BN;
  using A = Layout<T, a_cols, sizeof(T) == 4 && TA ? 2 : 1>;
  using B = Layout<T, b_cols, sizeof(T) == 4 && !TB ? 2 : 1>;
  using C = Layout<float, Shape::BN, 2>;
};

}  // namespace ws::cuda
