// The network that the user asked for, as parameters and layers, and the plan of one training step before any pass.
#pragma once
#include "datasets/dataset.h"
#include "engine/plan/plan.h"

namespace ws {

struct Parameter {
  std::string name;  // "W1", "b1"
  int layer = 0;
  int64_t rows = 0, cols = 0;  // weights (in, out); biases (1, out)
  bool is_bias = false;
  int64_t elements() const { return rows * cols; }
};

struct Model {
  int64_t inputs = 0, outputs = 0;
  std::vector<int64_t> widths;  // inputs, hidden..., outputs
  std::vector<Parameter> parameters;
  std::vector<std::string> layer_names;
  int64_t parameter_count() const;
};

// Throws Failure if the data and the model do not fit together.
Model make_model(const ModelSpec& spec, int64_t inputs, int64_t outputs);

// Returns the initial values of parameter `id`. Element i depends only on the seed, the parameter and i, so every
// device gets the same values.
std::vector<float> initial_values(const Model& model, const ModelSpec& spec, ParamId id, uint64_t seed);

// Builds the plan of one rank of spec.exec.gpus; `rows` counts the rows of the step over all ranks.
Plan build_plan(const RunSpec& spec, const Model& model, int64_t rows, int rank = 0);
Plan build_evaluation_plan(const RunSpec& spec, const Model& model, int64_t batch);

}  // namespace ws
