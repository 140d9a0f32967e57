// Loads a folder of IDX files: MNIST, Fashion-MNIST and any other set with the same file names.
#pragma once
#include <string>

#include "datasets/dataset.h"

namespace ws::data {

// Reads train-images/train-labels and, if present, t10k-… or test-… from `folder`, plain or .gz. `classes` 0: the
// largest training label decides how many. `limit` > 0: converts only that many training images, if the set has a test
// part.
Dataset load_image_folder(const std::string& folder, int64_t classes, int64_t limit);

Dataset load_mnist(const DataSpec& spec);
Dataset load_fashion_mnist(const DataSpec& spec);
Dataset load_idx_folder(const DataSpec& spec);

}  // namespace ws::data
