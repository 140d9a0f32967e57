#include "engine/plan/model.h"

#include <algorithm>
#include <cmath>

#include "profiling/base/philox.h"

namespace ws {

int64_t Model::parameter_count() const {
  int64_t sum = 0;
  for (const Parameter& p : parameters) sum += p.elements();
  return sum;
}

Model make_model(const ModelSpec& spec, int64_t inputs, int64_t outputs) {
  if (inputs < 1 || outputs < 1) throw Failure("model: the data set has no features or no target");
  Model model{inputs, outputs, {inputs}, {}, {}};
  if (spec.kind == ModelKind::Mlp) model.widths.insert(model.widths.end(), spec.hidden.begin(), spec.hidden.end());
  model.widths.push_back(outputs);
  for (size_t l = 0; l + 1 < model.widths.size(); ++l) {
    const std::string number = std::to_string(l + 1);
    model.layer_names.push_back("fc" + number);
    model.parameters.push_back({"W" + number, static_cast<int>(l), model.widths[l], model.widths[l + 1], false});
    if (spec.bias) model.parameters.push_back({"b" + number, static_cast<int>(l), 1, model.widths[l + 1], true});
  }
  return model;
}

namespace {

void fill_random(std::vector<float>& values, const Parameter& p, Init init, uint64_t seed, uint32_t stream) {
  const double fan_in = static_cast<double>(p.rows), fan_out = static_cast<double>(p.cols);
  const auto bound = static_cast<float>(std::sqrt(6.0 / (fan_in + fan_out)));
  const auto deviation = static_cast<float>(init == Init::Kaiming ? std::sqrt(2.0 / fan_in) : 1.0);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = init == Init::Xavier ? bound * (2 * data::uniform_at(seed, stream, i) - 1)
                                     : deviation * data::normal_at(seed, stream, i);
}

}  // namespace

std::vector<float> initial_values(const Model& model, const ModelSpec& spec, ParamId id, uint64_t seed) {
  const Parameter& p = model.parameters[index(id)];
  std::vector<float> values(static_cast<size_t>(p.elements()), 0.0f);
  if (spec.kind == ModelKind::Linear)
    std::fill(values.begin(), values.end(), static_cast<float>(p.is_bias ? spec.start_b : spec.start_w));
  else if (!p.is_bias && spec.init != Init::Zeros)
    fill_random(values, p, spec.init, seed, static_cast<uint32_t>(index(id)));
  return values;
}

namespace {

DType activation_type(Precision precision) {
  if (precision == Precision::Bf16) return DType::Bf16;
  return precision == Precision::Fp16 ? DType::F16 : DType::F32;
}

// Builds the plan of one step layer by layer, as a simple library would run it: one op and one buffer per operation.
class Builder {
 public:
  Builder(const RunSpec& spec, const Model& model, int64_t batch) : model_(model), batch_(batch) {
    plan_.spec = spec;
    plan_.batch = plan_.step_rows = batch;
    plan_.layer_names = model.layer_names;
    type_ = activation_type(spec.exec.precision);
    for (size_t i = 0; i < model.parameters.size(); ++i) add_parameter(static_cast<ParamId>(i));
    metrics_ = add("metrics", Role::Metric, 1, 2, DType::F32);
  }

  Plan training() && {
    load();
    forward(Phase::Forward);
    loss_and_gradient();
    backward();
    update();
    return std::move(plan_);
  }

  Plan evaluation() && {
    load();
    forward(Phase::Evaluate);
    loss(Phase::Evaluate);
    return std::move(plan_);
  }

 private:
  const RunSpec& spec() const { return plan_.spec; }
  int layers() const { return static_cast<int>(model_.layer_names.size()); }
  bool classes() const { return spec().model.loss == LossKind::CrossEntropy; }

  BufferId add(const std::string& name, Role role, int64_t rows, int64_t cols, DType type,
               ParamId param = ParamId::None, int slot = 0) {
    plan_.buffers.push_back({name, role, type, rows, cols, param, slot, -1});
    return static_cast<BufferId>(plan_.buffers.size() - 1);
  }
  BufferId temp(const std::string& name, int64_t cols, DType type) { return add(name, Role::Temp, batch_, cols, type); }

