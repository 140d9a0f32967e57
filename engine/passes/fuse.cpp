// Fusion as a table of named rules. A rule matches consecutive ops whose intermediate results no other op reads.
#include <algorithm>

#include "engine/passes/fuse_layers.h"
#include "engine/passes/passes.h"

namespace ws {
namespace {

// Counts the reads of each buffer. A rule may remove an intermediate only if no other op reads it.
std::vector<int> use_counts(const Plan& plan) {
  std::vector<int> uses(plan.buffers.size());
  for (const Op& op : plan.ops)
    for (BufferId id : op.in) ++uses[index(id)];
  return uses;
}

// A window of ops that starts at `at`. A rule inspects it and replaces the matched ops by one op.
class Match {
 public:
  // `uses`: the use counts of the plan. They are kept up to date.
  Match(Plan& plan, size_t at, std::vector<int>& uses) : plan_(plan), at_(at), uses_(uses) {}

  bool kinds(std::initializer_list<OpKind> wanted) const {
    if (at_ + wanted.size() > plan_.ops.size()) return false;
    return std::equal(wanted.begin(), wanted.end(), plan_.ops.begin() + static_cast<std::ptrdiff_t>(at_),
                      [](OpKind kind, const Op& op) { return kind == op.kind; });
  }
  // The ops that may follow each other, by kind of the first and of the second.
  bool pair(std::initializer_list<OpKind> first, OpKind second) const {
    return std::ranges::any_of(first, [&](OpKind kind) { return kinds({kind, second}); });
  }
  bool is(size_t i, OpKind kind) const { return at_ + i < plan_.ops.size() && op(i).kind == kind; }
  const Op& op(size_t i) const { return plan_.ops[at_ + i]; }
  bool follows(OpKind kind) const { return at_ > 0 && plan_.ops[at_ - 1].kind == kind; }
  bool only_read_once(BufferId id) const { return uses_[index(id)] == 1; }
  const RunSpec& spec() const { return plan_.spec; }
  bool waits_for_late_transfer(const Op& update) const {
    return std::ranges::count(late_gradients(plan_), update_items(plan_, update)[0].gradient) > 0;
  }
  const Buffer& buffer(BufferId id) const { return plan_.buffer(id); }
  bool same_shape(BufferId a, BufferId b) const {
    return buffer(a).rows == buffer(b).rows && buffer(a).cols == buffer(b).cols;
  }

  const Op& maker(BufferId id) const {
    return *std::ranges::find_if(plan_.ops, [&](const Op& op) { return std::ranges::count(op.out, id) > 0; });
  }

  // Applies a rule that starts here and may change the whole plan.
  bool whole(bool (*rule)(Plan&, size_t, std::string_view), std::string_view name) {
    if (!rule(plan_, at_, name)) return false;
    uses_ = use_counts(plan_);
    return true;
  }

  void replace(size_t count, Op with, std::string_view rule) {
    with.note = "from rule " + std::string(rule);
    const auto first = plan_.ops.begin() + static_cast<std::ptrdiff_t>(at_);
    for (size_t i = 0; i < count; ++i)
      for (const BufferId id : op(i).in) --uses_[index(id)];
    for (const BufferId id : with.in) ++uses_[index(id)];
    plan_.ops.erase(first + 1, first + static_cast<std::ptrdiff_t>(count));
    plan_.ops[at_] = std::move(with);
  }

