// Reads what a network has learned. It runs on the training thread, between two steps.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/executor/executor.h"

namespace ws::app {

struct LayerWeights {
  std::string name;  // "W1"
  int64_t rows = 0, cols = 0;
  std::vector<float> now, first;  // `first`: as initialised
};

struct SamplePrediction {
  int64_t row;
  int truth, guess;
  float confidence;
};

struct WeightsSnapshot {
  int64_t step = 0;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const std::vector<std::vector<float>>> parameters;  // by ParamId
  std::vector<LayerWeights> layers;
  std::vector<SamplePrediction> samples;    // classification
  std::vector<std::vector<int>> confusion;  // [truth][guess], over the rows below
  int64_t confusion_rows = 0, wrong_rows = 0;
  std::vector<SamplePrediction> wrong;  // the first of the wrong predictions
  std::vector<float> line_x, line_y;  // one feature and one target: the fitted curve
  std::vector<int> boundary;          // two features: class on a grid, row by row from the top
  int boundary_side = 0;
  float x_low = 0, x_high = 1, y_low = 0, y_high = 1;
};

struct StraightLine {
  double slope, at_zero;
};
std::optional<StraightLine> straight_line(const WeightsSnapshot& snapshot);  // nullopt if the fit is not straight

const data::Split& shown_part(const data::Dataset& data);  // the test part if there is one
WeightsSnapshot probe_weights(Executor& executor, const data::Dataset& data, const RunSpec& spec);

}  // namespace ws::app
