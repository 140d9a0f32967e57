#include "engine/plan/op_tags.h"

#include <iterator>
#include <map>
#include <mutex>

namespace ws {

const OpFacts& facts_of(OpKind kind) {
  using prof::Meaning;
  static constexpr OpFacts kFacts[] = {  // in the order of OpKind
      {"load batch", Meaning::Copy},
      {"matmul", Meaning::Matrix},
      {"broadcast bias", Meaning::Pointwise},
      {"add", Meaning::Pointwise},
      {"activate", Meaning::Pointwise, 8},
      {"activate grad", Meaning::Pointwise, 8},
      {"softmax", Meaning::Loss, 5},
      {"cross entropy", Meaning::Loss, 5},
      {"softmax grad", Meaning::Loss},
      {"squared error", Meaning::Loss, 3},
      {"squared error grad", Meaning::Loss},
      {"column sum", Meaning::Reduction},
      {"check finite", Meaning::Optimizer},
      {"update", Meaning::Optimizer},
      {"bias activate", Meaning::Pointwise, 2},
      {"softmax cross entropy", Meaning::Loss, 5},
      {"squared error fused", Meaning::Loss, 3},
      {"update all", Meaning::Optimizer},
      {"linear step", Meaning::Loss, 8},
      {"output layer", Meaning::Loss},
      {"gradient update", Meaning::Matrix},  // the products of the gradients are most of its work
      {"weight gradients", Meaning::Matrix},
      {"linear update", Meaning::Loss, 8},
      {"all-reduce", Meaning::Communication},
      {"conv", Meaning::Matrix},
      {"conv data grad", Meaning::Matrix},
      {"conv weight grad", Meaning::Matrix},
      {"max pool", Meaning::Reduction},
      {"max pool grad", Meaning::Reduction},
      {"average pool", Meaning::Reduction},
      {"average pool grad", Meaning::Reduction},
      {"batch norm", Meaning::Reduction, 8},
      {"batch norm apply", Meaning::Reduction, 2},
      {"batch norm grad", Meaning::Reduction, 11},
      {"layer norm", Meaning::Reduction, 8},
      {"layer norm grad", Meaning::Reduction, 11},
      {"embed", Meaning::Pointwise},
      {"embed grad", Meaning::Pointwise},
      {"attention", Meaning::Matrix},
      {"attention grad", Meaning::Matrix},
      {"head product", Meaning::Matrix},
      {"causal softmax", Meaning::Reduction, 5},
      {"causal softmax grad", Meaning::Reduction, 4},
      {"transpose", Meaning::Pointwise, 0},
      {"dropout", Meaning::Pointwise, 2},
      {"prepare", Meaning::Pointwise, 2},
      {"clip gradients", Meaning::Optimizer, 3},
      {"alloc", Meaning::Allocation},
      {"free", Meaning::Allocation},
      {"sync", Meaning::Sync},
  };
  static_assert(std::size(kFacts) == static_cast<size_t>(OpKind::Sync) + 1);
  return kFacts[static_cast<size_t>(kind)];
}

prof::OpInfo op_info(const Plan& plan, const Op& op) {
  return {op.name, describe(plan, op), op.layer >= 0 ? plan.layer_names[static_cast<size_t>(op.layer)] : "",
          std::string(to_string(op.phase)), facts_of(op.kind).meaning, flops(plan, op), bytes(plan, op)};
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
