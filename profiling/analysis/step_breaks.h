// Where a row of steps is interrupted. A mean step contains no evaluation, pause or untraced stretch.
#pragma once
#include <span>
#include <vector>

#include "profiling/analysis/step_sample.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// An evaluation follows each epoch. A pause is a gap that is much longer than the usual ones.
class StepBreaks {
 public:
  // `steps_per_epoch`: 0 if unknown.
  explicit StepBreaks(std::span<const Span> steps, double steps_per_epoch = 0, std::vector<StepWindowNs> untraced = {});
  bool between(const Span& before, const Span& after) const;
  int64_t stride() const { return stride_; }  // steps per mark

 private:
  double steps_per_epoch_;
  TimeNs pause_ = 0;
  int64_t stride_ = 1;
  std::vector<StepWindowNs> untraced_;
};

}  // namespace ws::prof
