// What a warp of the own matrix products touches in shared memory at once lies on different banks. No GPU is needed:
// the accesses of tile_product.cuh are gone through one by one.
#include "engine/cuda/kernels/tile_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace ws::cuda {
namespace {

// The wavefronts of one access by the lanes of a warp, `bytes` each at their addresses: 128 bytes at a time, and each
// bank gives one word.
int wavefronts(const std::vector<int>& addresses, int bytes) {
  const size_t lanes_at_once = std::min<size_t>(32, 128 / static_cast<size_t>(bytes));
  int sum = 0;
  for (size_t first = 0; first < addresses.size(); first += lanes_at_once) {
    std::array<std::set<int>, 32> words_of_bank;
    for (size_t lane = first; lane < std::min(first + lanes_at_once, addresses.size()); ++lane)
      for (int at = addresses[lane]; at < addresses[lane] + bytes; at += 4)
        words_of_bank[static_cast<size_t>(at / 4 % 32)].insert(at / 4);
    sum += static_cast<int>(std::ranges::max(words_of_bank, {}, &std::set<int>::size).size());
  }
  return sum;
}

template <class Lies, class T>
int address(int row, int col) {
  return Lies::at(row, col) * static_cast<int>(sizeof(T));
}

// Copies of 16 bytes a lane, as bring_piece makes them and as quad() reads the sums.
template <class Lies, class T, int Rows, int Cols>
void expect_parts_in_a_row() {
  constexpr int n = 16 / sizeof(T), per_row = Cols / n;
  for (int first = 0; first < Rows * per_row; first += 32) {
    std::vector<int> lanes;
    for (int i = first; i < std::min(first + 32, Rows * per_row); ++i)
      lanes.push_back(address<Lies, T>(i / per_row, i % per_row * n));
    ASSERT_EQ(wavefronts(lanes, 16), (static_cast<int>(lanes.size()) + 7) / 8) << "from part " << first;
  }
}

// Every number has a place of its own.
template <class Lies, class T, int Rows, int Cols>
void expect_one_place_each() {
  std::set<int> places;
  for (int row = 0; row < Rows; ++row)
    for (int col = 0; col < Cols; ++col) {
      places.insert(Lies::at(row, col));
      ASSERT_LT(Lies::at(row, col), Rows * Lies::stride);
    }
  EXPECT_EQ(places.size(), static_cast<size_t>(Rows * Cols));
}

// ldmatrix: 16 bytes of eight rows each.
template <class Lies, int Rows, int Cols>
void expect_matrices() {
  for (int row = 0; row < Rows; row += 8)
    for (int col = 0; col < Cols; col += 8) {
      std::vector<int> lanes;
      for (int i = 0; i < 8; ++i) lanes.push_back(address<Lies, uint16_t>(row + i, col));
      ASSERT_EQ(wavefronts(lanes, 16), 1) << row << ", " << col;
    }
}

// Fragments of 4-byte numbers: eight of m or n by four of k. Across: k goes down the rows.
template <class Lies, bool Across, int Rows, int Cols>
void expect_fragments() {
  for (int row = 0; row < Rows; row += Across ? 4 : 8)
    for (int col = 0; col < Cols; col += Across ? 8 : 4) {
      std::vector<int> lanes;
      for (int lane = 0; lane < 32; ++lane)
        lanes.push_back(
            address<Lies, float>(row + (Across ? lane % 4 : lane / 4), col + (Across ? lane / 4 : lane % 4)));
      ASSERT_EQ(wavefronts(lanes, 4), 1) << row << ", " << col;
    }
}

template <class Lies, class T, bool Across, int Rows, int Cols>
void expect_piece() {
  expect_one_place_each<Lies, T, Rows, Cols>();
  expect_parts_in_a_row<Lies, T, Rows, Cols>();
  if constexpr (sizeof(T) == 2)
    expect_matrices<Lies, Rows, Cols>();
  else
    expect_fragments<Lies, Across, Rows, Cols>();
}

// meet(): two neighbours a lane, four lanes a row.
template <class C, int Rows, int Cols>
void expect_sums() {
  expect_one_place_each<C, float, Rows, Cols>();
  expect_parts_in_a_row<C, float, Rows, Cols>();
  for (int row = 0; row < Rows; row += 8)
    for (int col = 0; col < Cols; col += 8) {
      std::vector<int> lanes;
      for (int lane = 0; lane < 32; ++lane) lanes.push_back(address<C, float>(row + lane / 4, col + 2 * (lane % 4)));
      ASSERT_EQ(wavefronts(lanes, 8), 2) << row << ", " << col;
    }
}

// ColumnSums: the threads of a block go along the rows of b.
template <class B, class T, int Rows, int Cols, int Threads>
void expect_columns() {
  for (int warp = 0; warp < Threads / 32; ++warp) {
    std::vector<int> lanes;
    for (int thread = 32 * warp; thread < 32 * warp + 32; ++thread)
      lanes.push_back(address<B, T>(thread / Cols % Rows, thread % Cols) / 4 * 4);
    ASSERT_EQ(wavefronts(lanes, 4), 1) << "warp " << warp;
  }
}

template <class T, bool TA, bool TB, class Shape>
void expect_tile() {
  using P = TilePieces<T, TA, TB, Shape>;
  expect_piece<typename P::A, T, TA, P::a_rows, P::a_cols>();
  expect_piece<typename P::B, T, !TB, P::b_rows, P::b_cols>();
  expect_sums<typename P::C, Shape::BM, Shape::BN>();
  if constexpr (!TB) expect_columns<typename P::B, T, P::b_rows, P::b_cols, Shape::threads>();
}

template <class Shape>
struct TileLayout : testing::Test {};
using Shapes = testing::Types<Tile16, Tile32x16, Tile32, Tile64, NarrowTile, WideTile>;
TYPED_TEST_SUITE(TileLayout, Shapes);

TYPED_TEST(TileLayout, HasNoBankConflicts) {
  expect_tile<float, false, false, TypeParam>();
  expect_tile<float, true, false, TypeParam>();
  expect_tile<float, false, true, TypeParam>();
  expect_tile<uint16_t, false, false, TypeParam>();
  expect_tile<uint16_t, true, false, TypeParam>();
  expect_tile<uint16_t, false, true, TypeParam>();
}

TEST(TileLayoutTest, TheCountSeesAConflict) {
  EXPECT_EQ(wavefronts({0, 128, 256, 4}, 4), 3);
  EXPECT_EQ(wavefronts({0, 0, 0, 4}, 4), 1);
}

}  // namespace
}  // namespace ws::cuda
