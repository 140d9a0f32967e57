// Links the ops of a bound plan to the marks that the profiler's collectors record.
#pragma once
#include <optional>
#include <string_view>

#include "engine/plan/plan.h"
#include "profiling/annotate/annotate.h"

namespace ws {

// What all ops of a kind share.
struct OpFacts {
  std::string_view name;
  prof::Meaning meaning;
  int64_t flops = 1;  // for each element of the first operand; not used where flops() has a formula
};
const OpFacts& facts_of(OpKind kind);
inline prof::Meaning meaning_of(const Op& op) { return facts_of(op.kind).meaning; }
prof::OpInfo op_info(const Plan& plan, const Op& op);

// Registers every op of a plan once. Binding the same plan again keeps its tags.
class OpTags {
 public:
  OpTags() = default;
  explicit OpTags(const Plan& plan);
  prof::OpTag of(size_t op) const { return static_cast<prof::OpTag>(first_ + op); }

 private:
  prof::OpTag first_ = prof::kNoOp;
};

// Opens and closes phase marks while an executor goes through the ops.
class PhaseWalk {
 public:
  void enter(Phase phase) {
    if (open_ && phase == phase_) return;
    phase_ = phase;
    open_.emplace(to_string(phase).data());  // the names are literals
  }

 private:
  Phase phase_ = Phase::Input;
  std::optional<prof::PhaseScope> open_;
};

}  // namespace ws
