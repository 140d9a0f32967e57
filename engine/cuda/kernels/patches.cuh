// Operands of a tile product that read a picture through the window of a convolution (see patches.h). No matrix of
// patches is ever in device memory: the copies to shared memory find their elements in the picture.
#pragma once
#include "engine/cuda/kernels/patches.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

// Copies 16 bytes through the L1 cache: other taps read the same pixel soon.
template <class T>
__device__ __forceinline__ void copy_again(T* shared, const T* global, bool inside) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(inside ? 16 : 0));
}

// A matrix whose rows begin at 16-byte boundaries: each thread keeps its place. Along: the tiles follow each other along
// the rows; otherwise across them, in their order.
template <class T, bool Along, int ROWS, int COLS, int THREADS>
struct Lines {
  static constexpr int part = 16 / sizeof(T), parts = COLS / part, step = THREADS / parts;
  static constexpr int pieces = (ROWS + step - 1) / step;
  static_assert(THREADS % parts == 0);
  const T* at;
  int left_rows, left_columns;  // from this thread's place to the end
  int64_t between;              // elements between two pieces

  __device__ Lines(const T* data, int rows, int cols, int row0, int col0) {
    const int r = row0 + static_cast<int>(threadIdx.x) / parts, c = col0 + static_cast<int>(threadIdx.x) % parts * part;
    at = data + static_cast<int64_t>(r) * cols + c;
    left_rows = rows - r, left_columns = cols - c;
    between = static_cast<int64_t>(step) * cols;
  }
  template <class Lies>
  __device__ __forceinline__ void bring(T* shared) {
    const int c = static_cast<int>(threadIdx.x) % parts * part, r = static_cast<int>(threadIdx.x) / parts;
    const int rows = left_columns > 0 ? left_rows : 0;
    const T* from = at;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      if (ROWS % step == 0 || r + i * step < ROWS)
        copy_async<16>(shared + Lies::at(r + i * step, c), from, i * step < rows);
      from += between;
    }
    if constexpr (Along)
      at += COLS, left_columns -= COLS;
    else
      at += between * (ROWS / step), left_rows -= ROWS;
  }
};

template <bool, class Lies, class T, int ROWS, int COLS, int THREADS, bool Along>
__device__ __forceinline__ void bring_piece(T* shared, Lines<T, Along, ROWS, COLS, THREADS>& from, int, int) {
  from.template bring<Lies>(shared);
}

// The rows of a tile are pixels that stay, and its columns move on: (pixels, taps · channels).
// Again: through the L1 cache, which pays off for few channels.
template <class T, int ROWS, int COLS, int THREADS, bool Again>
struct StayingPixels {
  static constexpr int part = 16 / sizeof(T), parts = COLS / part, step = THREADS / parts;
  static constexpr int pieces = (ROWS + step - 1) / step;
  static_assert(THREADS % parts == 0);

  const T* data;
  const Patches& patches;
  const T* first[pieces];  // what tap (0, 0) reads; for data that skips pixels, the picture
  int y[pieces], x[pieces];

  __device__ StayingPixels(const T* from, const Patches& p, int row0, bool whole) : data(from), patches(p) {
    if (!whole) return;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const int row = row0 + static_cast<int>(threadIdx.x) / parts + i * step;
      const PatchRow at = p.row(row);
      y[i] = row < p.rows ? at.y : -(1 << 20), x[i] = at.x;
      first[i] = from + static_cast<int64_t>(at.picture) * p.height * p.width * p.channels;
      if (p.every == 1) first[i] += (at.y * p.width + at.x) * p.channels;
    }
  }
  template <class Lies>
  __device__ __forceinline__ void bring(T* shared, int col0) const {
    const int c = static_cast<int>(threadIdx.x) % parts * part, r = static_cast<int>(threadIdx.x) / parts;
    const PatchColumn column = patches.column(col0 + c);
    if (patches.every > 1) return bring_skipping<Lies>(shared, column, r, c);
    const int down = patches.sign * column.r, right = patches.sign * column.s;
    const int move = (down * patches.width + right) * patches.channels + column.channel;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      if (ROWS % step != 0 && r + i * step >= ROWS) break;
      const bool inside = column.inside && static_cast<unsigned>(y[i] + down) < static_cast<unsigned>(patches.height) &&
                          static_cast<unsigned>(x[i] + right) < static_cast<unsigned>(patches.width);
      if constexpr (Again)
        copy_again<T>(shared + Lies::at(r + i * step, c), first[i] + move, inside);
      else
        copy_async<16>(shared + Lies::at(r + i * step, c), first[i] + move, inside);
    }
  }
  template <class Lies>
  __device__ __forceinline__ void bring_skipping(T* shared, const PatchColumn& column, int r, int c) const {
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      if (ROWS % step != 0 && r + i * step >= ROWS) break;
      const int at = patches.at({0, y[i], x[i]}, column);
      copy_async<16>(shared + Lies::at(r + i * step, c), at < 0 ? data : first[i] + at, at >= 0);
    }
  }
};

