// The reference interpreter: executes the plan's ops in order on the CPU.
#include "engine/cpu/cpu_executor.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/cpu/cpu_ops.h"
#include "engine/passes/compile.h"
#include "engine/cpu/attention.h"
#include "engine/cpu/convolution.h"
#include "engine/cpu/cores.h"
#include "engine/cpu/host_plan.h"
#include "engine/cpu/norm.h"
#include "engine/passes/memory_need.h"
#include "profiling/base/clock.h"

namespace ws {
namespace {

using cpu::Matrix;
using cpu::Rows;
using cpu::Sums;

constexpr int64_t kScaleGrowEvery = 2000;

template <class Real>
class Interpreter final : public Executor {
 public:
  Interpreter(std::string name, HostRank rank, OpWatch watch = {})
      : name_(std::move(name)), rank_(std::move(rank)), watch_(std::move(watch)) {}
  std::string device_name() const override { return name_; }

  void load(const Model& model, const data::Dataset& data, const RunSpec& spec) override {
    model_ = model;
    data_ = &data;
    spec_ = spec;
    order_.resize(static_cast<size_t>(data.train.rows));
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
  }

  void set_state(const TrainState& state) override {
    state_step_ = state.step;
    loss_scale_ = state.loss_scale;
    good_steps_ = state.good_steps;
    assign(weights_.parameters, state.parameters);
    for (int slot = 0; slot < 2; ++slot) assign(weights_.moments[slot], state.moments[slot]);
    bound_.refresh_shadows();
  }

  TrainState state() override {
    TrainState out;
    out.step = state_step_;
    out.loss_scale = loss_scale_;
    out.good_steps = good_steps_;
    assign(out.parameters, weights_.parameters);
    for (int slot = 0; slot < 2; ++slot) assign(out.moments[slot], weights_.moments[slot]);
    return out;
  }

  void bind(const Plan& plan) override {
    if (plan.id == bound_.plan.id) return;
    bound_.bind(plan, model_, spec_.model.loss, weights_);
  }

  void begin_epoch(std::span<const uint32_t> order) override { order_.assign(order.begin(), order.end()); }

  void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) override {
    const int64_t batch = bound_.plan.batch, onward = bound_.plan.step_rows < data_->train.rows ? batch : 0;
    for (size_t i = 0; i < lrs.size(); ++i) {
      const int64_t step = first_step + static_cast<int64_t>(i);
      lr_ = static_cast<double>(lrs[i]);
      const Rows rows{&data_->train, order_.data() + first_row + static_cast<int64_t>(i) * onward};
      const Sums sums = run_step(bound_, rows, step);
      ++state_step_;
      results_.push_back(result(step, sums, bound_.plan.loss_rows()));
    }
  }

  void results(std::vector<StepResult>& out, bool) override {
    out.insert(out.end(), results_.begin(), results_.end());
    results_.clear();
  }

  Evaluation evaluate(Part part, RankRows wanted) override {
    const data::Split& split = part == Part::Test ? data_->test : data_->train;
    const RankRows rows = whole(wanted, split.rows);
    std::vector<uint32_t> order(static_cast<size_t>(rows.count));
    std::iota(order.begin(), order.end(), static_cast<uint32_t>(rows.first));
    Sums sums;
    const int64_t most = cpu_evaluation_rows(model_);
    for (int64_t done = 0; done < rows.count; done += most) {
      const Sums part_sums = run_step(evaluation(std::min(most, rows.count - done)), {&split, order.data() + done}, -1);
      sums.loss += part_sums.loss;
      sums.correct += part_sums.correct;
    }
    const auto count = static_cast<double>(std::max<int64_t>(rows.count * model_.predictions, 1));
    return {sums.loss / count, data_->task == data::Task::Classification ? sums.correct / count : std::nan(""),
            rows.count};
  }

  std::vector<float> predict(std::span<const float> x, int64_t rows) override {
    std::vector<float> out;
    out.reserve(static_cast<size_t>(rows * model_.predictions * model_.outputs));
    const int64_t most = cpu_evaluation_rows(model_);
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      Bound& bound = evaluation(count);
      given_ = x.data() + first * model_.inputs;
      want_outputs_ = &out;
      run_step(bound, {nullptr, nullptr}, -1);
      given_ = nullptr;
      want_outputs_ = nullptr;
    }
    return out;
  }