  Op& op(OpKind kind, Phase phase, int layer, std::string name, std::vector<BufferId> in, std::vector<BufferId> out) {
    Op made;
    made.kind = kind;
    made.phase = phase;
    made.layer = layer;
    made.name = std::move(name);
    made.in = std::move(in);
    made.out = std::move(out);
    plan_.ops.push_back(std::move(made));
    return plan_.ops.back();
  }

  // A weight has a 16-bit shadow if products run in 16 bits. A bias has one if it is added to a 16-bit result.
  void add_parameter(ParamId id) {
    const Parameter& p = model_.parameters[index(id)];
    master_.push_back(add(p.name, Role::Parameter, p.rows, p.cols, DType::F32, id));
    plan_.buffer(master_.back()).decays = !p.is_bias;
    const bool shadowed = type_ != DType::F32 && !(p.is_bias && p.layer == layers() - 1);
    used_.push_back(shadowed ? add(p.name + "'", Role::Shadow, p.rows, p.cols, type_, id) : master_.back());
    std::vector<BufferId> moments;
    for (int slot = 0; slot < moments_of(spec().train.optimizer); ++slot)
      moments.push_back(add((slot ? "v." : "m.") + p.name, Role::State, p.rows, p.cols, DType::F32, id, slot));
    states_.push_back(moments);
    gradient_.push_back(BufferId::None);
  }

  size_t param_index(int layer, bool bias) const {
    for (size_t i = 0; i < model_.parameters.size(); ++i)
      if (model_.parameters[i].layer == layer && model_.parameters[i].is_bias == bias) return i;
    return model_.parameters.size();
  }

  void load() {
    x_ = add("x", Role::Batch, batch_, model_.inputs, type_);
    y_ = add("y", Role::Batch, batch_, classes() ? 1 : model_.outputs, classes() ? DType::I32 : DType::F32, ParamId::None, 1);
    op(OpKind::LoadBatch, Phase::Input, -1, "batch", {}, {x_, y_});
  }

  void forward(Phase phase) {
    BufferId input = x_;
    for (int l = 0; l < layers(); ++l) input = layer(l, input, phase);
  }

  BufferId layer(int l, BufferId input, Phase phase) {
    const std::string n = std::to_string(l + 1), fc = model_.layer_names[static_cast<size_t>(l)];
    const int64_t width = model_.widths[static_cast<size_t>(l) + 1];
    const bool last = l == layers() - 1;
    const DType type = last ? DType::F32 : type_;
    BufferId out = temp("z" + n, width, type);
    op(OpKind::MatMul, phase, l, fc, {input, used_[param_index(l, false)]}, {out});
    if (spec().model.bias) {
      const BufferId spread = temp("c" + n, width, type), sum = temp("s" + n, width, type);
      op(OpKind::BroadcastBias, phase, l, "spread b" + n, {used_[param_index(l, true)]}, {spread});
      op(OpKind::Add, phase, l, "+ b" + n, {out, spread}, {sum});
      out = sum;
    }
    inputs_.push_back(input);
    if (last || spec().model.activation == Activation::None) {
      saved_.push_back(BufferId::None);
      return output_ = out;
    }
    const BufferId h = temp("h" + n, width, type);
    op(OpKind::Activate, phase, l, std::string(to_string(spec().model.activation)) + n, {out}, {h}).activation =
        spec().model.activation;
    saved_.push_back(needs_preactivation(spec().model.activation) ? out : h);
    return output_ = h;
  }

  void loss(Phase phase) {
    if (!classes()) {
      op(OpKind::SquaredError, phase, -1, "mse", {output_, y_}, {metrics_});
      return;
    }
    probabilities_ = temp("p", model_.outputs, DType::F32);
    op(OpKind::Softmax, phase, -1, "softmax", {output_}, {probabilities_});
    op(OpKind::CrossEntropy, phase, -1, "xent", {probabilities_, y_}, {metrics_});
  }

