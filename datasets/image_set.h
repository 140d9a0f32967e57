// A folder of IDX files: MNIST, Fashion-MNIST and any other set with the same file names.
#pragma once
#include <string>

#include "datasets/dataset.h"

namespace ws::data {

// Reads train-images/train-labels and, where present, t10k-… or test-… from `folder`, plain or .gz.
// `classes` 0: as many as the largest training label says. `limit` > 0 converts only so many training images when
// there is a test part.
Dataset load_image_folder(const std::string& folder, int64_t classes, int64_t limit);

Dataset load_mnist(const DataSpec& spec);
Dataset load_fashion_mnist(const DataSpec& spec);
Dataset load_idx_folder(const DataSpec& spec);

}  // namespace ws::data
