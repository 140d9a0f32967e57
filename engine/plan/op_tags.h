// Ties a bound plan's ops to the marks that the collectors see.
#pragma once
#include <optional>

#include "engine/plan/plan.h"
#include "profiling/annotate/annotate.h"

namespace ws {

prof::Meaning meaning_of(const Op& op);

// Registers every op of a plan once; the same plan bound again keeps its tags.
class OpTags {
 public:
  OpTags() = default;
  explicit OpTags(const Plan& plan);
  prof::OpTag of(size_t op) const { return static_cast<prof::OpTag>(first_ + op); }

 private:
  prof::OpTag first_ = prof::kNoOp;
};

// Opens and closes phase marks while ops go by.
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