  // The operands of the op are in memory of the step, one after another. An update finds its weights by their roles.
  void run_alone(const Plan& plan, size_t number, std::vector<std::vector<float>>& values) {
    Plan alone = plan;
    alone.ops = {plan.ops[number]}, alone.arena_bytes = 0, alone.spec.exec.allocator = Allocator::Arena;
    const bool updates = alone.ops[0].kind == OpKind::Update || alone.ops[0].kind == OpKind::UpdateAll;
    for (size_t i = 0; i < values.size(); ++i) {
      Buffer& buffer = alone.buffers[i];
      if (updates && buffer.param != ParamId::None && buffer.role != Role::Temp) {
        make_space(buffer);
        continue;
      }
      buffer.role = values[i].empty() ? Role::Metric : Role::Temp;
      buffer.offset = values[i].empty() ? -1 : alone.arena_bytes;
      if (!values[i].empty()) alone.arena_bytes += (buffer.bytes() + 255) / 256 * 256;
    }
    bound_.memory.traced = false;
    bound_.bind(alone, model_, plan.spec.model.loss, weights_);
    lr_ = kAloneRate, loss_scale_ = 1;
    for (size_t i = 0; i < values.size(); ++i) {
      std::ranges::copy(values[i], values[i].empty() ? nullptr : bound_.pointer(static_cast<BufferId>(i)));
      if (alone.buffers[i].type == DType::I32) std::ranges::copy(values[i], bound_.labels.begin());
    }
    Sums sums;
    run_op(bound_, bound_.plan.ops[0], prof::kNoOp, {}, sums);
    for (size_t i = 0; i < values.size(); ++i)
      std::copy_n(values[i].empty() ? nullptr : bound_.pointer(static_cast<BufferId>(i)), values[i].size(), values[i].begin());
  }

  void make_space(const Buffer& buffer) {
    auto& group = buffer.role == Role::State ? weights_.moments[buffer.slot] : weights_.parameters;
    group.resize(std::max(group.size(), index(buffer.param) + 1));
    group[index(buffer.param)].resize(static_cast<size_t>(buffer.elements()));
  }

  MemoryUse memory() const override {
    MemoryUse use = bound_.memory.use;
    int64_t elements = 0;
    for (const auto* group : {&weights_.parameters, &weights_.moments[0], &weights_.moments[1]})
      for (const auto& values : *group) elements += static_cast<int64_t>(values.size());
    use.parameter_bytes = elements * static_cast<int64_t>(sizeof(Real));
    return use;
  }
  AllocatorCalls allocator_calls() const override { return bound_.memory.calls; }

 private:
  using Bound = cpu::HostPlan<Real>;

