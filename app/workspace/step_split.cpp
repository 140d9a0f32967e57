#include "app/workspace/step_split.h"

#include <algorithm>

#include "profiling/analysis/why_left_out.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
StepSplit split_from(const prof::MeaningTimes& times, prof::TimeNs wall, int64_t steps) {
  StepSplit split;
  const double per_step = 1e-3 / static_cast<double>(steps);
  for (size_t i = 0; i < prof::kMeanings; ++i)
    if (times[i] > 0)
      split.parts.push_back({static_cast<prof::Meaning>(i), {}, static_cast<double>(times[i]) * per_step});
  split.steps = steps, split.which = prof::which_steps({.count = steps});
  split.wall_us = static_cast<double>(wall) * per_step;
  return split;
}

double StepSplit::inner_wait_us() const {
  const auto part = std::ranges::find(parts, prof::PartKind::InnerWait, &SplitPart::kind);
  return part == parts.end() ? 0 : part->us;
}

StepSplit split_of(const prof::StepsOfRun& steps_of_run, const prof::SampleRange& range, double step_us) {
  prof::StepSample sample = steps_of_run.sample(range);
  prof::scale_median(sample, step_us);
  const prof::Breakdown& parts = sample.median_parts;
  if (parts.steps == 0 || parts.wall() <= 0) return {};
  prof::MeaningTimes times{};
  std::vector<SplitPart> of_host;
  for (const auto& [id, ns] : prof::parts_of(parts)) {
    if (id.kind == prof::PartKind::OfMeaning)
      times[static_cast<size_t>(id.meaning)] = ns;
    else
      of_host.push_back({id.meaning, QString::fromUtf8(prof::part_name(id)), static_cast<double>(ns) * 1e-3 / static_cast<double>(parts.steps), id.kind});
  }
  StepSplit split = split_from(times, parts.wall(), parts.steps);
  split.steps = sample.parts.steps, split.marked = sample.marked, split.which = prof::which_steps(sample.which);
  if (prof::used_gpu(steps_of_run.trace())) split.gpu = prof::gpu_figures(steps_of_run.trace(), sample.row, sample.row_steps);
  split.parts.insert(split.parts.end(), of_host.begin(), of_host.end());
  split.kernels = sample.kernels_per_step, split.allocations = sample.allocations_per_step;
  split.busy = sample.busy_share(), split.left_out = QString::fromStdString(prof::why_left_out(sample));
  split.short_launches = sample.longer_launch_us > 0, split.rank = sample.rank;
  return split;
}

}  // namespace ws::app
