// The reference interpreter: walks the plan's ops in order and does what each says, on the CPU.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "engine/compile.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/step_memory.h"
#include "engine/executor.h"
#include "engine/op_tags.h"

namespace ws {
namespace {

using cpu::Matrix;
using cpu::Sums;

constexpr int64_t kScaleGrowEvery = 2000;
constexpr int64_t kEvaluationRows = 8192;

template <class Real>
class Interpreter final : public Executor {
 public:
  std::string device_name() const override { return device_info().cuda ? "CPU" : device_info().name; }

  void load(const Model& model, const data::Dataset& data, const RunSpec& spec) override {
    model_ = model;
    data_ = &data;
    spec_ = spec;
    order_.resize(static_cast<size_t>(data.train.rows));
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
    began_ = Clock::now();
  }

  void set_state(const TrainState& state) override {
    state_step_ = state.step;
    loss_scale_ = state.loss_scale;
    good_steps_ = state.good_steps;
    assign(parameters_, state.parameters);
    for (int slot = 0; slot < 2; ++slot) assign(moments_[slot], state.moments[slot]);
    refresh_shadows(bound_);
  }

  TrainState state() override {
    TrainState out;
    out.step = state_step_;
    out.loss_scale = loss_scale_;
    out.good_steps = good_steps_;
    assign(out.parameters, parameters_);
    for (int slot = 0; slot < 2; ++slot) assign(out.moments[slot], moments_[slot]);
    return out;
  }

  void bind(const Plan& plan) override {
    if (plan.id == bound_.plan.id) return;
    bind_to(bound_, plan);
  }

  void begin_epoch(std::span<const uint32_t> order) override { order_.assign(order.begin(), order.end()); }

  void run(int64_t first_step, int64_t first_row, std::span<const float> lrs) override {
    const int64_t batch = bound_.plan.batch;
    for (size_t i = 0; i < lrs.size(); ++i) {
      const int64_t step = first_step + static_cast<int64_t>(i);
      lr_ = static_cast<double>(lrs[i]);
      const Rows rows{&data_->train, order_.data() + first_row + static_cast<int64_t>(i) * batch};
      const Sums sums = run_step(bound_, rows, step);
      ++state_step_;
      results_.push_back(result(step, sums, batch));
    }
  }

  void results(std::vector<StepResult>& out, bool) override {
    out.insert(out.end(), results_.begin(), results_.end());
    results_.clear();
  }

  Evaluation evaluate(Part part) override {
    const data::Split& split = part == Part::Test ? data_->test : data_->train;
    std::vector<uint32_t> order(static_cast<size_t>(split.rows));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    Sums sums;
    for (int64_t first = 0; first < split.rows; first += kEvaluationRows) {
      const Sums part_sums =
          run_step(evaluation(std::min(kEvaluationRows, split.rows - first)), {&split, order.data() + first}, -1);
      sums.loss += part_sums.loss;
      sums.correct += part_sums.correct;
    }
    const auto rows = static_cast<double>(std::max<int64_t>(split.rows, 1));
    return {sums.loss / rows, data_->task == data::Task::Classification ? sums.correct / rows : std::nan(""),
            split.rows};
  }

  std::vector<float> predict(std::span<const float> x, int64_t rows) override {
    std::vector<float> out;
    out.reserve(static_cast<size_t>(rows * model_.outputs));
    for (int64_t first = 0; first < rows; first += kEvaluationRows) {
      const int64_t count = std::min(kEvaluationRows, rows - first);
      Bound& bound = evaluation(count);
      given_ = x.data() + first * model_.inputs;
      want_outputs_ = &out;
      run_step(bound, {nullptr, nullptr}, -1);
      given_ = nullptr;
      want_outputs_ = nullptr;
    }
    return out;
  }