  template <class To, class From>
  static void assign(std::vector<std::vector<To>>& to, const std::vector<std::vector<From>>& from) {
    to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i].assign(from[i].begin(), from[i].end());
  }

  Bound& evaluation(int64_t rows) {
    auto& bound = evaluations_[rows];
    if (bound.plan.id.empty()) {
      RunSpec spec = spec_;
      spec.exec.allocator = Allocator::Arena;
      bound.memory.traced = false;
      bound.bind(compile_evaluation(spec, model_, rows).plan, model_, spec_.model.loss, weights_);
    }
    bound.refresh_shadows();
    return bound;
  }

  Sums run_watched(Bound& bound, Rows rows) {
    const OperandValues values = [&bound](BufferId id) {
      const Matrix<Real> m = bound.matrix(id);
      if constexpr (std::is_same_v<Real, float>) return std::span<float>(m.data, static_cast<size_t>(m.size()));
      return std::span<float>();
    };
    Sums sums;
    for (const Op& op : bound.plan.ops) {
      run_op(bound, op, prof::kNoOp, rows, sums);
      watch_(bound.plan, op, values);
    }
    return sums;
  }

  Sums run_step(Bound& bound, Rows rows, int64_t step) {
    const cpu::SmallIsZero zero;
    if (watch_) return run_watched(bound, rows);
    const prof::StepScope step_scope(step);
    step_ = step;
    Sums sums;
    PhaseWalk phases;
    for (size_t i = 0; i < bound.plan.ops.size(); ++i) {
      const Op& op = bound.plan.ops[i];
      phases.enter(op.phase);
      const prof::OpScope scope(bound.tags.of(i));
      run_op(bound, op, bound.tags.of(i), rows, sums);
      for (BufferId id : op.out) bound.round(id);
    }
    return sums;
  }

  // The loss gradient is the mean over the rows, multiplied by the fp16 loss scale.
  Real gradient_scale(const Bound& bound) const {
    const double scale = bound.plan.spec.exec.precision == Precision::Fp16 ? loss_scale_ : 1.0;
    return static_cast<Real>(scale / static_cast<double>(bound.plan.loss_rows()));
  }

  void run_op(Bound& bound, const Op& op, prof::OpTag tag, Rows rows, Sums& sums) {
    const auto in = [&](size_t i) { return bound.matrix(op.in[i]); };
    const auto out = [&](size_t i) { return bound.matrix(op.out[i]); };
    switch (op.kind) {
      case OpKind::LoadBatch:
        return given_ ? bound.load_inputs(given_) : bound.load(rows);
      case OpKind::MatMul:
        return product(bound, op);
      case OpKind::BroadcastBias:
        return cpu::broadcast_rows(in(0), out(0));
      case OpKind::Add:
        return cpu::add(in(0), in(1), out(0));
      case OpKind::Activate:
        return cpu::activate(op.activation, in(0), out(0));
      case OpKind::ActivateGrad:
        return cpu::activate_grad(op.activation, in(0), in(1), out(0));
      case OpKind::Softmax:
      case OpKind::CrossEntropy:
      case OpKind::SoftmaxGrad:
      case OpKind::SquaredError:
      case OpKind::SquaredErrorGrad:
      case OpKind::SoftmaxCrossEntropy:
      case OpKind::SquaredErrorFused:
      case OpKind::LinearStep:
      case OpKind::OutputLayer:
      case OpKind::LinearUpdate:
        return run_loss(bound, op, sums);
      case OpKind::ColumnSum:
        return cpu::column_sum(in(0), out(0));
      case OpKind::CheckFinite:
        return check_finite(bound, op);
      case OpKind::Update:
      case OpKind::UpdateAll:
        return update(bound, op);
      case OpKind::BiasActivate:
        return cpu::bias_activate(op.activation, in(0), in(1), out(0), op.out.size() > 1 ? out(1) : Matrix<Real>{});
      case OpKind::GradientUpdate:
        return gradient_update(bound, op);
      case OpKind::WeightGradients:
        return weight_gradients(bound, op);
      case OpKind::AllReduce:
        return average_over_ranks(bound, op);
      case OpKind::ClipGradients:
        return clip(bound, op);
      case OpKind::Conv:
      case OpKind::ConvDataGrad:
      case OpKind::ConvWeightGrad:
      case OpKind::MaxPool:
      case OpKind::MaxPoolGrad:
      case OpKind::AvgPool:
      case OpKind::AvgPoolGrad:
      case OpKind::BatchNorm:
      case OpKind::BatchNormApply:
      case OpKind::BatchNormGrad:
      case OpKind::LayerNorm:
      case OpKind::LayerNormGrad:
      case OpKind::Embed:
      case OpKind::EmbedGrad:
      case OpKind::Attention:
      case OpKind::AttentionGrad:
      case OpKind::HeadProduct:
      case OpKind::CausalSoftmax:
      case OpKind::CausalSoftmaxGrad:
      case OpKind::Transpose:
      case OpKind::Dropout:
      case OpKind::Prepare:
        return run_layer(bound, op);
      case OpKind::Alloc:
        return bound.memory.allocate(op.out[0], tag);
      case OpKind::Free:
        return bound.memory.free(op.in[0], tag);
      case OpKind::Sync:
        return;  // CPU work is complete when the call returns
    }
  }

  // Runs the ops of convolutional networks and transformers.
  void run_layer(Bound& bound, const Op& op) {
    const auto in = [&](size_t i) { return i < op.in.size() ? bound.matrix(op.in[i]) : Matrix<Real>{}; };
    const auto out = [&](size_t i) { return i < op.out.size() ? bound.matrix(op.out[i]) : Matrix<Real>{}; };
    switch (op.kind) {
      case OpKind::Conv:
        cpu::convolve(op.window, in(0), in(1), out(0));
        return after_product(bound, op, columns_of(op.window.k, out(0)));
      case OpKind::ConvDataGrad:
        cpu::convolve_data_grad(op.window, in(0), in(1), out(0));
        return after_product(bound, op, out(0));
      case OpKind::ConvWeightGrad:
        cpu::convolve_weight_grad(op.window, in(0), in(1), out(0));
        return after_product(bound, op, out(0));
      case OpKind::MaxPool:
        return cpu::max_pool(op.window, in(0), out(0));
      case OpKind::MaxPoolGrad:
        cpu::max_pool_grad(op.window, in(0), in(1), in(2), out(0));
        if (op.activation != Activation::None) cpu::activate_grad(op.activation, out(0), in(1), out(0));
        return;
      case OpKind::AvgPool:
        return cpu::average_pool(op.window, in(0), out(0));
      case OpKind::AvgPoolGrad:
        return cpu::average_pool_grad(op.window, in(0), out(0));
      case OpKind::BatchNorm:
        return cpu::batch_norm({op.activation, op.window}, in(0), {in(1).data, in(2).data, out(1).data, out(2).data}, out(3),
                               out(4), out(0));
      case OpKind::BatchNormApply:
        return cpu::batch_norm_apply(op.activation, in(0), {in(1).data, in(2).data}, in(3), in(4), out(0));
      case OpKind::BatchNormGrad:
        return cpu::batch_norm_grad({op.activation, op.window}, in(0), in(1), {in(2).data, in(5).data, in(3).data, in(4).data},
                                    out(0), out(1), out(2));
      case OpKind::LayerNorm:
        return normalise_rows(bound, op);
      case OpKind::LayerNormGrad:
        cpu::layer_norm_grad(in(0), in(1), {in(2).data, nullptr, in(3).data, in(4).data}, out(0), out(1), out(2));
        if (op.in.size() > 5) cpu::add(out(0), in(5), out(0));
        if (op.out.size() > 3) cpu::column_sum(out(0), out(3));
        return;
      case OpKind::Embed:
        return cpu::embed(in(0), in(1), in(2), out(0));
      case OpKind::EmbedGrad:
        return cpu::embed_grad(in(0), in(1), out(0), out(1));
      case OpKind::Attention:
        return cpu::attend(op.heads, in(0), out(0), out(1));
      case OpKind::AttentionGrad:
        cpu::attend_grad(op.heads, in(0), in(1), in(2), in(3), out(0));
        if (op.out.size() > 1) cpu::column_sum(out(0), out(1));
        return;
      case OpKind::HeadProduct:
        return cpu::head_product(op.heads, op.parts, in(0), op.transpose_a, in(1), op.transpose_b, out(0));
      case OpKind::CausalSoftmax:
        return cpu::causal_softmax(in(0), out(0));
      case OpKind::CausalSoftmaxGrad:
        return cpu::causal_softmax_grad(in(0), in(1), out(0));
      case OpKind::Transpose:
        return cpu::turn(op.window, in(0), out(0));
      case OpKind::Dropout:
        return cpu::drop_out(op.dropout, bound.plan.spec.train.seed, step_, in(0), out(0));
      case OpKind::Prepare:
        return cpu::prepare(op.preparation, op.window, bound.plan.spec.train.seed, step_, in(0), out(0));
      default:
        return;  // run_op passes no other kind
    }
  }

  void normalise_rows(Bound& bound, const Op& op) {
    const auto in = [&](size_t i) { return bound.matrix(op.in[i]); };
    const auto out = [&](size_t i) { return bound.matrix(op.out[i]); };
    Matrix<Real> x = in(0);
    if (op.in.size() > 3) {
      cpu::add(x, in(3), out(3));
      bound.round(op.out[3]);
      x = out(3);
    }
    cpu::layer_norm(x, {in(1).data, in(2).data, out(1).data, out(2).data}, out(0));
  }

  static Matrix<Real> columns_of(int64_t cols, Matrix<Real> m) { return {m.data, m.size() / cols, cols}; }

  cpu::Labels labels_of(const Bound& bound, Phase phase) const {
    return {bound.labels.data(), phase == Phase::Evaluate ? 0 : bound.plan.spec.train.label_smoothing};
  }

  // Runs losses, their gradients, and fused ops that contain one.
  void run_loss(Bound& bound, const Op& op, Sums& sums) {
    const auto in = [&](size_t i) { return bound.matrix(op.in[i]); };
    const auto out = [&](size_t i) { return bound.matrix(op.out[i]); };
    const cpu::Labels labels = labels_of(bound, op.phase);
    switch (op.kind) {
      case OpKind::Softmax:
        return cpu::softmax(in(0), out(0));
      case OpKind::CrossEntropy:
        keep_outputs(in(0));
        sums = cpu::cross_entropy(in(0), labels);
        return;
      case OpKind::SoftmaxGrad:
        return cpu::softmax_grad(in(0), labels, gradient_scale(bound), out(0));
      case OpKind::SquaredError:
        keep_outputs(in(0));
        sums = cpu::squared_error(in(0), in(1));
        return;
      case OpKind::SquaredErrorGrad:
        return cpu::squared_error_grad(in(0), in(1), gradient_scale(bound), out(0));
      case OpKind::SoftmaxCrossEntropy:
        sums = cpu::softmax_cross_entropy(in(0), labels, gradient_scale(bound), out(0));
        return;
      case OpKind::SquaredErrorFused:
        sums = cpu::squared_error(in(0), in(1));
        return cpu::squared_error_grad(in(0), in(1), gradient_scale(bound), out(0));
      case OpKind::LinearStep:
        sums = cpu::linear_step(in(0), in(1), in(2), in(3).data[0], out(0), out(1).data);
        return;
      case OpKind::OutputLayer:
        sums = output_layer(bound, op);
        return;
      case OpKind::LinearUpdate:
        sums = linear_update(bound, op);
        return;
      default:
        return;  // run_op passes no other kind
    }
  }

  void product(Bound& bound, const Op& op) {
    const Matrix<Real> a = bound.matrix(op.in[0]), b = bound.matrix(op.in[1]), c = bound.matrix(op.out[0]);
    cpu::multiply(a, op.transpose_a, b, op.transpose_b, c);
    after_product(bound, op, c);
  }

  // What a product or a convolution does with its result c.
  void after_product(Bound& bound, const Op& op, Matrix<Real> c) {
    switch (op.epilogue) {
      case Epilogue::None:
        return;
      case Epilogue::Bias:
      case Epilogue::BiasActivate:
        if (op.in.size() < 3) return activate_product(bound, op, c);
        return cpu::bias_activate(op.activation, c, bound.matrix(op.in[2]), c,
                                  op.out.size() > 1 ? bound.matrix(op.out[1]) : Matrix<Real>{});
      case Epilogue::ActivateGrad:
        return cpu::activate_grad(op.activation, c, bound.matrix(op.in[2]), c);
      case Epilogue::BiasGrad:
        return cpu::column_sum(bound.matrix(op.in[1]), bound.matrix(op.out[1]));
    }
  }

  void activate_product(Bound& bound, const Op& op, Matrix<Real> c) {
    if (op.out.size() > 1) std::copy_n(c.data, c.size(), bound.matrix(op.out[1]).data);
    cpu::activate(op.activation, c, c);
  }

  Sums output_layer(Bound& bound, const Op& op) {
    const OutputParts parts = output_parts(op);
    const Matrix<Real> h = bound.matrix(parts.h), w = bound.matrix(parts.w), dz = bound.matrix(parts.dz);
    std::vector<Real> space(static_cast<size_t>(dz.size()));
    const Matrix<Real> z{space.data(), dz.rows, dz.cols};
    cpu::multiply(h, false, w, false, z);
    if (parts.bias != BufferId::None)
      cpu::bias_activate(Activation::None, z, bound.matrix(parts.bias), z, Matrix<Real>{});
    Sums sums;
    if (bound.plan.spec.model.loss == LossKind::CrossEntropy) {
      sums = cpu::softmax_cross_entropy(z, labels_of(bound, op.phase), gradient_scale(bound), dz);
    } else {
      sums = cpu::squared_error(z, bound.matrix(parts.y));
      cpu::squared_error_grad(z, bound.matrix(parts.y), gradient_scale(bound), dz);
    }
    if (parts.dz_before == BufferId::None) return sums;
    bound.round(parts.dz);
    const Matrix<Real> before = bound.matrix(parts.dz_before);
    cpu::multiply(dz, false, w, true, before);
    if (parts.saved != BufferId::None) cpu::activate_grad(op.activation, before, bound.matrix(parts.saved), before);
    if (parts.dw != BufferId::None) cpu::multiply(h, true, dz, false, bound.matrix(parts.dw));
    if (parts.db == BufferId::None) return sums;
    cpu::column_sum(dz, bound.matrix(parts.db));
    cpu::column_sum(before, bound.matrix(parts.db_before));
    return sums;
  }

  void gradient_update(Bound& bound, const Op& op) {
    if (skips_update(bound)) return;
    for (const GradientItem& item : gradient_items(bound.plan, op)) {
      const Matrix<Real> w = bound.matrix(item.weight.master), dz = bound.matrix(item.dz);
      const Matrix<Real> dw{cpu::scratch<Real>(w.size()), w.rows, w.cols};
      cpu::multiply(bound.matrix(item.a), true, dz, false, dw);
      update_one(bound, item.weight, dw);
      if (item.bias.master == BufferId::None) continue;
      const Matrix<Real> db{dw.data, 1, dz.cols};
      cpu::column_sum(dz, db);
      update_one(bound, item.bias, db);
    }
  }

  void weight_gradients(Bound& bound, const Op& op) {
    for (const WeightGradientItem& item : weight_gradient_items(op)) {
      const Matrix<Real> dz = bound.matrix(item.dz);
      cpu::multiply(bound.matrix(item.a), true, dz, false, bound.matrix(item.dw));
      if (item.db != BufferId::None) cpu::column_sum(dz, bound.matrix(item.db));
    }
  }

  Sums linear_update(Bound& bound, const Op& op) {
    const auto items = update_items(bound.plan, op);
    const Matrix<Real> w = bound.matrix(items[0].master), b = bound.matrix(items[1].master);
    std::vector<Real> space(static_cast<size_t>(w.size()) + 1);
    const Matrix<Real> dw{space.data(), w.rows, w.cols}, db{space.data() + w.size(), 1, 1};
    const Sums sums = cpu::linear_step(bound.matrix(op.in[0]), bound.matrix(op.in[1]), w, b.data[0], dw, db.data);
    update_one(bound, items[0], dw);
    update_one(bound, items[1], db);
    return sums;
  }

  void average_over_ranks(Bound& bound, const Op& op) {
    std::vector<std::span<Real>> gradients;
    for (BufferId id : op.in) {
      const Matrix<Real> m = bound.matrix(id);
      gradients.emplace_back(m.data, static_cast<size_t>(m.size()));
    }
    rank_.group->average(rank_.rank, bound.plan.share(), gradients);
  }

  void keep_outputs(Matrix<Real> z) {
    if (want_outputs_) want_outputs_->insert(want_outputs_->end(), z.data, z.data + z.size());
  }

  // fp16: an infinite or NaN gradient skips the update and halves the scale. After kScaleGrowEvery good steps it
  // doubles.
  void check_finite(Bound& bound, const Op& op) {
    finite_ = std::ranges::all_of(op.in, [&](BufferId id) { return cpu::all_finite(bound.matrix(id)); });
    step_scale_ = loss_scale_;
    if (!finite_) {
      loss_scale_ = std::max(loss_scale_ / 2, 1.0);
      good_steps_ = 0;
    } else if (++good_steps_ == kScaleGrowEvery) {
      loss_scale_ *= 2;
      good_steps_ = 0;
    }
  }

  // Gradients carry the fp16 loss scale, so the limit carries it too.
  void clip(Bound& bound, const Op& op) {
    if (skips_update(bound)) return;
    double squares = 0;
    for (BufferId id : op.in) squares += cpu::sum_of_squares(bound.matrix(id));
    const double limit = bound.plan.spec.train.clip * (scales(bound) ? step_scale_ : 1.0), norm = std::sqrt(squares);
    if (norm <= limit) return;
    for (BufferId id : op.out) cpu::scale(static_cast<Real>(limit / norm), bound.matrix(id));
  }

  bool scales(const Bound& bound) const { return bound.plan.spec.exec.precision == Precision::Fp16; }
  bool skips_update(const Bound& bound) const { return scales(bound) && !finite_; }

  void update(Bound& bound, const Op& op) {
    if (skips_update(bound)) return;
    for (const UpdateItem& item : update_items(bound.plan, op)) update_one(bound, item, bound.matrix(item.gradient));
  }

  void update_one(Bound& bound, const UpdateItem& item, Matrix<Real> gradient) {
    const TrainSpec& t = bound.plan.spec.train;
    const double unscale = scales(bound) ? 1 / step_scale_ : 1.0;
    const cpu::Hyper hyper{t.optimizer,    lr_,     t.momentum,     t.beta1, t.beta2, t.epsilon,
                           t.weight_decay, unscale, state_step_ + 1, t.nesterov};
    const auto moment = [&](int slot) {
      return item.moment[slot] == BufferId::None ? nullptr : bound.pointer(item.moment[slot]);
    };
    const Matrix<Real> w = bound.matrix(item.master);
    cpu::update(hyper, bound.plan.buffer(item.master).decays, w, gradient, moment(0), moment(1));
    if (item.shadow == BufferId::None) return;
    const Matrix<Real> shadow = bound.matrix(item.shadow);
    std::copy_n(w.data, w.size(), shadow.data);
    cpu::round_all(Bound::stored_as(bound.plan.buffer(item.shadow)), shadow);
  }

  StepResult result(int64_t step, const Sums& sums, int64_t rows) const {
    const auto n = static_cast<double>(rows);
    const bool classes = data_->task == data::Task::Classification;
    return {step, static_cast<float>(sums.loss / n), classes ? static_cast<float>(sums.correct / n) : std::nanf(""),
            prof::steady_seconds()};
  }

  Model model_;
  const data::Dataset* data_ = nullptr;
  RunSpec spec_;
  std::vector<uint32_t> order_;
  cpu::Weights<Real> weights_;
  int64_t state_step_ = 0, good_steps_ = 0, step_ = 0;
  std::string name_;
  HostRank rank_;
  OpWatch watch_;
  double loss_scale_ = 65536, step_scale_ = 65536, lr_ = 0;
  bool finite_ = true;
  Bound bound_;
  std::map<int64_t, Bound> evaluations_;  // by rows
  std::vector<StepResult> results_;
  const float* given_ = nullptr;  // predict: rows from the caller instead of the data set
  std::vector<float>* want_outputs_ = nullptr;
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(std::string name, HostRank rank) {
  return std::make_unique<Interpreter<float>>(std::move(name), std::move(rank));
}
std::unique_ptr<Executor> make_watched_cpu_executor(OpWatch watch) {
  return std::make_unique<Interpreter<float>>("CPU", HostRank{}, std::move(watch));
}
std::unique_ptr<Executor> make_oracle(HostRank rank) {
  return std::make_unique<Interpreter<double>>("float64 oracle", std::move(rank));
}

std::vector<std::vector<float>> run_one_op(const Plan& plan, size_t op, std::vector<std::vector<float>> values) {
  Interpreter<double>("float64", {}).run_alone(plan, op, values);
  return values;
}

}  // namespace ws
