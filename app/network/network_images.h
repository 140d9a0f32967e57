// Pictures of what is inside a network: rows of data, filters, and feature maps.
#pragma once
#include <QImage>
#include <span>
#include <vector>

#include "engine/plan/model.h"

namespace ws::app {

// A share of −1 to 1: blue below zero, orange above, the background at zero. Safe for colour-blind people.
QRgb signed_colour(double share);
// A row of a data set of pictures. `lightest` and `darkest` values of the row become white and black.
QImage row_image(const data::Dataset& data, const data::Split& part, int64_t row);

// The first layer that reads the picture itself, if it has filters: a convolution or a product. nullopt for other data.
std::optional<size_t> first_filter_layer(const Model& model);
int64_t filter_count(const Model& model, size_t layer);
// Filter `which` of a layer. A filter of three channels behind the data is in colour; of many channels, the strongest is shown.
QImage filter_image(const Model& model, size_t layer, std::span<const float> weights, int64_t which);

// What a layer gives: one image for each channel of a picture, or one with a cell for each number.
std::vector<QImage> output_images(const LayerShape& shape, std::span<const float> values);

}  // namespace ws::app