  MemoryUse memory() const override {
    MemoryUse use = bound_.memory.use;
    int64_t elements = 0;
    for (const auto* group : {&parameters_, &moments_[0], &moments_[1]})
      for (const auto& values : *group) elements += static_cast<int64_t>(values.size());
    use.parameter_bytes = elements * static_cast<int64_t>(sizeof(Real));
    return use;
  }
  AllocatorCalls allocator_calls() const override { return bound_.memory.calls; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Bound {
    Plan plan;
    OpTags tags;
    cpu::StepMemory memory;
    std::vector<Real> x, y;
    std::vector<int32_t> labels;
    Real* view = nullptr;  // the batch where it lies in the data set, when its rows stand together there
    std::vector<std::vector<Real>> shadows;  // by buffer
  };
  struct Rows {
    const data::Split* split;
    const uint32_t* order;
  };

  template <class To, class From>
  static void assign(std::vector<std::vector<To>>& to, const std::vector<std::vector<From>>& from) {
    to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i].assign(from[i].begin(), from[i].end());
  }

  static DType stored_as(const Buffer& b) { return sizeof(Real) == sizeof(float) ? b.type : DType::F32; }

  void bind_to(Bound& bound, const Plan& plan) {
    bound.plan = plan;
    bound.tags = OpTags(plan);
    bound.memory.reset(plan, sizeof(Real));
    bound.x.resize(static_cast<size_t>(plan.batch * model_.inputs));
    bound.y.resize(spec_.model.loss == LossKind::MeanSquared ? static_cast<size_t>(plan.batch * model_.outputs) : 0);
    bound.labels.resize(spec_.model.loss == LossKind::CrossEntropy ? static_cast<size_t>(plan.batch) : 0);
    bound.shadows.assign(plan.buffers.size(), {});
    refresh_shadows(bound);
  }

  // A shadow follows its master also where no update op does it: at bind, and after a resume.
  void refresh_shadows(Bound& bound) {
    for (size_t i = 0; i < bound.plan.buffers.size(); ++i) {
      const Buffer& b = bound.plan.buffers[i];
      if (b.role != Role::Shadow) continue;
      bound.shadows[i] = parameters_[index(b.param)];
      cpu::round_all(stored_as(b), Matrix<Real>{bound.shadows[i].data(), b.rows, b.cols});
    }
  }

  Bound& evaluation(int64_t rows) {
    auto& bound = evaluations_[rows];
    if (bound.plan.id.empty()) {
      RunSpec spec = spec_;
      spec.exec.allocator = Allocator::Arena;
      bind_to(bound, compile_evaluation(spec, model_, rows).plan);
    }
    refresh_shadows(bound);
    return bound;
  }

  Real* pointer(Bound& bound, BufferId id) {
    const Buffer& b = bound.plan.buffer(id);
    switch (b.role) {
      case Role::Batch:
        return b.name == "x" ? (bound.view ? bound.view : bound.x.data()) : bound.y.data();
      case Role::Parameter:
        return parameters_[index(b.param)].data();
      case Role::Shadow:
        return bound.shadows[index(id)].data();
      case Role::State:
        return moments_[b.slot][index(b.param)].data();
      case Role::Metric:
        return nullptr;
      case Role::Temp:
        return static_cast<Real*>(bound.memory.at(id));
    }
    return nullptr;
  }
  Matrix<Real> matrix(Bound& bound, BufferId id) {
    const Buffer& b = bound.plan.buffer(id);
    return {pointer(bound, id), b.rows, b.cols};
  }

  Sums run_step(Bound& bound, Rows rows, int64_t step) {
    const prof::StepScope step_scope(step);
    Sums sums;
    PhaseWalk phases;
    for (size_t i = 0; i < bound.plan.ops.size(); ++i) {
      const Op& op = bound.plan.ops[i];
      phases.enter(op.phase);
      const prof::OpScope scope(bound.tags.of(i));
      run_op(bound, op, bound.tags.of(i), rows, sums);
      for (BufferId id : op.out) round(bound, id);
    }
    return sums;
  }

