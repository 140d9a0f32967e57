#include "app/workspace/step_split.h"

#include "profiling/analysis/step_sample.h"

namespace ws::app {
namespace {

constexpr size_t kSplitSteps = 200;  // the newest steps, so that a change in mid-run shows

}  // namespace

StepSplit split_from(const prof::MeaningTimes& times, prof::TimeNs wall, int64_t steps) {
  StepSplit split;
  const double per_step = 1e-3 / static_cast<double>(steps);
  prof::MeaningTimes sums = times;
  // Waiting for the next launch and waiting for anything else are one hatched part in the window.
  sums[static_cast<size_t>(prof::Meaning::Idle)] += sums[static_cast<size_t>(prof::Meaning::Launch)];
  sums[static_cast<size_t>(prof::Meaning::Launch)] = 0;
  for (size_t i = 0; i < prof::kMeanings; ++i)
    if (sums[i] > 0)
      split.parts.push_back({static_cast<prof::Meaning>(i), {}, static_cast<double>(sums[i]) * per_step});
  split.steps = steps;
  split.wall_us = static_cast<double>(wall) * per_step;
  return split;
}

StepSplit split_of(const prof::Trace& marks, const prof::Trace& trace, prof::TimeNs until, double steps_per_epoch,
                   int64_t since) {
  const prof::StepSample sample = prof::sample_steps(marks, trace, steps_per_epoch, {until, kSplitSteps, since});
  const prof::Breakdown& parts = sample.parts;
  if (parts.steps == 0 || parts.wall() <= 0) return {};
  StepSplit split = split_from(parts.times, parts.wall(), parts.steps);
  split.kernels = sample.kernels_per_step, split.allocations = sample.allocations_per_step;
  const prof::TimeNs busy = parts.kernels() + parts.times[static_cast<size_t>(prof::Meaning::Copy)];
  split.busy = static_cast<double>(busy) / static_cast<double>(parts.wall());
  return split;
}

}  // namespace ws::app
