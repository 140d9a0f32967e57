#include "engine/plan/op_tags.h"

#include <map>
#include <mutex>

namespace ws {

prof::Meaning meaning_of(const Op& op) {
  using prof::Meaning;
  switch (op.kind) {
    case OpKind::LoadBatch:
      return Meaning::Copy;
    case OpKind::MatMul:
    case OpKind::Conv:
    case OpKind::ConvDataGrad:
    case OpKind::ConvWeightGrad:
    case OpKind::Attention:
    case OpKind::AttentionGrad:
    case OpKind::HeadProduct:
    case OpKind::WeightGradients:
      return Meaning::Matrix;
    case OpKind::Softmax:
    case OpKind::CrossEntropy:
    case OpKind::SoftmaxGrad:
    case OpKind::SquaredError:
    case OpKind::SquaredErrorGrad:
    case OpKind::SoftmaxCrossEntropy:
    case OpKind::SquaredErrorFused:
    case OpKind::LinearStep:
    case OpKind::LinearUpdate:
    case OpKind::OutputLayer:
      return Meaning::Loss;
    case OpKind::CheckFinite:
    case OpKind::ClipGradients:
    case OpKind::Update:
    case OpKind::UpdateAll:
    case OpKind::GradientUpdate:
      return Meaning::Optimizer;
    case OpKind::AllReduce:
      return Meaning::Communication;
    case OpKind::Alloc:
    case OpKind::Free:
      return Meaning::Allocation;
    case OpKind::Sync:
      return Meaning::Sync;
    default:
      return Meaning::Pointwise;
  }
}

prof::OpInfo op_info(const Plan& plan, const Op& op) {
  return {op.name, describe(plan, op), op.layer >= 0 ? plan.layer_names[static_cast<size_t>(op.layer)] : "",
          std::string(to_string(op.phase)), meaning_of(op), flops(plan, op), bytes(plan, op)};
}

namespace {

prof::OpTag register_plan(const Plan& plan) {
  std::vector<prof::OpInfo> infos;
  for (const Op& op : plan.ops)
    infos.push_back(op_info(plan, op));
  return prof::register_ops(std::move(infos));
}

}  // namespace

OpTags::OpTags(const Plan& plan) {
  static std::mutex mutex;
  static std::map<std::string, prof::OpTag> known;  // by plan id, so that a long session does not use up the tags
  const std::lock_guard lock(mutex);
  const auto found = known.find(plan.id);
  first_ = found != known.end() ? found->second : known[plan.id] = register_plan(plan);
}

}  // namespace ws
