// Inspects a network: runs single rows through a copy of its weights and keeps what every layer gives. It shares
// nothing with the executor that trains, so it cannot change a loss.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/executor/executor.h"

namespace ws {

// What one row of data becomes on its way through a network.
struct Inspection {
  std::shared_ptr<const Model> model;        // of the row: a short text has a model of its length
  std::vector<std::vector<float>> outputs;   // by layer of the model: as many values as its shape has
  std::vector<std::vector<float>> attention;  // by layer: shares (heads, time, time); empty for other layers
};

// How a network continues a text.
struct Sampling {
  int64_t symbols = 100;
  double temperature = 1;  // 0: always the most likely symbol
  uint64_t seed = 0;       // the same seed, text and weights give the same symbols
};

class Inspector {
 public:
  Inspector(const RunSpec& spec, const data::Dataset& data);
  ~Inspector();

  void set_parameters(std::vector<std::vector<float>> parameters);  // by ParamId
  // `row`: all values of a row, or 1 to context symbols of a text.
  Inspection inspect(std::span<const float> row);
  // Asks `more` behind each symbol and ends early if it is false. Returns the new symbols.
  std::vector<int32_t> write(std::vector<int32_t> text, const Sampling& how, const std::function<bool()>& more);

 private:
  struct Sized;
  Sized& sized(int64_t time);
  std::vector<float> predict(Sized& net, std::span<const float> row);
  int32_t next_symbol(const std::vector<int32_t>& text, const Sampling& how, uint64_t at);

  RunSpec spec_;
  LayerShape input_;
  int64_t outputs_;
  PixelScale pixels_;
  data::Dataset nothing_;  // an executor wants a data set
  TrainState state_;
  std::map<int64_t, std::unique_ptr<Sized>> by_time_;
};

}  // namespace ws
