// A data set in memory: rows of float features with class labels or real targets.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/data_spec.h"

namespace ws::data {

enum class Task { Classification, Regression };

struct Split {
  int64_t rows = 0;
  std::vector<float> x;         // (rows, features)
  std::vector<int32_t> labels;  // (rows) for classification; (rows, context) for text: the symbol behind each symbol
  std::vector<float> targets;   // (rows, outputs) for regression
};

struct Dataset {
  std::string name;
  Task task = Task::Classification;
  int64_t features = 0;
  int64_t outputs = 0;                        // classes, or target columns
  int64_t image_width = 0, image_height = 0;  // 0: not images
  int64_t image_channels = 1;                 // of an image; its values are in the order row, column, channel
  std::vector<float> channel_mean, channel_factor;  // DataSpec::normalise: (value − mean) · factor; empty: not measured
  int64_t context = 0;                        // symbols of a row of text, as numbers in x; 0: no text
  std::vector<std::string> feature_names, class_names;
  Split train, test;
  std::string note;  // what was left out or changed, for the log; empty: nothing
};

// Throws ws::Failure with file, offset and reason. A file with wrong sizes cannot cause a large allocation.
Dataset load(const DataSpec& spec);

// The valid values of DataSpec::name.
std::vector<std::string> names();

}  // namespace ws::data
