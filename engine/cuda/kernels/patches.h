// The index arithmetic of convolutions: a picture seen as a matrix with one row for each pixel of the result and one
// column for each tap of the window and channel. It contains only arithmetic, so the tests can check it without a GPU.
#pragma once
#include <cstdint>

#include "engine/cuda/kernels/tile_layout.h"

namespace ws::cuda {

// Divides numbers below 2^31 by a fixed number with one multiplication.
struct Divisor {
  uint32_t by = 1, factor = 0, shift = 0;
  Divisor() = default;
  explicit Divisor(int64_t number) : by(static_cast<uint32_t>(number)) {
    if (by < 2) return;
    while ((uint64_t{1} << (shift + 1)) < by) ++shift;
    factor = static_cast<uint32_t>(((uint64_t{1} << (shift + 32)) + by - 1) / by);
  }
  WS_ANYWHERE int divide(int number) const {
    const auto n = static_cast<uint32_t>(number);
    return by < 2 ? number : static_cast<int>(static_cast<uint32_t>((uint64_t{n} * factor) >> 32) >> shift);
  }
};

// Identifies a row: the picture, and the place that the window's first tap reads.
struct PatchRow {
  int picture, y, x;
};
// Identifies a column.
struct PatchColumn {
  int r, s, channel;
  bool inside;
};

// Pixel (q, p) of the result reads with tap (r, s) the pixel (q·scale + shift + sign·r) / every of the picture, and
// nothing where that is no whole number or outside. Forward: scale = stride, shift = -pad. For the data gradient the
// pixels of the picture are pixels of dz: sign = -1, shift = pad, every = stride.
struct Patches {
  int rows = 0, cols = 0;                      // pixels of all results; taps · channels
  int height = 0, width = 0, channels = 0;     // of the picture
  int scale = 1, shift = 0, sign = 1, every = 1;
  Divisor by_result, by_result_width, by_channels, by_taps;  // pixels of a result, of its row; taps in a row
  int pixels = 0, result_width = 0, taps = 0;

  WS_ANYWHERE PatchRow row(int index) const {
    const int picture = by_result.divide(index), in_picture = index - picture * pixels;
    const int q = by_result_width.divide(in_picture), p = in_picture - q * result_width;
    return {picture, q * scale + shift, p * scale + shift};
  }
  WS_ANYWHERE PatchColumn column(int index) const {
    const int tap = by_channels.divide(index), r = by_taps.divide(tap);
    return {r, tap - r * taps, index - tap * channels, index < cols};
  }
  // Returns the element's index within its picture, or -1 if the tap reads nothing.
  WS_ANYWHERE int at(const PatchRow& row, const PatchColumn& column) const {
    int y = row.y + sign * column.r, x = row.x + sign * column.s;
    bool inside = column.inside;
    if (every > 1) {
      inside = inside && y >= 0 && x >= 0 && y % every == 0 && x % every == 0;
      y /= every, x /= every;
    }
    inside = inside && static_cast<unsigned>(y) < static_cast<unsigned>(height) &&
             static_cast<unsigned>(x) < static_cast<unsigned>(width);
    return inside ? (y * width + x) * channels + column.channel : -1;
  }
};

// Moves a tap's place in the picture on by a fixed number of pixels of the result. A place that passes the end of a row,
// or of a picture, goes on in the next one.
struct PixelSteps {
  int right = 0, down = 0;             // added to x and y
  int columns = 0, rows = 0;           // of a result, in places of the picture
  int next_row = 0;                    // added to y where a row ends
  int on = 0;                          // elements for `right`, `down` and whole pictures
  int row_ends = 0, picture_ends = 0;  // further elements where a row or a picture ends
  PixelSteps() = default;
  PixelSteps(const Patches& p, int by) {
    const int height = p.pixels / p.result_width;
    right = by % p.result_width * p.scale, down = by / p.result_width % height * p.scale;
    columns = p.result_width * p.scale, rows = height * p.scale, next_row = p.scale;
    on = (by / p.pixels * p.height * p.width + down * p.width + right) * p.channels;
    row_ends = (p.scale * p.width - columns) * p.channels;
    picture_ends = (p.height - rows) * p.width * p.channels;
  }
  // Returns by how many elements the place moves. `y_end`, `x_end`: after the tap's last place in a picture and in a row.
  WS_ANYWHERE int move(int& y, int& x, int y_end, int x_end) const {
    int elements = on;
    x += right, y += down;
    if (x >= x_end) x -= columns, y += next_row, elements += row_ends;
    if (y >= y_end) y -= rows, elements += picture_ends;
    return elements;
  }
};

}  // namespace ws::cuda