// The columns of a tile stay, and its rows are pixels that move on, from `first` to `end`: (pixels, taps · channels). The
// tiles are read in their order, so a thread keeps its places and only moves them.
template <class T, int ROWS, int COLS, int THREADS>
struct MovingPixels {
  static constexpr int part = 16 / sizeof(T), parts = COLS / part, step = THREADS / parts;
  static constexpr int pieces = ROWS * parts / THREADS;
  static_assert(THREADS % parts == 0 && ROWS * parts % THREADS == 0);

  const T* data;
  const Patches& patches;
  const PixelSteps& steps;
  const T* at[pieces];
  int y[pieces], x[pieces];  // that the tap reads
  int y_end, x_end;          // the place after the last one of a result, or of its row
  int left;                  // pixels from this thread's first one to the end; no column: none

  __device__ MovingPixels(const T* from, const Patches& p, const PixelSteps& moves, int first, int end, int col0)
      : data(from), patches(p), steps(moves) {
    const PatchColumn column = p.column(col0 + static_cast<int>(threadIdx.x) % parts * part);
    const int pixel = first + static_cast<int>(threadIdx.x) / parts;
    left = column.inside ? end - pixel : 0;
    y_end = steps.rows + p.shift + column.r, x_end = steps.columns + p.shift + column.s;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const PatchRow row = p.row(pixel + i * step);
      y[i] = row.y + column.r, x[i] = row.x + column.s;
      at[i] = from + (static_cast<int64_t>(row.picture) * p.height + y[i]) * p.width * p.channels +
              x[i] * p.channels + column.channel;
    }
  }
  template <class Lies>
  __device__ __forceinline__ void bring(T* shared) {
    const int c = static_cast<int>(threadIdx.x) % parts * part, r = static_cast<int>(threadIdx.x) / parts;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const bool inside = i * step < left && static_cast<unsigned>(y[i]) < static_cast<unsigned>(patches.height) &&
                          static_cast<unsigned>(x[i]) < static_cast<unsigned>(patches.width);
      copy_again<T>(shared + Lies::at(r + i * step, c), at[i], inside);
      at[i] += steps.move(y[i], x[i], y_end, x_end);
    }
    left -= ROWS;
  }
};

// Like MovingPixels, for parts that are not whole: each element is looked up.
template <class T>
struct MovingElements {
  const T* data;
  const Patches& patches;
  int first, end;

  __device__ __forceinline__ const T* element(int pixel, const PatchColumn& at_column) const {
    const PatchRow row = patches.row(pixel);
    const int at = pixel < end ? patches.at(row, at_column) : -1;
    const int64_t picture = static_cast<int64_t>(row.picture) * patches.height * patches.width * patches.channels;
    return at < 0 ? nullptr : data + picture + at;
  }
};

template <class Lies, class T>
__device__ __forceinline__ void bring_element(T* shared, const T* from, const T* data) {
  if constexpr (sizeof(T) == 4)
    copy_async<4>(shared, from ? from : data, from != nullptr);
  else
    *shared = from ? *from : T(0.f);
}

template <bool Whole, class Lies, class T, int ROWS, int COLS, int THREADS, bool Again>
__device__ __forceinline__ void bring_piece(T* shared, const StayingPixels<T, ROWS, COLS, THREADS, Again>& from, int row0,
                                            int col0) {
  if constexpr (Whole) {
    from.template bring<Lies>(shared, col0);
  } else {
    const Patches& p = from.patches;
#pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
      const int r = i / COLS, c = i % COLS;
      const PatchRow row = p.row(row0 + r);
      const int at = row0 + r < p.rows ? p.at(row, p.column(col0 + c)) : -1;
      const T* picture = from.data + static_cast<int64_t>(row.picture) * p.height * p.width * p.channels;
      bring_element<Lies>(shared + Lies::at(r, c), at < 0 ? nullptr : picture + at, from.data);
    }
  }
}

template <bool, class Lies, class T, int ROWS, int COLS, int THREADS>
__device__ __forceinline__ void bring_piece(T* shared, MovingPixels<T, ROWS, COLS, THREADS>& from, int, int) {
  from.template bring<Lies>(shared);
}

