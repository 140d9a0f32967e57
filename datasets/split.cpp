#include "datasets/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiling/base/philox.h"

namespace ws::data {
namespace {

// A random stream of its own: the split is independent of the points with the same seed.
constexpr uint64_t kShuffleStream = 0x73686675;

void shuffle(std::vector<int64_t>& rows, uint64_t seed, uint64_t stream) {
  for (size_t i = rows.size(); i > 1; --i) {
    const uint32_t word = philox_at(seed, stream, i).w[0];
    std::swap(rows[i - 1], rows[index_below(word, static_cast<uint32_t>(i))]);
  }
}

// Leaves at least one row on each side if there are two or more.
int64_t rows_to_take(int64_t rows, double share) {
  if (rows < 2 || share <= 0) return 0;
  return std::clamp<int64_t>(std::llround(share * static_cast<double>(rows)), 1, rows - 1);
}

void append_row(const Split& from, int64_t row, int64_t features, int64_t outputs, Split& to) {
  const float* x = from.x.data() + row * features;
  to.x.insert(to.x.end(), x, x + features);
  if (!from.labels.empty()) to.labels.push_back(from.labels[static_cast<size_t>(row)]);
  if (!from.targets.empty()) {
    const float* y = from.targets.data() + row * outputs;
    to.targets.insert(to.targets.end(), y, y + outputs);
  }
  ++to.rows;
}

Split pick(const Dataset& set, const std::vector<int64_t>& rows) {
  Split out;
  out.x.reserve(rows.size() * static_cast<size_t>(set.features));
  for (int64_t row : rows) append_row(set.train, row, set.features, set.outputs, out);
  return out;
}

// Returns row numbers by class, or one group if there are no classes.
std::vector<std::vector<int64_t>> groups(const Dataset& set) {
  const bool classes = set.task == Task::Classification;
  std::vector<std::vector<int64_t>> out(classes ? static_cast<size_t>(set.outputs) : 1);
  for (int64_t row = 0; row < set.train.rows; ++row)
    out[classes ? static_cast<size_t>(set.train.labels[static_cast<size_t>(row)]) : 0].push_back(row);
  return out;
}

struct Scale {
  double mean = 0, factor = 1;
};

std::vector<Scale> column_scales(const std::vector<float>& values, int64_t columns) {
  const int64_t rows = static_cast<int64_t>(values.size()) / columns;
  std::vector<Scale> scales(static_cast<size_t>(columns));
  for (int64_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < rows; ++r) sum += values[static_cast<size_t>(r * columns + c)];
    const double mean = sum / static_cast<double>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const double away = values[static_cast<size_t>(r * columns + c)] - mean;
      squares += away * away;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(rows));
    // Rounding leaves a constant column with a deviation of almost zero; dividing by that would invent a signal.
    const bool constant = deviation <= 1e-7 * std::abs(mean) || deviation == 0;
    scales[static_cast<size_t>(c)] = {mean, constant ? 0 : 1 / deviation};
  }
  return scales;
}

constexpr double kFarthest = 1e30;

void apply(const std::vector<Scale>& scales, std::vector<float>& values) {
  const size_t columns = scales.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const Scale& scale = scales[i % columns];
    // A held-out row can be extremely far from the training rows. The clamp keeps its value finite.
    values[i] = static_cast<float>(std::clamp((values[i] - scale.mean) * scale.factor, -kFarthest, kFarthest));
  }
}

}  // namespace

void hold_out(Dataset& set, double share, uint64_t seed) {
  std::vector<int64_t> train, test;
  uint64_t stream = kShuffleStream;
  for (std::vector<int64_t>& group : groups(set)) {
    shuffle(group, seed, ++stream);
    const auto cut = group.begin() + rows_to_take(static_cast<int64_t>(group.size()), share);
    test.insert(test.end(), group.begin(), cut);
    train.insert(train.end(), cut, group.end());
  }
  shuffle(train, seed, kShuffleStream);
  std::sort(test.begin(), test.end());
  Split held_out = pick(set, test);
  set.train = pick(set, train);
  set.test = std::move(held_out);
}

void standardise_features(Dataset& set) {
  if (set.train.rows == 0 || set.features == 0) return;
  const std::vector<Scale> scales = column_scales(set.train.x, set.features);
  apply(scales, set.train.x);
  apply(scales, set.test.x);
}

void standardise_targets(Dataset& set) {
  if (set.train.rows == 0 || set.task != Task::Regression) return;
  const std::vector<Scale> scales = column_scales(set.train.targets, set.outputs);
  apply(scales, set.train.targets);
  apply(scales, set.test.targets);
}

void keep_first(Dataset& set, int64_t limit) {
  if (limit <= 0 || limit >= set.train.rows) return;
  const size_t rows = static_cast<size_t>(limit), labels_of_row = static_cast<size_t>(std::max<int64_t>(1, set.context));
  set.train.rows = limit;
  set.train.x.resize(rows * static_cast<size_t>(set.features));
  if (!set.train.labels.empty()) set.train.labels.resize(rows * labels_of_row);
  if (!set.train.targets.empty()) set.train.targets.resize(rows * static_cast<size_t>(set.outputs));
}

}  // namespace ws::data
