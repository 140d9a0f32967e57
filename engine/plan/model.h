// The network that the user asked for, as parameters and layers, and the plan of one training step before any pass.
#pragma once
#include "datasets/dataset.h"
#include "engine/plan/layers.h"
#include "engine/plan/plan.h"

namespace ws {

// What a parameter holds before the first step. A bias of a product starts at zero.
enum class Start : uint8_t { Weight, Bias, Table, Zero, One };

struct Parameter {
  std::string name;  // "W1", "b1"
  int layer = 0;
  int64_t rows = 0, cols = 0;  // linear: (in, out); conv: (channels, window · channels of the input); biases (1, out)
  bool is_bias = false;        // one value for each column: biases, gains, running statistics
  bool decays = true;          // weight decay pulls it to zero
  bool trained = true;         // an optimizer updates it; batch norm's running statistics have none
  Start start = Start::Weight;
  int64_t fan_in = 0, fan_out = 0;  // Weight: terms of an output, and outputs of an input
  double share = 1;                 // init small: weights that end a residual start smaller
  int64_t elements() const { return rows * cols; }
};

struct Model {
  LayerShape input;
  int64_t inputs = 0, outputs = 0;
  int64_t predictions = 1;  // for each row of data: 1, or one for each symbol
  PixelScale pixels;        // what data.normalise does to each channel; before the data is loaded: nothing
  std::vector<NetworkLayer> layers;
  std::vector<std::vector<ParamId>> layer_parameters;  // by layer
  std::vector<Parameter> parameters;
  std::vector<std::string> layer_names, layer_parts;  // by NetworkLayer::number
  int64_t parameter_count() const;                    // without running statistics
  int64_t parameters_of(size_t layer) const;
};

// What a row of a data set is to a network.
LayerShape input_shape(const data::Dataset& data);

// Throws Failure if the data and the model do not fit together.
Model make_model(const ModelSpec& spec, LayerShape input, int64_t outputs);
Model make_model(const ModelSpec& spec, const data::Dataset& data);

// Why data.crop, data.flip or data.normalise cannot be done to rows of this shape; nullopt if they can.
std::optional<Refusal> why_not_prepared(const data::DataSpec& data, LayerShape input);

// Returns the initial values of parameter `id`. Element i depends only on the seed, the parameter and i, so every
// device gets the same values.
std::vector<float> initial_values(const Model& model, const ModelSpec& spec, ParamId id, uint64_t seed);

// Builds the plan of one rank of spec.exec.gpus; `rows` counts the rows of the step over all ranks.
Plan build_plan(const RunSpec& spec, const Model& model, int64_t rows, int rank = 0);
Plan build_evaluation_plan(const RunSpec& spec, const Model& model, int64_t batch);
// The buffer of that plan that holds what a layer gives, by layer. Only fusion off keeps all of them.
std::vector<BufferId> layer_outputs(const RunSpec& spec, const Model& model, int64_t batch);

}  // namespace ws