template <bool, class Lies, class T, int ROWS, int COLS, int THREADS>
__device__ __forceinline__ void bring_piece(T* shared, const MovingElements<T>& from, int row0, int col0) {
#pragma unroll 4
  for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
    const int r = i / COLS, c = i % COLS;
    const T* element = from.element(from.first + row0 + r, from.patches.column(col0 + c));
    bring_element<Lies>(shared + Lies::at(r, c), element, from.data);
  }
}

// The windows of pixels, from `first` to `end`, whole in a row of the tile: a thread reads a window of Side × Side taps
// with known indices, which takes far less arithmetic than one element after the other.
template <class T, int Side, int Channels>
struct Windows {
  static constexpr int count = Side * Side * Channels;
  const T* data;
  const Patches& patches;
  int first, end;

  template <int COLS>
  __device__ __forceinline__ void read(int pixel, T (&v)[COLS]) const {
    static_assert(COLS >= count);
    const PatchRow at = patches.row(pixel);
    const T* from = data + static_cast<int64_t>(at.picture) * patches.height * patches.width * Channels +
                    (at.y * patches.width + at.x) * Channels;
#pragma unroll
    for (int i = 0; i < COLS; ++i) {
      const int r = i / (Side * Channels), s = i / Channels % Side;
      const bool inside = i < count && pixel < end &&
                          static_cast<unsigned>(at.y + r) < static_cast<unsigned>(patches.height) &&
                          static_cast<unsigned>(at.x + s) < static_cast<unsigned>(patches.width);
      v[i] = inside ? from[(r * patches.width + s) * Channels + i % Channels] : T(0.f);
    }
  }
};

template <bool, class Lies, class T, int ROWS, int COLS, int THREADS, int Side, int Channels>
__device__ __forceinline__ void bring_piece(T* shared, const Windows<T, Side, Channels>& from, int row0, int col0) {
  constexpr int part = 16 / static_cast<int>(sizeof(T));
#pragma unroll 1
  for (int r = threadIdx.x; r < ROWS; r += THREADS) {
    alignas(16) T v[COLS];
    from.read(from.first + (col0 == 0 ? row0 + r : from.end), v);
#pragma unroll
    for (int c = 0; c < COLS; c += part)
      *reinterpret_cast<uint4*>(shared + Lies::at(r, c)) = *reinterpret_cast<const uint4*>(v + c);
  }
}

// The weights (k, taps · channels) as the data gradient reads them: (taps · k, channels).
template <class T>
struct TurnedTaps {
  const T* data;
  int rows, channels, row_length;  // taps · k, channels, taps · channels
  Divisor by_k;
};

template <bool Whole, class Lies, class T, int ROWS, int COLS, int THREADS>
__device__ __forceinline__ void bring_piece(T* shared, const TurnedTaps<T>& from, int row0, int col0) {
  constexpr int part = Whole ? 16 / static_cast<int>(sizeof(T)) : 1, parts = COLS / part;
#pragma unroll 8
  for (int i = threadIdx.x; i < ROWS * parts; i += THREADS) {
    const int r = i / parts, c = i % parts * part, row = row0 + r, col = col0 + c;
    const bool inside = row < from.rows && col < from.channels;
    const int tap = from.by_k.divide(row), k = row - tap * static_cast<int>(from.by_k.by);
    const T* at = inside ? from.data + static_cast<int64_t>(k) * from.row_length + tap * from.channels + col : nullptr;
    if constexpr (Whole)
      copy_async<16>(shared + Lies::at(r, c), inside ? at : from.data, inside);
    else
      bring_element<Lies>(shared + Lies::at(r, c), at, from.data);
  }
}

// The same for stages that each lie within one tap: k is a multiple of their rows.
template <class T>
struct TurnedTapOfStage : TurnedTaps<T> {};

template <bool, class Lies, class T, int ROWS, int COLS, int THREADS>
__device__ __forceinline__ void bring_piece(T* shared, const TurnedTapOfStage<T>& from, int row0, int col0) {
  constexpr int part = 16 / static_cast<int>(sizeof(T)), parts = COLS / part, step = THREADS / parts;
  const int r = static_cast<int>(threadIdx.x) / parts, c = static_cast<int>(threadIdx.x) % parts * part;
  const int tap = from.by_k.divide(row0), k = row0 - tap * static_cast<int>(from.by_k.by) + r;
  const bool inside = col0 + c < from.channels && row0 < from.rows;
  const T* at = from.data + (inside ? static_cast<int64_t>(k) * from.row_length + tap * from.channels + col0 + c : 0);
#pragma unroll
  for (int i = 0; i < ROWS / step; ++i)
    copy_async<16>(shared + Lies::at(r + i * step, c), at + (inside ? i * step * from.row_length : 0), inside);
}

}  // namespace ws::cuda