  void round(Bound& bound, BufferId id) {
    const Buffer& b = bound.plan.buffer(id);
    if (b.role == Role::Temp && pointer(bound, id)) cpu::round_all(stored_as(b), matrix(bound, id));
  }

  // The loss gradient is the mean over the rows, times the fp16 loss scale.
  Real gradient_scale(const Bound& bound) const {
    const double scale = bound.plan.spec.exec.precision == Precision::Fp16 ? loss_scale_ : 1.0;
    return static_cast<Real>(scale / static_cast<double>(bound.plan.batch));
  }

  void run_op(Bound& bound, const Op& op, prof::OpTag tag, Rows rows, Sums& sums) {
    const auto in = [&](size_t i) { return matrix(bound, op.in[i]); };
    const auto out = [&](size_t i) { return matrix(bound, op.out[i]); };
    const int32_t* labels = bound.labels.data();
    switch (op.kind) {
      case OpKind::LoadBatch:
        return load_batch(bound, rows);
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
        keep_outputs(in(0));
        return cpu::softmax(in(0), out(0));
      case OpKind::CrossEntropy:
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
      case OpKind::ColumnSum:
        return cpu::column_sum(in(0), out(0));
      case OpKind::CheckFinite:
        return check_finite(bound, op);
      case OpKind::Update:
      case OpKind::UpdateAll:
        return update(bound, op);
      case OpKind::BiasActivate:
        return cpu::bias_activate(op.activation, in(0), in(1), out(0), op.out.size() > 1 ? out(1) : Matrix<Real>{});
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
      case OpKind::GradientUpdate:
        return gradient_update(bound, op);
      case OpKind::LinearUpdate:
        sums = linear_update(bound, op);
        return;
      case OpKind::Alloc:
        return bound.memory.allocate(op.out[0], tag);
      case OpKind::Free:
        return bound.memory.free(op.in[0], tag);
      case OpKind::Sync:
        return;  // the CPU is done when the call returns
    }
  }

  void product(Bound& bound, const Op& op) {
    const Matrix<Real> a = matrix(bound, op.in[0]), b = matrix(bound, op.in[1]), c = matrix(bound, op.out[0]);
    cpu::multiply(a, op.transpose_a, b, op.transpose_b, c);
    switch (op.epilogue) {
      case Epilogue::None:
        return;
      case Epilogue::Bias:
      case Epilogue::BiasActivate:
        if (op.in.size() < 3) return activate_product(bound, op, c);
        return cpu::bias_activate(op.activation, c, matrix(bound, op.in[2]), c,
                                  op.out.size() > 1 ? matrix(bound, op.out[1]) : Matrix<Real>{});
      case Epilogue::ActivateGrad:
        return cpu::activate_grad(op.activation, c, matrix(bound, op.in[2]), c);
      case Epilogue::BiasGrad:
        return cpu::column_sum(b, matrix(bound, op.out[1]));
    }
  }

  void activate_product(Bound& bound, const Op& op, Matrix<Real> c) {
    if (op.out.size() > 1) std::copy_n(c.data, c.size(), matrix(bound, op.out[1]).data);
    cpu::activate(op.activation, c, c);
  }

  Sums output_layer(Bound& bound, const Op& op) {
    const OutputParts parts = output_parts(op);
    const Matrix<Real> h = matrix(bound, parts.h), w = matrix(bound, parts.w), dz = matrix(bound, parts.dz);
    std::vector<Real> space(static_cast<size_t>(dz.size()));
    const Matrix<Real> z{space.data(), dz.rows, dz.cols};
    cpu::multiply(h, false, w, false, z);
    if (parts.bias != BufferId::None)
      cpu::bias_activate(Activation::None, z, matrix(bound, parts.bias), z, Matrix<Real>{});
    Sums sums;
    if (bound.plan.spec.model.loss == LossKind::CrossEntropy) {
      sums = cpu::softmax_cross_entropy(z, bound.labels.data(), gradient_scale(bound), dz);
    } else {
      sums = cpu::squared_error(z, matrix(bound, parts.y));
      cpu::squared_error_grad(z, matrix(bound, parts.y), gradient_scale(bound), dz);
    }
    if (parts.dz_before == BufferId::None) return sums;
    round(bound, parts.dz);
    const Matrix<Real> before = matrix(bound, parts.dz_before);
    cpu::multiply(dz, false, w, true, before);
    if (parts.saved != BufferId::None) cpu::activate_grad(op.activation, before, matrix(bound, parts.saved), before);
    return sums;
  }

