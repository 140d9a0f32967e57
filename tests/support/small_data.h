// Small random data sets for tests.
#pragma once
#include <random>

#include "datasets/dataset.h"

namespace ws::test {

inline data::Split random_split(int64_t rows, int64_t features, int64_t outputs, bool classes, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  data::Split split;
  split.rows = rows;
  split.x.resize(static_cast<size_t>(rows * features));
  for (float& v : split.x) v = normal(rng);
  if (classes) {
    for (int64_t r = 0; r < rows; ++r)
      split.labels.push_back(static_cast<int32_t>(rng() % static_cast<unsigned>(outputs)));
  } else {
    split.targets.resize(static_cast<size_t>(rows * outputs));
    for (float& v : split.targets) v = normal(rng);
  }
  return split;
}

inline data::Dataset random_data(int64_t rows, int64_t features, int64_t outputs, bool classes, unsigned seed = 7) {
  std::mt19937 rng(seed);
  data::Dataset data;
  data.name = "random";
  data.task = classes ? data::Task::Classification : data::Task::Regression;
  data.features = features;
  data.outputs = outputs;
  data.train = random_split(rows, features, outputs, classes, rng);
  data.test = random_split(rows, features, outputs, classes, rng);
  return data;
}

inline data::Dataset random_pictures(int64_t rows, int64_t side, int64_t channels, int64_t classes) {
  data::Dataset data = random_data(rows, side * side * channels, classes, true);
  data.image_width = data.image_height = side, data.image_channels = channels;
  return data;
}

// Rows of symbols; the target of a symbol depends on it, so that there is something to learn.
inline data::Dataset random_text(int64_t rows, int64_t context, int64_t symbols) {
  data::Dataset data = random_data(rows, context, symbols, true);
  data.context = context;
  for (data::Split* split : {&data.train, &data.test}) {
    std::mt19937 rng(11);
    split->labels.clear();
    for (float& x : split->x) {
      const auto symbol = static_cast<int32_t>(rng() % static_cast<unsigned>(symbols));
      x = static_cast<float>(symbol);
      split->labels.push_back((3 * symbol + 1) % static_cast<int32_t>(symbols));
    }
  }
  return data;
}

}  // namespace ws::test
