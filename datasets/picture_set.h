// Sets of pictures: MNIST and other IDX files, CIFAR-10's binary format, your own folders, and made pictures of shapes.
#pragma once
#include <string>

#include "datasets/dataset.h"

namespace ws::data {

// A folder with data_batch_1.bin ... and test_batch.bin, as cs.toronto.edu/~kriz/cifar.html gives them out.
Dataset load_cifar10(const DataSpec& spec);
inline constexpr int64_t kShapesSide = 32, kShapesClasses = 10;
Dataset make_shapes(const DataSpec& spec);  // spec.points pictures of ten kinds of shapes

// Reads train-images/train-labels and, if present, t10k-… or test-… from `folder`, plain or .gz. `classes` 0: the
// largest training label decides how many. `limit` > 0: converts only that many training images, if the set has a test
// part.
Dataset load_image_folder(const std::string& folder, int64_t classes, int64_t limit);

Dataset load_mnist(const DataSpec& spec);
Dataset load_fashion_mnist(const DataSpec& spec);
Dataset load_idx_folder(const DataSpec& spec);

// Your own pictures: a folder with one folder of PNG or JPEG files for each class.
// Either FOLDER/CLASS/*.png, or FOLDER/train/CLASS and FOLDER/test/CLASS ("val", "valid" and "validation" also name the test part).
Dataset load_pictures(const DataSpec& spec);

}  // namespace ws::data
