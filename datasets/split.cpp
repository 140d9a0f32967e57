#include "datasets/split.h"

#include <algorithm>
#include <cmath>

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

// values[i] becomes values[order[i]], a row at a time and in place: a second copy of a large set would not fit.
template <class Value>
void reorder(std::vector<Value>& values, std::vector<int64_t> order, int64_t of_row) {
  if (values.empty()) return;
  const auto row = [&](int64_t i) { return values.begin() + i * of_row; };
  std::vector<Value> first(static_cast<size_t>(of_row));
  for (int64_t start = 0; start < static_cast<int64_t>(order.size()); ++start) {
    if (order[static_cast<size_t>(start)] == start) continue;
    std::copy_n(row(start), of_row, first.begin());
    int64_t to = start;
    for (int64_t from = order[static_cast<size_t>(to)]; from != start; to = from, from = order[static_cast<size_t>(to)]) {
      std::copy_n(row(from), of_row, row(to));
      order[static_cast<size_t>(to)] = to;
    }
    std::copy_n(first.begin(), of_row, row(to));
    order[static_cast<size_t>(to)] = to;
  }
}

// Moves the rows behind the first `rows` to a split of their own.
template <class Value>
std::vector<Value> cut_off(std::vector<Value>& values, int64_t rows, int64_t of_row) {
  if (values.empty()) return {};
  const auto cut = values.begin() + rows * of_row;
  std::vector<Value> rest(cut, values.end());
  values.erase(cut, values.end());
  return rest;
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
  const auto cols = static_cast<size_t>(columns);
  const auto rows = static_cast<double>(values.size() / cols);
  std::vector<double> sums(cols), squares(cols);
  std::vector<Scale> scales(cols);
  for (size_t at = 0; at < values.size(); at += cols)
    for (size_t c = 0; c < cols; ++c) sums[c] += values[at + c];
  for (size_t c = 0; c < cols; ++c) scales[c].mean = sums[c] / rows;
  for (size_t at = 0; at < values.size(); at += cols)
    for (size_t c = 0; c < cols; ++c) squares[c] += (values[at + c] - scales[c].mean) * (values[at + c] - scales[c].mean);
  for (size_t c = 0; c < cols; ++c) {
    const double deviation = std::sqrt(squares[c] / rows);
    // Rounding leaves a constant column with a deviation of almost zero; dividing by that would invent a signal.
    const bool constant = deviation <= 1e-7 * std::abs(scales[c].mean) || deviation == 0;
    scales[c].factor = constant ? 0 : 1 / deviation;
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
  const auto rows = static_cast<int64_t>(train.size());
  set.test.rows = static_cast<int64_t>(test.size());
  train.insert(train.end(), test.begin(), test.end());
  reorder(set.train.x, train, set.features);
  reorder(set.train.labels, train, 1);
  reorder(set.train.targets, std::move(train), set.outputs);
  set.test.x = cut_off(set.train.x, rows, set.features);
  set.test.labels = cut_off(set.train.labels, rows, 1);
  set.test.targets = cut_off(set.train.targets, rows, set.outputs);
  set.train.rows = rows;
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

void measure_channels(Dataset& set) {
  if (set.train.rows == 0 || set.image_width == 0) return;
  set.channel_mean.clear(), set.channel_factor.clear();
  for (const Scale& scale : column_scales(set.train.x, set.image_channels)) {
    set.channel_mean.push_back(static_cast<float>(scale.mean));
    set.channel_factor.push_back(static_cast<float>(scale.factor));
  }
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
