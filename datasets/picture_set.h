// Coloured pictures: CIFAR-10's binary format, and made pictures of shapes.
#pragma once
#include "datasets/dataset.h"

namespace ws::data {

// A folder with data_batch_1.bin ... and test_batch.bin, as cs.toronto.edu/~kriz/cifar.html gives them out.
Dataset load_cifar10(const DataSpec& spec);
inline constexpr int64_t kShapesSide = 32, kShapesClasses = 10;
Dataset make_shapes(const DataSpec& spec);  // spec.points pictures of ten kinds of shapes

}  // namespace ws::data