  void gradient_update(Bound& bound, const Op& op) {
    if (skips_update(bound)) return;
    std::vector<Real> space;
    for (const GradientItem& item : gradient_items(bound.plan, op)) {
      const Matrix<Real> w = matrix(bound, item.weight.master), dz = matrix(bound, item.dz);
      space.resize(static_cast<size_t>(w.size()));
      const Matrix<Real> dw{space.data(), w.rows, w.cols};
      cpu::multiply(matrix(bound, item.a), true, dz, false, dw);
      update_one(bound, item.weight, dw);
      if (item.bias.master == BufferId::None) continue;
      const Matrix<Real> db{space.data(), 1, dz.cols};
      cpu::column_sum(dz, db);
      update_one(bound, item.bias, db);
    }
  }

  Sums linear_update(Bound& bound, const Op& op) {
    const auto items = update_items(bound.plan, op);
    const Matrix<Real> w = matrix(bound, items[0].master), b = matrix(bound, items[1].master);
    std::vector<Real> space(static_cast<size_t>(w.size()) + 1);
    const Matrix<Real> dw{space.data(), w.rows, w.cols}, db{space.data() + w.size(), 1, 1};
    const Sums sums = cpu::linear_step(matrix(bound, op.in[0]), matrix(bound, op.in[1]), w, b.data[0], dw, db.data);
    update_one(bound, items[0], dw);
    update_one(bound, items[1], db);
    return sums;
  }

  void keep_outputs(Matrix<Real> z) {
    if (want_outputs_) want_outputs_->insert(want_outputs_->end(), z.data, z.data + z.size());
  }

  void load_batch(Bound& bound, Rows rows) {
    const int64_t features = model_.inputs, batch = bound.plan.batch;
    bound.view = nullptr;
    if (given_) {
      std::copy_n(given_, batch * features, bound.x.begin());
      std::fill(bound.y.begin(), bound.y.end(), Real(0));
      std::fill(bound.labels.begin(), bound.labels.end(), 0);
    } else {
      if (!view_rows(bound, rows)) gather_features(bound, rows);
      gather_targets(bound, rows);
    }
    const DType type = stored_as(bound.plan.buffer(bound.plan.find("x")));
    cpu::round_all(type, Matrix<Real>{bound.x.data(), batch, features});
  }

  bool view_rows(Bound& bound, Rows rows) const {
    if constexpr (!std::is_same_v<Real, float>) return false;
    const int64_t batch = bound.plan.batch;
    if (bound.plan.buffer(bound.plan.find("x")).type != DType::F32) return false;
    for (int64_t r = 1; r < batch; ++r)
      if (rows.order[r] != rows.order[0] + static_cast<uint32_t>(r)) return false;
    // The interpreter never writes to its inputs.
    if constexpr (std::is_same_v<Real, float>)
      bound.view = const_cast<float*>(rows.split->x.data()) + static_cast<int64_t>(rows.order[0]) * model_.inputs;
    return true;
  }

  void gather_features(Bound& bound, Rows rows) const {
    const int64_t features = model_.inputs;
    for (int64_t r = 0; r < bound.plan.batch; ++r)
      std::copy_n(rows.split->x.data() + static_cast<int64_t>(rows.order[r]) * features, features,
                  bound.x.data() + r * features);
  }

