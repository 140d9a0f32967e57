#include "engine/cuda/executor/dispatch.h"

#include <algorithm>
#include <array>
#include <span>

namespace ws::cuda {

Tensor Launching::tensor(BufferId id) const {
  if (id == BufferId::None) return {};
  const Buffer& buffer = bound.plan.buffer(id);
  Tensor tensor{bound.address[index(id)], buffer.type, buffer.rows, buffer.cols};
  if (bound.feed == Feed::Clock && buffer.role == Role::Batch) {
    tensor.clock = at.clock;
    tensor.view_offset = at.offset;
  }
  return tensor;
}

namespace {

// True if another kernel of the step runs before the op. The last update ends before that kernel begins its work, so the
// op may read weights while that kernel still runs.
bool runs_later(const Plan& plan, const Op& op) {
  const auto first = std::ranges::find_if(
      plan.ops, [](const Op& o) { return o.kind != OpKind::LoadBatch && !is_bookkeeping(o.kind); });
  return first != plan.ops.end() && first->out != op.out;
}

}  // namespace

Product product_of(const Launching& with, const Op& op) {
  Product p;
  p.a = with.tensor(op.in[0]);
  p.b = with.tensor(op.in[1]);
  p.c = with.tensor(op.out[0]);
  p.transpose_a = op.transpose_a;
  p.transpose_b = op.transpose_b;
  p.epilogue = op.epilogue;
  p.activation = op.activation;
  p.precision = with.spec().exec.precision;
  p.accumulate = with.spec().exec.accumulate;
  const Role role = with.bound.plan.buffer(op.in[1]).role;  // weights do not change between two updates
  p.b_is_settled = runs_later(with.bound.plan, op) && (role == Role::Parameter || role == Role::Shadow);
  const bool second_out = op.out.size() > 1;
  if (op.epilogue == Epilogue::Bias || op.epilogue == Epilogue::BiasActivate) {
    if (op.in.size() > 2) p.bias = with.tensor(op.in[2]);
    if (second_out) p.saved = with.tensor(op.out[1]);
  }
  if (op.epilogue == Epilogue::ActivateGrad) p.saved = with.tensor(op.in[2]);
  if (op.epilogue == Epilogue::BiasGrad) p.bias_grad = with.tensor(op.out[1]);
  return p;
}

Convolution convolution_of(const Launching& with, const Op& op) {
  using Pass = Convolution::Pass;
  Convolution c;
  c.window = op.window, c.epilogue = op.epilogue, c.activation = op.activation;
  c.precision = with.spec().exec.precision;
  c.by_warps = with.spec().exec.matmul != Matmul::Library;
  c.pass = op.kind == OpKind::Conv ? Pass::Forward : op.kind == OpKind::ConvDataGrad ? Pass::DataGrad : Pass::WeightGrad;
  const auto in = [&](size_t i) { return i < op.in.size() ? with.tensor(op.in[i]) : Tensor{}; };
  const auto out = [&](size_t i) { return i < op.out.size() ? with.tensor(op.out[i]) : Tensor{}; };
  if (c.pass == Pass::WeightGrad) {
    c.x = in(0), c.z = in(1), c.w = out(0), c.bias_grad = out(1);
    return c;
  }
  const bool forward = c.pass == Pass::Forward;
  (forward ? c.x : c.z) = in(0), c.w = in(1), (forward ? c.z : c.x) = out(0);
  (forward ? c.bias : c.saved) = in(2);
  if (forward) c.saved = out(1);
  c.w_is_settled = runs_later(with.bound.plan, op);
  return c;
}

namespace {

// The op's operands as tensors, in the order of the plan.
struct Operands {
  const Launching& with;
  const Op& op;
  size_t number;
  Tensor in(size_t i) const { return i < op.in.size() ? with.tensor(op.in[i]) : Tensor{}; }
  Tensor out(size_t i) const { return i < op.out.size() ? with.tensor(op.out[i]) : Tensor{}; }
};

OptimizerRef optimizer_of(const Launching& with) {
  const TrainSpec& t = with.spec().train;
  const auto f = [](double v) { return static_cast<float>(v); };
  OptimizerRef ref{t.optimizer, f(t.momentum), f(t.beta1), f(t.beta2), f(t.epsilon), f(t.weight_decay), with.at};
  ref.scale = with.scale();
  ref.nesterov = t.nesterov;
  return ref;
}

ParamRef param_of(const Launching& with, const UpdateItem& item) {
  ParamRef ref;
  ref.w = with.storage.parameter(item.param);
  ref.grad = with.tensor(item.gradient);
  ref.shadow = with.tensor(item.shadow);
  if (item.moment[0] != BufferId::None) ref.m = with.storage.moment(0, item.param);
  if (item.moment[1] != BufferId::None) ref.v = with.storage.moment(1, item.param);
  ref.n = with.bound.plan.buffer(item.master).elements();
  ref.decays = with.bound.plan.buffer(item.master).decays;
  return ref;
}

// The rows whose losses the only update of a plan adds up, which saves the op that made them a round trip.
int64_t joined_rows(const Plan& plan) {
  constexpr int64_t fewer = 1024;  // for more rows an output layer has a kernel that adds them itself
  const auto times = [&](OpKind kind) {  // a person's kernel adds no losses
    return std::ranges::count_if(plan.ops, [&](const Op& op) { return op.kind == kind && !op.own; });
  };
  if (times(OpKind::UpdateAll) + times(OpKind::GradientUpdate) != 1) return 0;
  const int64_t rows = plan.loss_rows();
  if (times(OpKind::OutputLayer) > 0) return rows <= fewer ? rows : 0;
  return times(OpKind::SoftmaxCrossEntropy) > 0 && rows <= kMostJoinedRows ? rows : 0;
}
JoinLosses joined_losses(const Launching& with) {
  return {with.scratch, static_cast<int>(joined_rows(with.bound.plan))};
}

// Where parts of the parameter gradients may stay that the op makes, its results from `first` on. Null if another op than
// the update of all parameters reads them.
KeptParts* parts_of_update(const Operands& o, size_t first) {
  const auto gradients = std::span(o.op.out).subspan(first);
  const bool only_updates = !o.with.alone && std::ranges::all_of(o.with.bound.plan.ops, [&](const Op& reader) {
    const bool reads = std::ranges::any_of(reader.in, [&](BufferId id) { return std::ranges::count(gradients, id) > 0; });
    return !reads || (reader.kind == OpKind::UpdateAll && !reader.own) || reader.kind == OpKind::Free;
  });
  return only_updates ? &kept_parts(o.with.blas) : nullptr;
}

void launch_update(const Operands& o) {
  KeptParts& kept = kept_parts(o.with.blas);
  std::vector<ParamRef> refs;
  for (const UpdateItem& item : o.with.bound.items[o.number]) {
    refs.push_back(param_of(o.with, item));
    refs.back().parts = kept.of(refs.back().grad.data);
  }
  kept.forget();
  const OptimizerRef optimizer = optimizer_of(o.with);
  if (o.op.kind == OpKind::Update)
    update(o.with.queue, optimizer, refs[0]);
  else
    update_all(o.with.queue, optimizer, refs, joined_losses(o.with));
}

void launch_output_layer(const Operands& o) {
  const OutputParts parts = output_parts(o.op);
  const auto t = [&](BufferId id) { return o.with.tensor(id); };
  OutputLayer layer{t(parts.h), t(parts.w), t(parts.bias), t(parts.y)};
  layer.loss = o.with.spec().model.loss;
  layer.dz = t(parts.dz);
  layer.dz_before = t(parts.dz_before);
  layer.dw = t(parts.dw), layer.db = t(parts.db), layer.db_before = t(parts.db_before);
  layer.saved = t(parts.saved);
  layer.activation = parts.saved == BufferId::None ? Activation::None : o.op.activation;
  layer.scale = o.with.scale();
  layer.at = o.with.at;
  layer.join_later = joined_rows(o.with.bound.plan) > 0;
  layer.w_is_settled = runs_later(o.with.bound.plan, o.op);
  output_layer(o.with.queue, o.with.scratch, layer);
}

void launch_gradient_update(const Operands& o) {
  std::vector<LayerUpdate> layers;
  for (const GradientItem& item : gradient_items(o.with.bound.plan, o.op)) {
    layers.push_back({o.with.tensor(item.a), o.with.tensor(item.dz), param_of(o.with, item.weight), {}});
    if (item.bias.master != BufferId::None) layers.back().bias = param_of(o.with, item.bias);
  }
  grad_update(o.with.queue, optimizer_of(o.with), o.with.spec().exec.precision, layers, joined_losses(o.with));
}

void launch_linear_update(const Operands& o) {
  const auto items = update_items(o.with.bound.plan, o.op);
  const OptimizerRef optimizer = optimizer_of(o.with);
  LinearStep step{o.in(0), o.in(1)};
  step.w_param = param_of(o.with, items[0]);
  step.b_param = param_of(o.with, items[1]);
  step.w = step.w_param.w;
  step.b = step.b_param.w;
  step.optimizer = &optimizer;
  step.data_is_constant = o.with.bound.feed == Feed::Whole;
  step.held = takes_many_steps(o.with.bound);
  step.steps = o.with.steps;
  step.at = o.with.at;
  linear_step(o.with.queue, o.with.scratch, step);
}

std::vector<Tensor> gradients_of(const Operands& o) {
  std::vector<Tensor> gradients;
  for (BufferId id : o.op.in) gradients.push_back(o.with.tensor(id));
  return gradients;
}

void launch_check_finite(const Operands& o) {
  check_finite(o.with.queue, o.with.scratch, gradients_of(o), o.with.storage.scale());
}

void launch_clip(const Operands& o) {
  const auto limit = static_cast<float>(o.with.spec().train.clip);
  clip_gradients(o.with.queue, o.with.scratch, gradients_of(o), limit, o.with.scale());
}

Labels labels_of(const Operands& o) {
  return {o.in(1), o.op.phase == Phase::Evaluate ? 0 : o.with.spec().train.label_smoothing};
}

void launch_weight_gradients(const Operands& o) {
  std::vector<WeightGradient> layers;
  for (const WeightGradientItem& item : weight_gradient_items(o.op))
    layers.push_back({o.with.tensor(item.a), o.with.tensor(item.dz), o.with.tensor(item.dw), o.with.tensor(item.db)});
  weight_gradients(o.with.queue, o.with.spec().exec.precision, layers);
}

// ---- transformers ----
Precision precision_of(const Operands& o) { return o.with.spec().exec.precision; }

void launch_layer_norm(const Operands& o) {
  layer_norm(o.with.queue, {o.in(0), o.in(1), o.in(2), o.out(0), o.out(1), o.out(2), o.in(3), o.out(3)});
}

void launch_layer_norm_grad(const Operands& o) {
  NormGrad n{o.in(0), o.in(1), o.in(2), o.in(3), o.in(4), o.in(5)};
  n.dx = o.out(0), n.dgain = o.out(1), n.dshift = o.out(2), n.dbias = o.out(3);
  n.kept = parts_of_update(o, 1);
  layer_norm_grad(o.with.queue, o.with.scratch, n);
}

void launch_attention(const Operands& o) {
  attention(o.with.queue, precision_of(o), o.op.heads, o.in(0), o.out(0), o.out(1));
}

void launch_attention_grad(const Operands& o) {
  attention_grad(o.with.queue, precision_of(o), o.op.heads, o.in(0), o.in(1), o.in(2), o.in(3), o.out(0),
                 {o.out(1), o.with.scratch, parts_of_update(o, 1)});
}

LinearStep linear_of(const Operands& o) {
  LinearStep step;
  step.x = o.in(0);
  step.y = o.in(1);
  step.w = static_cast<float*>(o.in(2).data);
  step.b = static_cast<float*>(o.in(3).data);
  step.dw = static_cast<float*>(o.out(0).data);
  step.db = static_cast<float*>(o.out(1).data);
  step.at = o.with.at;
  return step;
}

// Ops on columns take their number from an operand of one row.
Tensor in_columns_of(const Tensor& row, Tensor t) {
  if (!t || t.cols == row.cols) return t;
  t.rows = t.elements() / row.cols, t.cols = row.cols;
  return t;
}

void launch_bias_activate(const Operands& o) {
  const auto t = [&](const Tensor& tensor) { return in_columns_of(o.in(1), tensor); };
  bias_activate(o.with.queue, o.op.activation, t(o.in(0)), o.in(1), t(o.out(0)), t(o.out(1)));
}

// The op that runs before (-1) or after (1) an op of the plan; null if there is none.
const Op* neighbour(const Plan& plan, size_t number, int direction) {
  for (auto i = static_cast<std::ptrdiff_t>(number) + direction; i >= 0 && i < std::ssize(plan.ops); i += direction)
    if (!is_bookkeeping(plan.ops[static_cast<size_t>(i)].kind)) return &plan.ops[static_cast<size_t>(i)];
  return nullptr;
}

// What a convolution leaves in the workspace for the statistics of the norm that runs after it.
Moments moments_between(const Launching& with, const Op* conv, const Op* norm) {
  if (!conv || !norm || conv->kind != OpKind::Conv || norm->kind != OpKind::BatchNorm || norm->in[0] != conv->out[0]) return {};
  if (with.alone || conv->own || norm->own || with.spec().exec.fusion < Fusion::Epilogue) return {};
  return moments_of(convolution_of(with, *conv), workspace(with.blas));
}

void launch_convolution(const Operands& o) {
  const Workspace memory = workspace(o.with.blas);
  Convolution c = convolution_of(o.with, o.op);
  c.moments = moments_between(o.with, &o.op, neighbour(o.with.bound.plan, o.number, 1));
  c.kept = parts_of_update(o, 0);
  convolve(o.with.queue, memory, c);
}

void launch_max_pool_grad(const Operands& o) {
  max_pool_grad(o.with.queue, o.op.window, o.op.activation, o.in(0), o.in(1), o.out(0));
}

BatchNormalization norm_of(const Operands& o) {
  BatchNormalization n{o.in(0), o.out(0), o.in(1), o.in(2), o.in(3), o.in(4), o.out(1), o.out(2)};
  n.activation = o.op.activation, n.pool = o.op.window;
  if (o.op.kind == OpKind::BatchNorm) n.moments = moments_between(o.with, neighbour(o.with.bound.plan, o.number, -1), &o.op);
  return n;
}

void launch_batch_norm_grad(const Operands& o) {
  BatchNormGradient g{o.in(0), o.in(1), o.in(2), o.in(5), o.in(3), o.in(4), o.out(0), o.out(1), o.out(2)};
  g.activation = o.op.activation, g.pool = o.op.window;
  batch_norm_grad(o.with.queue, o.with.scratch, g);
}

void launch_dropout(const Operands& o) {
  dropout(o.with.queue, o.op.dropout, o.with.spec().train.seed, o.with.at, o.in(0), o.out(0));
}

void launch_preparation(const Operands& o) {
  prepare_pictures(o.with.queue, o.op.preparation, o.op.window, o.with.spec().train.seed, o.with.at, o.in(0), o.out(0));
}

using Launcher = void (*)(const Operands&);
struct Entry {
  OpKind kind;
  Launcher launch;
};

constexpr std::array kTable = {
    Entry{OpKind::MatMul,
          [](const Operands& o) {
            Product p = product_of(o.with, o.op);
            if (p.bias_grad) p.kept = parts_of_update(o, 1);
            matmul(o.with.queue, o.with.blas, o.with.scratch, o.with.spec().exec.matmul, p);
          }},
    Entry{OpKind::BroadcastBias,
          [](const Operands& o) { broadcast_bias(o.with.queue, o.in(0), in_columns_of(o.in(0), o.out(0))); }},
    Entry{OpKind::Add, [](const Operands& o) { add(o.with.queue, o.in(0), o.in(1), o.out(0)); }},
    Entry{OpKind::Activate, [](const Operands& o) { activate(o.with.queue, o.op.activation, o.in(0), o.out(0)); }},
    Entry{OpKind::ActivateGrad,
          [](const Operands& o) { activate_grad(o.with.queue, o.op.activation, o.in(0), o.in(1), o.out(0)); }},
    Entry{OpKind::Softmax, [](const Operands& o) { softmax(o.with.queue, o.in(0), o.out(0)); }},
    Entry{OpKind::CrossEntropy,
          [](const Operands& o) { cross_entropy(o.with.queue, o.with.scratch, o.in(0), labels_of(o), o.with.at); }},
    Entry{OpKind::SoftmaxGrad,
          [](const Operands& o) { softmax_grad(o.with.queue, o.in(0), labels_of(o), o.with.scale(), o.out(0)); }},
    Entry{OpKind::SquaredError,
          [](const Operands& o) { squared_error(o.with.queue, o.with.scratch, o.in(0), o.in(1), o.with.at); }},
    Entry{OpKind::SquaredErrorGrad,
          [](const Operands& o) { squared_error_grad(o.with.queue, o.in(0), o.in(1), o.with.scale(), o.out(0)); }},
    Entry{OpKind::ColumnSum,
          [](const Operands& o) {
            column_sum(o.with.queue, o.with.scratch, in_columns_of(o.out(0), o.in(0)), o.out(0), parts_of_update(o, 0));
          }},
    Entry{OpKind::CheckFinite, launch_check_finite},
    Entry{OpKind::ClipGradients, launch_clip},
    Entry{OpKind::Update, launch_update},
    Entry{OpKind::UpdateAll, launch_update},
    Entry{OpKind::BiasActivate, launch_bias_activate},
    Entry{OpKind::SoftmaxCrossEntropy,
          [](const Operands& o) {
            softmax_cross_entropy(o.with.queue, o.with.scratch, o.in(0), labels_of(o), o.with.scale(), o.out(0),
                                  o.with.at, joined_rows(o.with.bound.plan) > 0);
          }},
    Entry{OpKind::SquaredErrorFused,
          [](const Operands& o) {
            squared_error_fused(o.with.queue, o.with.scratch, o.in(0), o.in(1), o.with.scale(), o.out(0), o.with.at);
          }},
    Entry{OpKind::LinearStep, [](const Operands& o) { linear_step(o.with.queue, o.with.scratch, linear_of(o)); }},
    Entry{OpKind::OutputLayer, launch_output_layer},
    Entry{OpKind::GradientUpdate, launch_gradient_update},
    Entry{OpKind::WeightGradients, launch_weight_gradients},
    Entry{OpKind::LinearUpdate, launch_linear_update},
    Entry{OpKind::Conv, launch_convolution},
    Entry{OpKind::ConvDataGrad, launch_convolution},
    Entry{OpKind::ConvWeightGrad, launch_convolution},
    Entry{OpKind::MaxPool, [](const Operands& o) { max_pool(o.with.queue, o.op.window, o.in(0), o.out(0)); }},
    Entry{OpKind::MaxPoolGrad, launch_max_pool_grad},
    Entry{OpKind::AvgPool, [](const Operands& o) { avg_pool(o.with.queue, o.op.window, o.in(0), o.out(0)); }},
    Entry{OpKind::AvgPoolGrad, [](const Operands& o) { avg_pool_grad(o.with.queue, o.op.window, o.in(0), o.out(0)); }},
    Entry{OpKind::BatchNorm, [](const Operands& o) { batch_norm(o.with.queue, o.with.scratch, norm_of(o)); }},
    Entry{OpKind::BatchNormApply, [](const Operands& o) { batch_norm_apply(o.with.queue, norm_of(o)); }},
    Entry{OpKind::BatchNormGrad, launch_batch_norm_grad},
    Entry{OpKind::Dropout, launch_dropout},
    Entry{OpKind::Prepare, launch_preparation},
    Entry{OpKind::LayerNorm, launch_layer_norm},
    Entry{OpKind::LayerNormGrad, launch_layer_norm_grad},
    Entry{OpKind::Embed, [](const Operands& o) { embed(o.with.queue, o.in(0), o.in(1), o.in(2), o.out(0)); }},
    Entry{OpKind::EmbedGrad,
          [](const Operands& o) { embed_grad(o.with.queue, o.with.scratch, o.in(0), o.in(1), o.out(0), o.out(1)); }},
    Entry{OpKind::Attention, launch_attention},
    Entry{OpKind::AttentionGrad, launch_attention_grad},
    Entry{OpKind::HeadProduct,
          [](const Operands& o) {
            head_product(o.with.queue, precision_of(o),
                         {o.op.heads, o.op.parts, o.in(0), o.in(1), o.out(0), o.op.transpose_a, o.op.transpose_b});
          }},
    Entry{OpKind::CausalSoftmax, [](const Operands& o) { causal_softmax(o.with.queue, o.in(0), o.out(0)); }},
    Entry{OpKind::CausalSoftmaxGrad,
          [](const Operands& o) { causal_softmax_grad(o.with.queue, o.in(0), o.in(1), o.out(0)); }},
    Entry{OpKind::Transpose, [](const Operands& o) { turn(o.with.queue, o.op.window, o.in(0), o.out(0)); }},
};

}  // namespace

bool takes_many_steps(const DevicePlan& bound) {
  const Buffer& x = bound.plan.buffer(bound.x);
  const auto others = [](const Op& op) {
    return op.kind != OpKind::LinearUpdate && op.kind != OpKind::LoadBatch && op.kind != OpKind::Sync;
  };
  if (!bound.launches_graphs() || bound.steps_a_graph() == 1) return false;
  return bound.feed == Feed::Whole && std::ranges::none_of(bound.plan.ops, others) &&
         keeps_points({nullptr, x.type, x.rows, x.cols});
}

namespace {

bool has_kernel(OpKind kind) {
  const bool elsewhere = kind == OpKind::LoadBatch || kind == OpKind::AllReduce || is_bookkeeping(kind);
  return elsewhere || std::ranges::any_of(kTable, [&](const Entry& entry) { return entry.kind == kind; });
}

}  // namespace

void check_kernels(const Plan& plan) {
  for (const Op& op : plan.ops) {
    if (!has_kernel(op.kind))
      throw Failure("The GPU has no kernel for the op " + std::string(to_string(op.kind)) + ": choose device cpu.");
    if (op.kind == OpKind::Attention && op.heads.head_width > kMaxHeadWidth)
      throw Failure("A head on the GPU has at most " + std::to_string(kMaxHeadWidth) + " columns, and these have " +
                    std::to_string(op.heads.head_width) + ": choose more heads, or device cpu.");
  }
}

void launch_op(const Launching& with, size_t op) {
  const Op& what = with.bound.plan.ops[op];
  for (const Entry& entry : kTable)
    if (entry.kind == what.kind) return entry.launch({with, what, op});
  throw Failure("No kernel runs the op " + std::string(to_string(what.kind)) + ".");
}

}  // namespace ws::cuda
