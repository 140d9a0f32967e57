#include "engine/plan/model.h"

#include <algorithm>
#include <cmath>

#include "profiling/base/philox.h"

namespace ws {

int64_t Model::parameter_count() const {
  int64_t sum = 0;
  for (const Parameter& p : parameters) sum += p.trained ? p.elements() : 0;
  return sum;
}

int64_t Model::parameters_of(size_t layer) const {
  int64_t sum = 0;
  for (const ParamId id : layer_parameters[layer])
    sum += parameters[index(id)].trained ? parameters[index(id)].elements() : 0;
  return sum;
}

LayerShape input_shape(const data::Dataset& data) {
  if (data.context > 0) return LayerShape::symbols(data.context);
  if (data.image_width > 0) return LayerShape::picture(data.image_height, data.image_width, data.image_channels);
  return data.features;
}

namespace {

// Makes the parameters of each layer, in the order in which the plan's builder takes them.
class ParameterMaker {
 public:
  ParameterMaker(Model& model, bool bias) : model_(model), bias_(bias) {}

  void all() {
    model_.layer_parameters.resize(model_.layers.size());
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      at_ = i;
      of_layer(model_.layers[i]);
      if (model_.layers[i].layer.kind == LayerKind::Join) end_residual();
    }
    for (Parameter* p : ends_) p->share = 1 / std::sqrt(static_cast<double>(ends_.size()));
  }

 private:
  void of_layer(const NetworkLayer& l) {
    const std::string n = std::to_string(l.number + 1);
    const Window w{1, l.in.height, l.in.width, l.in.channels, l.layer.window_h, l.layer.window_w};
    switch (l.layer.kind) {
      case LayerKind::Linear:
        return weight("W" + n, "b" + n, l.out.is_text() ? l.in.features : l.in.elements(), l.layer.width, l.layer.bias);
      case LayerKind::Conv:
        weight("W" + n, "b" + n, w.kh * w.kw * w.c, l.layer.width, l.layer.bias);
        return as_window(l);
      case LayerKind::BatchNorm:
        gain(n, l.in.cols());
        statistic("mean" + n, l.in.cols(), Start::Zero);
        return statistic("variance" + n, l.in.cols(), Start::One);
      case LayerKind::LayerNorm:
        return gain(n, l.in.cols());
      case LayerKind::Embed:
        table("table" + n, model_.outputs, l.layer.width);
        if (l.layer.positions) table("positions" + n, l.in.time, l.layer.width);
        return;
      case LayerKind::Attention:
        weight("Wqkv" + n, "bqkv" + n, l.in.features, 3 * l.in.features, l.layer.bias);
        return weight("Wo" + n, "bo" + n, l.in.features, l.in.features, l.layer.bias);
      default:
        return;
    }
  }

  Parameter& add(const std::string& name, int64_t rows, int64_t cols) {
    model_.layer_parameters[at_].push_back(static_cast<ParamId>(model_.parameters.size()));
    Parameter p;
    p.name = name;
    p.layer = model_.layers[at_].number;
    p.rows = rows;
    p.cols = cols;
    model_.parameters.push_back(p);
    return model_.parameters.back();
  }

  // One value for each column. It does not decay.
  Parameter& row(const std::string& name, int64_t cols, Start start) {
    Parameter& p = add(name, 1, cols);
    p.is_bias = true;
    p.decays = false;
    p.start = start;
    return p;
  }

  void weight(const std::string& name, const std::string& bias, int64_t in, int64_t out, bool biased) {
    Parameter& p = add(name, in, out);
    p.fan_in = in;
    p.fan_out = out;
    if (biased && bias_) row(bias, out, Start::Bias);
  }

  // The weights of a convolution are one row for each channel of the output.
  void as_window(const NetworkLayer& l) {
    Parameter& p = model_.parameters[index(model_.layer_parameters[at_][0])];
    std::swap(p.rows, p.cols);
    p.fan_out = l.layer.width * l.layer.window_h * l.layer.window_w;
  }

  void gain(const std::string& n, int64_t cols) {
    row("gain" + n, cols, Start::One);
    row("shift" + n, cols, Start::Zero);
  }

  void statistic(const std::string& name, int64_t cols, Start start) { row(name, cols, start).trained = false; }
  void table(const std::string& name, int64_t rows, int64_t cols) { add(name, rows, cols).start = Start::Table; }