 private:
  Plan& plan_;
  size_t at_;
  std::vector<int>& uses_;
};

constexpr std::string_view kBiasActivation = "bias + activation", kBias = "bias",
                           kSoftmax = "softmax + cross-entropy + gradient", kSquared = "squared error + gradient",
                           kUpdate = "whole update", kLine = "linear step", kProductBias = "product + bias",
                           kProductGrad = "product + activation gradient", kProductBiasGrad = "product + bias gradient",
                           kProductActivation = "product + activation", kOutputLayer = "output layer",
                           kGradientUpdate = "gradient + update", kLineUpdate = "line + update",
                           kNormActivation = "norm + activation",
                           kActivationNormGrad = "activation gradient + norm gradient",
                           kNormPool = "norm + max pool",
                           kPoolActivationGrad = "pool gradient + activation gradient",
                           kResidualNorm = "residual + layer norm",
                           kResidualNormGrad = "layer norm gradient + residual",
                           kBiasGradient = "gradient + bias gradient",
                           kWeightGradients = "weight gradients together",
                           kPrepare = "crop + flip + normalise";

bool bias_activation(Match& m) {
  if (!m.kinds({OpKind::BroadcastBias, OpKind::Add, OpKind::Activate})) return false;
  const Op &spread = m.op(0), &add = m.op(1);
  if (add.in[1] != spread.out[0] || m.op(2).in[0] != add.out[0] || !m.only_read_once(spread.out[0])) return false;
  Op fused = m.op(2);
  fused.kind = OpKind::BiasActivate;
  fused.name = "bias " + fused.name;
  fused.in = {add.in[0], spread.in[0]};
  if (!m.only_read_once(add.out[0])) fused.out.push_back(add.out[0]);  // the gradient reads the pre-activation
  m.replace(3, fused, kBiasActivation);
  return true;
}

bool bias(Match& m) {
  if (!m.kinds({OpKind::BroadcastBias, OpKind::Add})) return false;
  const Op &spread = m.op(0), &add = m.op(1);
  if (add.in[1] != spread.out[0] || !m.only_read_once(spread.out[0])) return false;
  Op fused = add;
  fused.kind = OpKind::BiasActivate;
  fused.in = {add.in[0], spread.in[0]};
  m.replace(2, fused, kBias);
  return true;
}

// What happens to the pictures, one part after another, in one op.
bool preparation(Match& m) {
  size_t count = m.is(0, OpKind::Prepare) ? 1 : 0;
  while (count > 0 && m.is(count, OpKind::Prepare) && m.only_read_once(m.op(count - 1).out[0])) ++count;
  if (count < 2) return false;
  Op fused = m.op(0);
  fused.out = m.op(count - 1).out;
  for (size_t i = 1; i < count; ++i) {
    const Op& next = m.op(i);
    fused.name += " " + next.name;
    fused.preparation.crop += next.preparation.crop;
    fused.preparation.flip |= next.preparation.flip;
    if (!next.preparation.normalise) continue;
    fused.preparation.normalise = true;
    fused.preparation.scale = next.preparation.scale;
  }
  m.replace(count, fused, kPrepare);
  return true;
}

bool softmax_loss(Match& m) {
  if (!m.kinds({OpKind::Softmax, OpKind::CrossEntropy, OpKind::SoftmaxGrad})) return false;
  Op fused = m.op(0);
  fused.kind = OpKind::SoftmaxCrossEntropy;
  fused.name = "softmax cross-entropy";
  fused.in = {m.op(0).in[0], m.op(1).in[1]};
  fused.out = {m.op(2).out[0], m.op(1).out[0]};
  m.replace(3, fused, kSoftmax);
  return true;
}

bool squared_loss(Match& m) {
  if (!m.kinds({OpKind::SquaredError, OpKind::SquaredErrorGrad})) return false;
  Op fused = m.op(0);
  fused.kind = OpKind::SquaredErrorFused;
  fused.out = {m.op(1).out[0], m.op(0).out[0]};
  m.replace(2, fused, kSquared);
  return true;
}

// Updates all parameters in one op, or in two if the second must wait for the last gradients.
bool whole_update(Match& m) {
  if (!m.kinds({OpKind::Update, OpKind::Update})) return false;
  Op fused = m.op(0);
  fused.kind = OpKind::UpdateAll;
  const bool late = m.waits_for_late_transfer(fused);
  fused.name = std::string(to_string(m.spec().train.optimizer)) + (m.follows(OpKind::UpdateAll) ? " last" : " all");
  size_t count = 1;
  for (; m.is(count, OpKind::Update) && m.waits_for_late_transfer(m.op(count)) == late; ++count) {
    const Op& next = m.op(count);
    if (next.layer != fused.layer) fused.layer = -1;
    fused.in.insert(fused.in.end(), next.in.begin(), next.in.end());
    fused.out.insert(fused.out.end(), next.out.begin(), next.out.end());
  }
  m.replace(count, fused, kUpdate);
  return true;
}

bool linear_step(Match& m) {
  if (m.spec().model.kind != ModelKind::Linear) return false;
  if (!m.kinds({OpKind::MatMul, OpKind::BiasActivate, OpKind::SquaredErrorFused, OpKind::MatMul, OpKind::ColumnSum}))
    return false;
  const Buffer &weights = m.buffer(m.op(0).in[1]), &z = m.buffer(m.op(0).out[0]);
  if (weights.type != DType::F32 || weights.rows != 1 || z.cols != 1) return false;
  Op fused = m.op(2);
  fused.kind = OpKind::LinearStep;
  fused.name = "line";
  fused.in = {m.op(0).in[0], m.op(2).in[1], m.op(0).in[1], m.op(1).in[1]};
  fused.out = {m.op(3).out[0], m.op(4).out[0], m.op(2).out[1]};
  m.replace(5, fused, kLine);
  return true;
}

bool product_bias(Match& m) {
  if (!m.pair({OpKind::MatMul, OpKind::Conv}, OpKind::BiasActivate)) return false;
  const Op& after = m.op(1);
  if (after.in[0] != m.op(0).out[0] || m.op(0).epilogue != Epilogue::None || !m.only_read_once(after.in[0]))
    return false;
  Op fused = m.op(0);
  fused.epilogue = after.activation == Activation::None ? Epilogue::Bias : Epilogue::BiasActivate;
  fused.activation = after.activation;
  fused.in.push_back(after.in[1]);
  fused.out = after.out;
  m.replace(2, fused, kProductBias);
  return true;
}

bool product_activation(Match& m) {
  if (!m.pair({OpKind::MatMul, OpKind::Conv}, OpKind::Activate)) return false;
  const BufferId z = m.op(0).out[0];
  if (m.op(1).in[0] != z || m.op(0).epilogue != Epilogue::None) return false;
  Op fused = m.op(0);
  fused.epilogue = Epilogue::BiasActivate;
  fused.activation = m.op(1).activation;
  fused.out = m.op(1).out;
  if (!m.only_read_once(z)) fused.out.push_back(z);  // the gradient reads the pre-activation
  m.replace(2, fused, kProductActivation);
  return true;
}

bool product_gradient(Match& m) {
  if (!m.pair({OpKind::MatMul, OpKind::ConvDataGrad}, OpKind::ActivateGrad)) return false;
  const Op& after = m.op(1);
  if (after.in[0] != m.op(0).out[0] || !m.only_read_once(after.in[0])) return false;
  if (m.is(0, OpKind::MatMul) && !m.same_shape(after.in[0], after.out[0])) return false;  // dz of a picture, dh of its row
  Op fused = m.op(0);
  fused.epilogue = Epilogue::ActivateGrad;
  fused.activation = after.activation;
  fused.in.push_back(after.in[1]);
  fused.out = after.out;
  m.replace(2, fused, kProductGrad);
  return true;
}

bool product_bias_gradient(Match& m) {
  if (!m.pair({OpKind::MatMul, OpKind::ConvWeightGrad}, OpKind::ColumnSum)) return false;
  if (m.op(1).in[0] != m.op(0).in[1] || m.op(0).epilogue != Epilogue::None) return false;
  Op fused = m.op(0);
  fused.epilogue = Epilogue::BiasGrad;
  fused.out.push_back(m.op(1).out[0]);
  m.replace(2, fused, kProductBiasGrad);
  return true;
}

// The gradient of gelu reads what the norm would no longer store.
bool norm_activation(Match& m) {
  if (!m.pair({OpKind::BatchNorm, OpKind::BatchNormApply}, OpKind::Activate)) return false;
  const Op& after = m.op(1);
  if (after.in[0] != m.op(0).out[0] || !m.only_read_once(after.in[0]) || needs_preactivation(after.activation)) return false;
  Op fused = m.op(0);
  fused.name += " " + std::string(to_string(after.activation));
  fused.activation = after.activation;
  fused.out[0] = after.out[0];
  m.replace(2, fused, kNormActivation);
  return true;
}

bool activation_norm_gradient(Match& m) {
  if (!m.kinds({OpKind::ActivateGrad, OpKind::BatchNormGrad})) return false;
  const Op &slope = m.op(0), &norm = m.op(1);
  if (norm.in[0] != slope.out[0] || !m.only_read_once(norm.in[0]) || needs_preactivation(slope.activation)) return false;
  Op fused = norm;
  fused.activation = slope.activation;
  fused.in[0] = slope.in[0];
  fused.in.push_back(m.maker(norm.in[3]).in[2]);  // the shift, to compute again what the slope depends on
  m.replace(2, fused, kActivationNormGrad);
  return true;
}

// The pool reads the result of the activation, which is all that its slope needs.
bool pool_activation_gradient(Match& m) {
  if (!m.kinds({OpKind::MaxPoolGrad, OpKind::ActivateGrad})) return false;
  const Op &pool = m.op(0), &slope = m.op(1);
  if (slope.in[0] != pool.out[0] || slope.in[1] != pool.in[1] || !m.only_read_once(slope.in[0])) return false;
  if (needs_preactivation(slope.activation)) return false;
  Op fused = pool;
  fused.activation = slope.activation;
  fused.out = slope.out;
  m.replace(2, fused, kPoolActivationGrad);
  return true;
}

bool residual_norm(Match& m) {
  if (!m.kinds({OpKind::Add, OpKind::LayerNorm}) || m.op(1).in[0] != m.op(0).out[0]) return false;
  Op fused = m.op(1);
  fused.name = "residual " + fused.name;
  fused.in[0] = m.op(0).in[0];
  fused.in.push_back(m.op(0).in[1]);
  fused.out.push_back(m.op(0).out[0]);
  m.replace(2, fused, kResidualNorm);
  return true;
}

bool residual_norm_gradient(Match& m) {
  if (!m.kinds({OpKind::LayerNormGrad, OpKind::Add})) return false;
  const Op &norm = m.op(0), &add = m.op(1);
  if (add.in[0] != norm.out[0] || !m.only_read_once(norm.out[0])) return false;
  Op fused = norm;
  fused.in.push_back(add.in[1]);
  fused.out[0] = add.out[0];
  m.replace(2, fused, kResidualNormGrad);
  return true;
}

bool norm_pool(Match& m) { return m.whole(fuse_norm_pool, kNormPool); }
bool bias_gradient(Match& m) { return m.whole(fuse_bias_gradient, kBiasGradient); }
bool weight_gradients(Match& m) { return m.whole(fuse_weight_gradients, kWeightGradients); }
bool output_layer(Match& m) { return m.whole(fuse_output_layer, kOutputLayer); }
bool gradient_update(Match& m) { return m.whole(fuse_gradient_update, kGradientUpdate); }
bool line_update(Match& m) { return m.whole(fuse_line_update, kLineUpdate); }

struct Rule {
  std::string_view name;
  Fusion level;  // the lowest level that applies the rule
  bool (*apply)(Match&);
};

// Rules run in this order, each over the whole plan. A later rule can match the result of an earlier one.
constexpr Rule kRules[] = {
    {kPrepare, Fusion::Pointwise, preparation},
    {kBiasActivation, Fusion::Pointwise, bias_activation},
    {kBias, Fusion::Pointwise, bias},
    {kNormActivation, Fusion::Pointwise, norm_activation},
    {kActivationNormGrad, Fusion::Pointwise, activation_norm_gradient},
    {kPoolActivationGrad, Fusion::Pointwise, pool_activation_gradient},
    {kNormPool, Fusion::Pointwise, norm_pool},
    {kResidualNorm, Fusion::Pointwise, residual_norm},
    {kResidualNormGrad, Fusion::Pointwise, residual_norm_gradient},
    {kSoftmax, Fusion::Pointwise, softmax_loss},
    {kSquared, Fusion::Pointwise, squared_loss},
    {kLine, Fusion::Pointwise, linear_step},
    {kUpdate, Fusion::Pointwise, whole_update},
    {kProductBias, Fusion::Epilogue, product_bias},
    {kProductGrad, Fusion::Epilogue, product_gradient},
    {kBiasGradient, Fusion::Epilogue, bias_gradient},
    {kProductBiasGrad, Fusion::Epilogue, product_bias_gradient},
    {kProductActivation, Fusion::Epilogue, product_activation},
    {kOutputLayer, Fusion::Epilogue, output_layer},
    {kGradientUpdate, Fusion::Epilogue, gradient_update},
    {kLineUpdate, Fusion::Epilogue, line_update},
    {kWeightGradients, Fusion::Epilogue, weight_gradients},
};

std::vector<BufferId> still_used(const Plan& plan) {
  std::vector<bool> used(plan.buffers.size());
  for (const Op& op : plan.ops)
    for (const auto* ids : {&op.in, &op.out})
      for (BufferId id : *ids) used[index(id)] = true;
  std::vector<BufferId> renamed(plan.buffers.size(), BufferId::None);
  int32_t next = 0;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] || !lives_in_step(plan.buffers[i])) renamed[i] = static_cast<BufferId>(next++);
  return renamed;
}

