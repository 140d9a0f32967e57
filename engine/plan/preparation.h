// What happens to a picture on its way into the network: a random crop, a random mirror image, and each channel brought
// to mean 0 and deviation 1. The interpreter and the CUDA kernel both run this arithmetic, so they make the same bits.
#pragma once
#include <cstdint>

#include "profiling/base/philox.h"

namespace ws {

inline constexpr int kMostChannels = 4;  // of a picture that is prepared

// A normalised value is (value − mean) · factor of its channel.
struct PixelScale {
  float mean[kMostChannels] = {}, factor[kMostChannels] = {1, 1, 1, 1};
  bool operator==(const PixelScale&) const = default;
};

// The parts of the op Prepare; an op has one of them, or all that were fused.
struct Preparation {
  int32_t crop = 0;  // pixels of zeros around the picture; a random part of the original size is cut out of that
  bool flip = false;  // half of the pictures become their mirror images
  bool normalise = false;
  PixelScale scale;
  int64_t first_row = 0;  // the row of the whole step with which this rank begins
  WARPSIGHT_HD bool is_random() const { return crop > 0 || flip; }
  bool operator==(const Preparation&) const = default;
};

// Where a prepared picture takes its pixels from: (y + down, x + across) of the original, with x counted from the right
// if it is mirrored.
struct PicturePlace {
  int32_t down = 0, across = 0;
  bool mirrored = false;
};

// `row`: of this rank's rows. The place depends only on the seed, the step and the row of the whole step. So a resumed run
// and a run on more ranks see the same pictures.
WARPSIGHT_HD PicturePlace place_of(const Preparation& p, uint64_t seed, int64_t step, int64_t row) {
  const uint64_t stream = uint64_t{0xffffffff} << 32 | static_cast<uint32_t>(step);  // dropouts have the streams below
  const data::PhiloxWords words = data::philox_at(seed, stream, static_cast<uint64_t>(p.first_row + row));
  const auto places = static_cast<uint32_t>(2 * p.crop + 1);
  return {static_cast<int32_t>(data::index_below(words.w[0], places)) - p.crop,
          static_cast<int32_t>(data::index_below(words.w[1], places)) - p.crop, p.flip && (words.w[2] >> 31) != 0};
}

// The value of a channel of pixel (y, x) of a prepared picture. `picture` returns value i of the original.
template <class Real, class Picture>
WARPSIGHT_HD Real prepared_value(const Preparation& p, const PicturePlace& place, int64_t height, int64_t width, int64_t channels,
                                 int64_t y, int64_t x, int64_t channel, const Picture& picture) {
  const int64_t from_y = y + place.down, from_x = (place.mirrored ? width - 1 - x : x) + place.across;
  const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
  const Real value = inside ? static_cast<Real>(picture((from_y * width + from_x) * channels + channel)) : Real(0);
  if (!p.normalise) return value;
  return (value - static_cast<Real>(p.scale.mean[channel])) * static_cast<Real>(p.scale.factor[channel]);
}

}  // namespace ws