  // The last weight of the residual that ends here.
  void end_residual() {
    for (size_t i = model_.parameters.size(); i-- > 0;)
      if (model_.parameters[i].start == Start::Weight) return ends_.push_back(&model_.parameters[i]);
  }

  Model& model_;
  bool bias_;
  size_t at_ = 0;
  std::vector<Parameter*> ends_;
};

}  // namespace

Model make_model(const ModelSpec& spec, LayerShape input, int64_t outputs) {
  if (input.elements() < 1 || outputs < 1) throw Failure("model: the data set has no features or no target");
  Model model;
  model.input = input;
  model.inputs = input.elements();
  model.outputs = outputs;
  model.predictions = input.is_text() ? input.time : 1;
  model.layers = resolve(layers_of(spec), input, outputs);
  for (const NetworkLayer& l : model.layers) {
    if (static_cast<size_t>(l.number) < model.layer_names.size() || l.name.empty()) continue;
    model.layer_names.push_back(l.name);
    model.layer_parts.push_back(l.part);
  }
  model.parameters.reserve(4 * model.layers.size());  // the maker keeps pointers to some of them
  ParameterMaker(model, spec.bias).all();
  return model;
}

Model make_model(const ModelSpec& spec, const data::Dataset& data) {
  Model model = make_model(spec, input_shape(data), data.outputs);
  const size_t channels = std::min<size_t>(data.channel_mean.size(), kMostChannels);
  std::copy_n(data.channel_mean.begin(), channels, model.pixels.mean);
  std::copy_n(data.channel_factor.begin(), channels, model.pixels.factor);
  return model;
}

std::optional<Refusal> why_not_prepared(const data::DataSpec& data, LayerShape input) {
  if (data.crop == 0 && !data.flip && !data.normalise) return {};
  const std::string word = data.crop > 0 ? "crop" : data.flip ? "flip" : "normalise";
  if (!input.is_picture())
    return Refusal{"data." + word, word + ": " + data.name + " has no pictures; " +
                                       (data.crop > 0 ? "choose 0." : "switch it off.")};
  if (const int64_t side = std::min(input.height, input.width); data.crop >= side)
    return Refusal{"data.crop", "crop: " + std::to_string(data.crop) + " pixels of padding leave nothing of a picture with a side of " +
                                    std::to_string(side) + "; choose at most " + std::to_string(side - 1) + "."};
  if (input.channels > kMostChannels)
    return Refusal{"data." + word, word + ": a picture has at most " + std::to_string(kMostChannels) + " channels."};
  return {};
}

namespace {

constexpr float kSmallDeviation = 0.02f;

void fill_random(std::vector<float>& values, const Parameter& p, Init init, uint64_t seed, uint32_t stream) {
  const double fan_in = static_cast<double>(p.fan_in), fan_out = static_cast<double>(p.fan_out);
  const auto bound = static_cast<float>(std::sqrt(6.0 / (fan_in + fan_out)));
  auto deviation = static_cast<float>(init == Init::Kaiming ? std::sqrt(2.0 / fan_in) : 1.0);
  if (init == Init::Small) deviation = kSmallDeviation * static_cast<float>(p.share);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = init == Init::Xavier ? bound * (2 * data::uniform_at(seed, stream, i) - 1)
                                     : deviation * data::normal_at(seed, stream, i);
}

void fill_table(std::vector<float>& values, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = kSmallDeviation * data::normal_at(seed, stream, i);
}

}  // namespace

std::vector<float> initial_values(const Model& model, const ModelSpec& spec, ParamId id, uint64_t seed) {
  const Parameter& p = model.parameters[index(id)];
  const auto stream = static_cast<uint32_t>(index(id));
  std::vector<float> values(static_cast<size_t>(p.elements()), p.start == Start::One ? 1.0f : 0.0f);
  if (spec.kind == ModelKind::Linear)
    std::fill(values.begin(), values.end(), static_cast<float>(p.is_bias ? spec.start_b : spec.start_w));
  else if (p.start == Start::Weight && spec.init != Init::Zeros)
    fill_random(values, p, spec.init, seed, stream);
  else if (p.start == Start::Table)
    fill_table(values, seed, stream);
  return values;
}

}  // namespace ws
