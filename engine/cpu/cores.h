// The work of an op, shared out over the processor's cores in pieces. Nobody waits for a thread that has not begun a piece: on a
// busy machine the caller does all of them itself.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace ws::cpu {

// How many threads share the work of the caller: OMP_NUM_THREADS, or as many as there are processors for this process. One inside of
// a piece.
int64_t cores();
// Ranks already share the processor. One core also gives the same bits in each process. Holds while at least one caller wants it.
void keep_to_one_core(bool wanted);

// While it lives, numbers below the smallest normal one count as zero on this thread, as on its helpers. The velocities of units that
// learn nothing more end there, and many processors take a hundred cycles for each such number.
class SmallIsZero {
 public:
  SmallIsZero();
  ~SmallIsZero();
  SmallIsZero(const SmallIsZero&) = delete;
  SmallIsZero& operator=(const SmallIsZero&) = delete;

 private:
  uint32_t before_ = 0;
};

void share_pieces(int64_t pieces, const std::function<void(int64_t)>& work);
// Calls work(piece) once for each piece from 0 on. No two pieces may write to one place.
template <class Work>
void share_out(int64_t pieces, const Work& work) {
  if (pieces == 1) return work(int64_t{0});
  share_pieces(pieces, std::ref(work));
}

// Calls work(first, end) for ranges that make up [0, size), each of at least `least` elements.
template <class Work>
void share_range(int64_t size, int64_t least, const Work& work) {
  if (size < 2 * least) return work(int64_t{0}, size);
  const int64_t pieces = std::clamp<int64_t>(size / std::max<int64_t>(1, least), 1, cores() > 1 ? 2 * cores() : 1);
  share_out(pieces, [&](int64_t i) { work(size * i / pieces, size * (i + 1) / pieces); });
}

constexpr int64_t kLeastValues = 1 << 14;  // of an op that does little with each
// The rows of a matrix that are worth a piece.
inline int64_t least_rows(int64_t cols) { return std::max<int64_t>(1, kLeastValues / std::max<int64_t>(1, cols)); }

// Sums columns: add(first row, end, sums) over blocks of rows that do not depend on the number of cores, so neither do the bits.
template <class Sum, class Add>
void share_sums(int64_t rows, int64_t cols, Sum* out, const Add& add) {
  const int64_t blocks = std::clamp<int64_t>(rows * cols / (2 * kLeastValues), 1, 16);
  std::fill_n(out, cols, Sum(0));
  if (blocks == 1) return add(int64_t{0}, rows, out);
  std::vector<Sum> sums(static_cast<size_t>(blocks * cols));
  share_out(blocks, [&](int64_t i) { add(rows * i / blocks, rows * (i + 1) / blocks, sums.data() + i * cols); });
  for (int64_t i = 0; i < blocks * cols; ++i) out[i % cols] += sums[static_cast<size_t>(i)];
}

// Memory of this thread that lasts until the next call for the same type.
template <class Real>
Real* scratch(int64_t size) {
  thread_local std::vector<Real> space;
  if (space.size() < static_cast<size_t>(size)) space.resize(static_cast<size_t>(size));
  return space.data();
}

}  // namespace ws::cpu