  void gather_targets(Bound& bound, Rows rows) const {
    for (size_t r = 0; r < bound.labels.size(); ++r) bound.labels[r] = rows.split->labels[rows.order[r]];
    if (bound.y.empty()) return;
    const int64_t outputs = model_.outputs;
    for (int64_t r = 0; r < bound.plan.batch; ++r)
      std::copy_n(rows.split->targets.data() + static_cast<int64_t>(rows.order[r]) * outputs, outputs,
                  bound.y.data() + r * outputs);
  }

  // fp16: an infinite or undefined gradient skips the update and halves the scale; a long good stretch doubles it.
  void check_finite(Bound& bound, const Op& op) {
    finite_ = std::ranges::all_of(op.in, [&](BufferId id) { return cpu::all_finite(matrix(bound, id)); });
    step_scale_ = loss_scale_;
    if (!finite_) {
      loss_scale_ = std::max(loss_scale_ / 2, 1.0);
      good_steps_ = 0;
    } else if (++good_steps_ == kScaleGrowEvery) {
      loss_scale_ *= 2;
      good_steps_ = 0;
    }
  }

  bool scales(const Bound& bound) const { return bound.plan.spec.exec.precision == Precision::Fp16; }
  bool skips_update(const Bound& bound) const { return scales(bound) && !finite_; }

  void update(Bound& bound, const Op& op) {
    if (skips_update(bound)) return;
    for (const UpdateItem& item : update_items(bound.plan, op)) update_one(bound, item, matrix(bound, item.gradient));
  }

  void update_one(Bound& bound, const UpdateItem& item, Matrix<Real> gradient) {
    const TrainSpec& t = bound.plan.spec.train;
    const double unscale = scales(bound) ? 1 / step_scale_ : 1.0;
    const cpu::Hyper hyper{t.optimizer,    lr_,     t.momentum,     t.beta1, t.beta2, t.epsilon,
                           t.weight_decay, unscale, state_step_ + 1};
    const auto moment = [&](int slot) {
      return item.moment[slot] == BufferId::None ? nullptr : pointer(bound, item.moment[slot]);
    };
    const Matrix<Real> w = matrix(bound, item.master);
    cpu::update(hyper, !model_.parameters[index(item.param)].is_bias, w, gradient, moment(0), moment(1));
    if (item.shadow == BufferId::None) return;
    const Matrix<Real> shadow = matrix(bound, item.shadow);
    std::copy_n(w.data, w.size(), shadow.data);
    cpu::round_all(stored_as(bound.plan.buffer(item.shadow)), shadow);
  }

  StepResult result(int64_t step, const Sums& sums, int64_t rows) const {
    const auto n = static_cast<double>(rows);
    const bool classes = data_->task == data::Task::Classification;
    return {step, static_cast<float>(sums.loss / n), classes ? static_cast<float>(sums.correct / n) : std::nanf(""),
            std::chrono::duration<double>(Clock::now() - began_).count()};
  }

  Model model_;
  const data::Dataset* data_ = nullptr;
  RunSpec spec_;
  std::vector<uint32_t> order_;
  std::vector<std::vector<Real>> parameters_, moments_[2];  // by ParamId
  int64_t state_step_ = 0, good_steps_ = 0;
  double loss_scale_ = 65536, step_scale_ = 65536, lr_ = 0;
  bool finite_ = true;
  Bound bound_;
  std::map<int64_t, Bound> evaluations_;  // by rows
  std::vector<StepResult> results_;
  const float* given_ = nullptr;  // predict: rows from the caller instead of the data set
  std::vector<float>* want_outputs_ = nullptr;
  Clock::time_point began_ = Clock::now();
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor() { return std::make_unique<Interpreter<float>>(); }
std::unique_ptr<Executor> make_oracle() { return std::make_unique<Interpreter<double>>(); }

}  // namespace ws