void drop_unused_buffers(Plan& plan) {
  const auto renamed = still_used(plan);
  std::vector<Buffer> kept;
  for (size_t i = 0; i < renamed.size(); ++i)
    if (renamed[i] != BufferId::None) kept.push_back(plan.buffers[i]);
  plan.buffers = std::move(kept);
  for (Op& op : plan.ops)
    for (auto* ids : {&op.in, &op.out})
      for (BufferId& id : *ids) id = renamed[index(id)];
}

int apply_everywhere(Plan& plan, const Rule& rule) {
  int times = 0;
  std::vector<int> uses = use_counts(plan);
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    Match match(plan, i, uses);
    times += rule.apply(match);
  }
  return times;
}

}  // namespace

Plan fuse(Plan plan, Fusion level) {
  const size_t before = plan.ops.size();
  std::string rules;
  for (const Rule& rule : kRules) {
    if (rule.level > level) continue;
    if (const int times = apply_everywhere(plan, rule))
      rules += (rules.empty() ? "" : ", ") + std::string(rule.name) + " × " + std::to_string(times);
  }
  drop_unused_buffers(plan);
  if (!rules.empty()) plan.log.push_back(std::to_string(before) + " ops fused into " + std::to_string(plan.ops.size()) + ": " + rules + ".");
  return plan;
}

}  // namespace ws
