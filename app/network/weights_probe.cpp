#include "app/network/weights_probe.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ws::app {
namespace {

constexpr int64_t kSamples = 40, kConfusionRows = 1000;
constexpr size_t kWrong = 24;
constexpr int kLinePoints = 80, kBoundarySide = 72;

int best_of(const float* scores, int64_t outputs) {
  return static_cast<int>(std::max_element(scores, scores + outputs) - scores);
}

// Returns the softmax share of the best score. Predictions that already are shares stay unchanged.
float confidence(const float* scores, int64_t outputs, int best) {
  float sum = 0, total = 0;
  bool shares = true;
  for (int64_t i = 0; i < outputs; ++i)
    shares = shares && scores[i] >= 0 && scores[i] <= 1, total += scores[i], sum += std::exp(scores[i] - scores[best]);
  return shares && std::abs(total - 1) < 1e-3F ? scores[best] : 1 / sum;
}

void read_layers(WeightsSnapshot& snapshot, const TrainState& state, const Model& model, const RunSpec& spec) {
  for (size_t i = 0; i < model.parameters.size() && i < state.parameters.size(); ++i) {
    const Parameter& p = model.parameters[i];
    if (p.is_bias && p.elements() < 2) continue;
    snapshot.layers.push_back({p.name, p.rows, p.cols, state.parameters[i],
                               initial_values(model, spec.model, static_cast<ParamId>(i), spec.train.seed)});
  }
}

void predict_classes(WeightsSnapshot& snapshot, Executor& executor, const data::Dataset& data) {
  const data::Split& part = shown_part(data);
  const int64_t rows = std::min(part.rows, kConfusionRows);
  if (rows == 0) return;
  const auto scores = executor.predict(std::span(part.x).first(static_cast<size_t>(rows * data.features)), rows);
  if (scores.size() < static_cast<size_t>(rows * data.outputs)) return;
  snapshot.confusion.assign(static_cast<size_t>(data.outputs), std::vector<int>(static_cast<size_t>(data.outputs)));
  snapshot.confusion_rows = rows;
  for (int64_t row = 0; row < rows; ++row) {
    const float* own = scores.data() + row * data.outputs;
    const int guess = best_of(own, data.outputs), truth = part.labels[static_cast<size_t>(row)];
    ++snapshot.confusion[static_cast<size_t>(truth)][static_cast<size_t>(guess)];
    const SamplePrediction sample{row, truth, guess, confidence(own, data.outputs, guess)};
    if (row < kSamples) snapshot.samples.push_back(sample);
    if (guess == truth) continue;
    ++snapshot.wrong_rows;
    if (snapshot.wrong.size() < kWrong) snapshot.wrong.push_back(sample);
  }
}

void range_of(const data::Split& part, int64_t features, int64_t column, float& low, float& high) {
  low = INFINITY, high = -INFINITY;
  for (int64_t row = 0; row < part.rows; ++row) {
    const float v = part.x[static_cast<size_t>(row * features + column)];
    low = std::min(low, v), high = std::max(high, v);
  }
  if (!(low < high)) low -= 0.5F, high += 0.5F;
  const float margin = (high - low) * 0.06F;
  low -= margin, high += margin;
}

void predict_line(WeightsSnapshot& snapshot, Executor& executor, const data::Dataset& data) {
  range_of(data.train, 1, 0, snapshot.x_low, snapshot.x_high);
  for (int i = 0; i < kLinePoints; ++i)
    snapshot.line_x.push_back(snapshot.x_low +
                              (snapshot.x_high - snapshot.x_low) * static_cast<float>(i) / (kLinePoints - 1));
  snapshot.line_y = executor.predict(snapshot.line_x, kLinePoints);
}

void predict_boundary(WeightsSnapshot& snapshot, Executor& executor, const data::Dataset& data) {
  range_of(data.train, 2, 0, snapshot.x_low, snapshot.x_high);
  range_of(data.train, 2, 1, snapshot.y_low, snapshot.y_high);
  std::vector<float> grid;
  for (int row = 0; row < kBoundarySide; ++row)
    for (int column = 0; column < kBoundarySide; ++column) {
      grid.push_back(snapshot.x_low +
                     (snapshot.x_high - snapshot.x_low) * (static_cast<float>(column) + 0.5F) / kBoundarySide);
      grid.push_back(snapshot.y_high -
                     (snapshot.y_high - snapshot.y_low) * (static_cast<float>(row) + 0.5F) / kBoundarySide);
    }
  const auto scores = executor.predict(grid, kBoundarySide * kBoundarySide);
  for (int i = 0; i < kBoundarySide * kBoundarySide; ++i)
    snapshot.boundary.push_back(best_of(scores.data() + i * data.outputs, data.outputs));
  snapshot.boundary_side = kBoundarySide;
}

}  // namespace

const data::Split& shown_part(const data::Dataset& data) { return data.test.rows > 0 ? data.test : data.train; }

std::optional<StraightLine> straight_line(const WeightsSnapshot& snapshot) {
  const auto &x = snapshot.line_x, &y = snapshot.line_y;
  if (x.size() < 2 || y.size() < x.size()) return {};
  const auto at = [&](size_t i) { return std::pair<double, double>(x[i], y[i]); };
  const auto [x0, y0] = at(0);
  const auto [x1, y1] = at(x.size() - 1);
  const double slope = (y1 - y0) / (x1 - x0), at_zero = y0 - slope * x0;
  const double space = 0.005 * std::abs(y1 - y0) + 1e-4 * (std::abs(y0) + std::abs(y1));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto [each_x, each_y] = at(i);
    if (!(std::abs(at_zero + slope * each_x - each_y) <= space)) return {};  // this also rejects NaN
  }
  return StraightLine{slope, at_zero};
}

WeightsSnapshot probe_weights(Executor& executor, const data::Dataset& data, const RunSpec& spec) {
  WeightsSnapshot snapshot;
  TrainState state = executor.state();
  snapshot.step = state.step;
  snapshot.model = std::make_shared<const Model>(make_model(spec.model, data));
  read_layers(snapshot, state, *snapshot.model, spec);
  snapshot.parameters = std::make_shared<const std::vector<std::vector<float>>>(std::move(state.parameters));
  const bool rows_have_a_class = data.task == data::Task::Classification && data.context == 0;
  if (rows_have_a_class) predict_classes(snapshot, executor, data);
  if (data.task == data::Task::Regression && data.features == 1 && data.outputs == 1)
    predict_line(snapshot, executor, data);
  if (rows_have_a_class && data.features == 2) predict_boundary(snapshot, executor, data);
  return snapshot;
}

}  // namespace ws::app
