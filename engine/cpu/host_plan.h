// A plan bound to CPU memory: the address of each buffer, and the batch that a step reads.
#pragma once
#include <algorithm>
#include <vector>

#include "datasets/dataset.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/step_blocks.h"
#include "engine/plan/model.h"
#include "engine/plan/op_tags.h"
#include "engine/plan/run_spec.h"

namespace ws::cpu {

// The values that outlive a plan, by ParamId.
template <class Real>
struct Weights {
  std::vector<std::vector<Real>> parameters, moments[2];
};

// The rows of a step; `order` points to the first of them.
struct Rows {
  const data::Split* split = nullptr;
  const uint32_t* order = nullptr;
};

template <class Real>
class HostPlan {
 public:
  Plan plan;
  OpTags tags;
  StepBlocks memory;
  std::vector<int32_t> labels;

  void bind(const Plan& to, const Model& model, LossKind loss, Weights<Real>& weights) {
    plan = to;
    tags = OpTags(plan);
    weights_ = &weights;
    features_ = model.inputs;
    outputs_ = model.outputs;
    memory.reset(plan, sizeof(Real));
    x_.resize(static_cast<size_t>(plan.batch * features_));
    y_.resize(loss == LossKind::MeanSquared ? static_cast<size_t>(plan.batch * outputs_) : 0);
    labels.resize(loss == LossKind::CrossEntropy ? static_cast<size_t>(plan.loss_rows()) : 0);
    shadows_.assign(plan.buffers.size(), {});
    refresh_shadows();
  }

  // Copies every master into its shadow. Needed where no update op does it: at bind and after a resume.
  void refresh_shadows() {
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& b = plan.buffers[i];
      if (b.role != Role::Shadow) continue;
      shadows_[i] = weights_->parameters[index(b.param)];
      round_all(stored_as(b), Matrix<Real>{shadows_[i].data(), b.rows, b.cols});
    }
  }

  Real* pointer(BufferId id) {
    const Buffer& b = plan.buffer(id);
    switch (b.role) {
      case Role::Batch:
        return b.slot == 0 ? (view_ ? view_ : x_.data()) : y_.data();
      case Role::Parameter:
        return weights_->parameters[index(b.param)].data();
      case Role::Shadow:
        return shadows_[index(id)].data();
      case Role::State:
        return weights_->moments[b.slot][index(b.param)].data();
      case Role::Metric:
        return nullptr;
      case Role::Temp:
        return static_cast<Real*>(memory.at(id));
    }
    return nullptr;
  }
  Matrix<Real> matrix(BufferId id) {
    const Buffer& b = plan.buffer(id);
    return {pointer(id), b.rows, b.cols};
  }

  // Rounds an intermediate to the values that its type can hold.
  void round(BufferId id) {
    const Buffer& b = plan.buffer(id);
    if (b.role == Role::Temp && pointer(id)) round_all(stored_as(b), matrix(id));
  }
  static DType stored_as(const Buffer& b) { return sizeof(Real) == sizeof(float) ? b.type : DType::F32; }

  void load(Rows rows) {
    view_ = nullptr;
    if (!view_rows(rows)) gather_features(rows);
    gather_targets(rows);
    round_features();
  }

  // Loads inputs of a caller, which have no targets.
  void load_inputs(const float* x) {
    view_ = nullptr;
    std::copy_n(x, plan.batch * features_, x_.begin());
    std::fill(y_.begin(), y_.end(), Real(0));
    std::fill(labels.begin(), labels.end(), 0);
    round_features();
  }

 private:
  void round_features() {
    const DType type = stored_as(plan.buffer(plan.features()));
    round_all(type, Matrix<Real>{x_.data(), plan.batch, features_});
  }

  // Reads rows in place if they are adjacent in the data set. This is safe: the interpreter never writes to its inputs.
  bool view_rows(Rows rows) {
    if constexpr (std::is_same_v<Real, float>) {
      const DType type = plan.buffer(plan.features()).type;
      if (type != DType::F32 && type != DType::I32) return false;
      for (int64_t r = 1; r < plan.batch; ++r)
        if (rows.order[r] != rows.order[0] + static_cast<uint32_t>(r)) return false;
      view_ = const_cast<float*>(rows.split->x.data()) + static_cast<int64_t>(rows.order[0]) * features_;
      return true;
    } else {
      return false;
    }
  }

  void gather_features(Rows rows) {
    for (int64_t r = 0; r < plan.batch; ++r)
      std::copy_n(rows.split->x.data() + static_cast<int64_t>(rows.order[r]) * features_, features_,
                  x_.data() + r * features_);
  }

  void gather_targets(Rows rows) {
    const int64_t each = plan.predictions;
    for (int64_t r = 0; !labels.empty() && r < plan.batch; ++r)
      std::copy_n(rows.split->labels.data() + static_cast<int64_t>(rows.order[r]) * each, each, labels.data() + r * each);
    if (y_.empty()) return;
    for (int64_t r = 0; r < plan.batch; ++r)
      std::copy_n(rows.split->targets.data() + static_cast<int64_t>(rows.order[r]) * outputs_, outputs_,
                  y_.data() + r * outputs_);
  }

  Weights<Real>* weights_ = nullptr;
  int64_t features_ = 0, outputs_ = 0;
  std::vector<Real> x_, y_;
  Real* view_ = nullptr;                    // the batch in place in the data set; null: it was copied
  std::vector<std::vector<Real>> shadows_;  // by buffer
};

}  // namespace ws::cpu
