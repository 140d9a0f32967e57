// Describes which data to train on and how to split it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ws::data {

struct DataSpec {
  std::string name = "mnist";  // see names() in dataset.h
  std::string path;            // folder of an IDX set, of CIFAR-10 or of pictures, a CSV file, or a text
  std::string label_column;    // CSV: the column to predict
  int64_t points = 1000;       // synthetic sets
  int64_t classes = 3;         // blobs, spirals
  double noise = 0.1;          // synthetic sets
  double slope = 2.0;          // line: y = slope·x + intercept + noise
  double intercept = 1.0;
  double validation = 0.2;  // share held out if the set has no test part
  int64_t context = 128;    // text: characters of a row
  int64_t side = 0;         // pictures: each becomes a square of so many pixels; 0: all files have one size
  bool skip_broken = false;  // pictures: leaves out files that cannot be read
  int64_t crop = 0;         // pictures, in training: pixels of padding from which a random part is cut; 0: none
  bool flip = false;        // pictures, in training: half of them are mirrored
  bool normalise = false;   // pictures: each channel gets mean 0 and deviation 1 over the training rows
  int64_t limit = 0;        // use only the first N training rows; 0: all rows
  uint64_t seed = 42;       // for the synthetic points and for the split
  bool operator==(const DataSpec&) const = default;
};

// What DataSpec::path names for this data set.
enum class Source { None, File, Folder };
Source source_of(std::string_view name);

bool holds_pictures(std::string_view name);  // also if their size is unknown before loading
int64_t side_of_pictures(const DataSpec& spec);  // 0: no pictures, or their size is unknown before loading

}  // namespace ws::data
