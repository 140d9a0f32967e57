// Where a row of steps is interrupted. A mean step contains no evaluation, pause or untraced stretch.
#pragma once
#include <set>
#include <span>
#include <vector>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// A step that is so much longer than the median contains a pause: a program that marks the ends of its steps evaluates,
// writes checkpoints and waits for its first batch inside of steps.
inline constexpr double kPauseFactor = 10;

// An evaluation follows each epoch. A pause is a gap that is much longer than the usual ones, or it makes a step long.
class StepBreaks {
 public:
  // `steps_per_epoch`: 0 if unknown.
  explicit StepBreaks(std::span<const Span> steps, double steps_per_epoch = 0, std::vector<StepWindowNs> untraced = {});
  // The steps of another rank of the same program. A rank that comes late interrupts only itself, and other ranks wait in
  // their step. So a pause of one rank is none.
  void share(std::span<const Span> of_other_rank);
  bool between(const Span& before, const Span& after) const;
  bool pause(const Span& before, const Span& after) const;  // one reason of a break
  // A launch of more steps than the usual ones, right before the next launch. Its content may be known less well.
  bool longer_launch(const Span& before, const Span& after) const;
  int64_t steps_between(const Span& before, const Span& after) const;
  int64_t stride() const { return stride_; }  // steps per mark

 private:
  bool other_epoch(const Span& before, const Span& after) const;
  bool untraced_between(const Span& before, const Span& after) const;
  bool own_pause(const Span& before, const Span& after) const;

  double steps_per_epoch_;
  TimeNs pause_ = 0, longest_ = kAlways;  // of a gap; from one step to the next
  int64_t stride_ = 1;
  std::vector<StepWindowNs> untraced_;
  std::set<uint32_t> run_through_;  // step + 1, before which another rank makes no pause
};

}  // namespace ws::prof
