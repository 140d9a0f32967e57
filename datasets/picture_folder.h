// Your own pictures: a folder with one folder of PNG or JPEG files for each class.
#pragma once
#include "datasets/dataset.h"

namespace ws::data {

// Either FOLDER/CLASS/*.png, or FOLDER/train/CLASS and FOLDER/test/CLASS ("val", "valid" and "validation" also name the test part).
Dataset load_pictures(const DataSpec& spec);

}  // namespace ws::data
