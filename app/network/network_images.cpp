#include "app/network/network_images.h"

#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"

namespace ws::app {

QRgb signed_colour(double share) {
  const Theme& t = theme();
  const QColor end = share < 0 ? t.of(prof::Meaning::Matrix) : t.of(prof::Meaning::Reduction), ground = t.base;
  const double s = std::min(1.0, std::abs(share));
  const auto mixed = [s](int from, int to) { return static_cast<int>(from + (to - from) * s); };
  return qRgb(mixed(ground.red(), end.red()), mixed(ground.green(), end.green()), mixed(ground.blue(), end.blue()));
}

QImage row_image(const data::Dataset& data, const data::Split& part, int64_t row) {
  QImage image(static_cast<int>(data.image_width), static_cast<int>(data.image_height), QImage::Format_RGB32);
  const float* pixels = part.x.data() + row * data.features;
  const auto [least, most] = std::minmax_element(pixels, pixels + data.features);
  const float range = std::max(1e-6F, *most - *least);
  const int64_t channels = data.image_channels;
  const auto level = [&](int64_t at) { return static_cast<int>((pixels[at] - *least) / range * 255); };
  for (int64_t i = 0; i < data.image_width * data.image_height; ++i) {
    const int64_t at = i * channels, second = channels == 3 ? at + 1 : at, third = channels == 3 ? at + 2 : at;
    image.setPixel(static_cast<int>(i % data.image_width), static_cast<int>(i / data.image_width),
                   qRgb(level(at), level(second), level(third)));
  }
  return image;
}

std::optional<size_t> first_filter_layer(const Model& model) {
  if (!model.input.is_picture()) return std::nullopt;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerKind kind = model.layers[i].layer.kind;
    if (kind == LayerKind::Conv || kind == LayerKind::Linear)
      return model.layers[i].in == model.input ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

int64_t filter_count(const Model& model, size_t layer) { return model.layers[layer].layer.width; }

namespace {

// The weights of one filter: its window, and what it takes from each channel there.
struct Filter {
  int64_t high = 0, wide = 0, channels = 0;
  const float* first = nullptr;
  int64_t stride = 1;

  float at(int64_t place, int64_t channel) const { return first[(place * channels + channel) * stride]; }
};

Filter filter_of(const NetworkLayer& l, std::span<const float> weights, int64_t which) {
  if (l.layer.kind == LayerKind::Conv) {
    const int64_t each = l.layer.window_h * l.layer.window_w * l.in.channels;
    return {l.layer.window_h, l.layer.window_w, l.in.channels, weights.data() + which * each, 1};
  }
  return {l.in.height, l.in.width, l.in.channels, weights.data() + which, l.layer.width};
}

int64_t strongest_channel(const Filter& filter) {
  int64_t best = 0;
  float most = -1;
  for (int64_t c = 0; c < filter.channels; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < filter.high * filter.wide; ++i) sum += std::abs(filter.at(i, c));
    if (sum > most) most = sum, best = c;
  }
  return best;
}

float greatest_weight(const Filter& filter) {
  float most = 1e-9F;
  for (int64_t i = 0; i < filter.high * filter.wide; ++i)
    for (int64_t c = 0; c < filter.channels; ++c) most = std::max(most, std::abs(filter.at(i, c)));
  return most;
}

}  // namespace

QImage filter_image(const Model& model, size_t layer, std::span<const float> weights, int64_t which) {
  const Filter filter = filter_of(model.layers[layer], weights, which);
  const bool coloured = filter.channels == 3;
  const int64_t channel = coloured ? 0 : strongest_channel(filter);
  const float most = greatest_weight(filter);
  const auto level = [&](int64_t i, int64_t c) { return 128 + static_cast<int>(127 * filter.at(i, c) / most); };
  QImage image(static_cast<int>(filter.wide), static_cast<int>(filter.high), QImage::Format_RGB32);
  for (int64_t i = 0; i < filter.high * filter.wide; ++i)
    image.setPixel(static_cast<int>(i % filter.wide), static_cast<int>(i / filter.wide),
                   coloured ? qRgb(level(i, 0), level(i, 1), level(i, 2))
                            : signed_colour(static_cast<double>(filter.at(i, channel) / most)));
  return image;
}

std::vector<QImage> output_images(const LayerShape& shape, std::span<const float> values) {
  float most = 1e-9F;
  for (const float v : values) most = std::max(most, std::abs(v));
  const auto count = static_cast<int64_t>(values.size());
  const auto square = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t channels = shape.is_picture() ? shape.channels : 1;
  const int64_t wide = shape.is_picture() ? shape.width : square, each = count / std::max<int64_t>(1, channels);
  std::vector<QImage> images;
  for (int64_t c = 0; c < channels; ++c) {
    images.emplace_back(static_cast<int>(wide), static_cast<int>((each + wide - 1) / std::max<int64_t>(1, wide)), QImage::Format_RGB32);
    images.back().fill(theme().base);
    for (int64_t i = 0; i < each; ++i)
      images.back().setPixel(static_cast<int>(i % wide), static_cast<int>(i / wide),
                             signed_colour(static_cast<double>(values[static_cast<size_t>(i * channels + c)] / most)));
  }
  return images;
}

}  // namespace ws::app