  void loss_and_gradient() {
    loss(Phase::Loss);
    dz_ = temp("dz" + std::to_string(layers()), model_.outputs, type_);
    if (classes())
      op(OpKind::SoftmaxGrad, Phase::Loss, -1, "xent grad", {probabilities_, y_}, {dz_});
    else
      op(OpKind::SquaredErrorGrad, Phase::Loss, -1, "mse grad", {output_, y_}, {dz_});
  }

  void backward() {
    for (int l = layers() - 1; l >= 0; --l) {
      parameter_gradients(l);
      if (l > 0) input_gradient(l);
    }
  }

  void parameter_gradients(int l) {
    const std::string n = std::to_string(l + 1);
    const size_t w = param_index(l, false), b = param_index(l, true);
    gradient_[w] = add("dW" + n, Role::Temp, plan_.buffer(master_[w]).rows, plan_.buffer(master_[w]).cols, DType::F32);
    op(OpKind::MatMul, Phase::Backward, l, "dW" + n, {inputs_[static_cast<size_t>(l)], dz_}, {gradient_[w]})
        .transpose_a = true;
    if (!spec().model.bias) return;
    gradient_[b] = add("db" + n, Role::Temp, 1, plan_.buffer(master_[b]).cols, DType::F32);
    op(OpKind::ColumnSum, Phase::Backward, l, "db" + n, {dz_}, {gradient_[b]});
  }

  void input_gradient(int l) {
    const std::string below = std::to_string(l);
    const int64_t width = model_.widths[static_cast<size_t>(l)];
    const BufferId saved = saved_[static_cast<size_t>(l) - 1];
    const bool bent = saved != BufferId::None;
    const BufferId dh = temp((bent ? "dh" : "dz") + below, width, type_);
    op(OpKind::MatMul, Phase::Backward, l, "dX" + std::to_string(l + 1), {dz_, used_[param_index(l, false)]}, {dh})
        .transpose_b = true;
    dz_ = dh;
    if (!bent) return;
    dz_ = temp("dz" + below, width, type_);
    const auto act = spec().model.activation;
    op(OpKind::ActivateGrad, Phase::Backward, l - 1, std::string(to_string(act)) + "′" + below, {dh, saved}, {dz_})
        .activation = act;
  }

  void update() {
    if (spec().exec.precision == Precision::Fp16) op(OpKind::CheckFinite, Phase::Update, -1, "finite?", gradient_, {});
    if (spec().train.clip > 0) op(OpKind::ClipGradients, Phase::Update, -1, "clip", gradient_, gradient_);
    for (size_t i = 0; i < master_.size(); ++i) {
      std::vector<BufferId> in{master_[i], gradient_[i]}, out{master_[i]};
      in.insert(in.end(), states_[i].begin(), states_[i].end());
      if (used_[i] != master_[i]) out.push_back(used_[i]);
      out.insert(out.end(), states_[i].begin(), states_[i].end());
      op(OpKind::Update, Phase::Update, model_.parameters[i].layer,
         std::string(to_string(spec().train.optimizer)) + " " + model_.parameters[i].name, std::move(in),
         std::move(out));
    }
  }

  const Model& model_;
  int64_t batch_;
  DType type_ = DType::F32;
  Plan plan_;
  BufferId x_{}, y_{}, metrics_{}, output_{}, probabilities_{}, dz_{};
  std::vector<BufferId> master_, used_, gradient_;  // by ParamId
  std::vector<std::vector<BufferId>> states_;       // by ParamId
  std::vector<BufferId> inputs_, saved_;            // by layer
};

}  // namespace

Plan build_plan(const RunSpec& spec, const Model& model, int64_t rows, int rank) {
  const int ranks = static_cast<int>(std::max<int64_t>(1, spec.exec.gpus));
  Plan plan = Builder(spec, model, rows_of_rank(rows, rank, ranks).count).training();
  plan.step_rows = rows;
  plan.ranks = ranks;
  return plan;
}

Plan build_evaluation_plan(const RunSpec& spec, const Model& model, int64_t batch) {
  return Builder(spec, model, batch).evaluation();
}

}  // namespace ws
