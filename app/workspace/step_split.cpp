#include "app/workspace/step_split.h"

#include <algorithm>
#include <tuple>

#include "profiling/analysis/step_sample.h"

namespace ws::app {
namespace {

// Gives the host's work in the gaps its own rows: waiting for data always, the rest only if there is no GPU work.
void name_gaps(StepSplit& split, const prof::Breakdown& parts) {
  using prof::HostWork, prof::Meaning;
  const auto idle = std::ranges::find(split.parts, Meaning::Idle, &SplitPart::meaning);
  if (idle == split.parts.end()) return;
  const bool host_alone = parts.busy == 0;
  const std::tuple<HostWork, Meaning, QString> kRows[] = {
      {HostWork::Forward, Meaning::Other, QObject::tr("forward, on the host")},
      {HostWork::Backward, Meaning::Other, QObject::tr("backward, on the host")},
      {HostWork::Optimizer, Meaning::Optimizer, QObject::tr("optimizer, on the host")},
      {HostWork::Data, Meaning::Idle, QObject::tr("waits for data")}};
  std::vector<SplitPart> named;
  for (const auto& [work, meaning, name] : kRows) {
    const int64_t ns = parts.gaps[static_cast<size_t>(work)];
    if (ns <= 0 || (!host_alone && work != HostWork::Data)) continue;
    named.push_back({meaning, name, static_cast<double>(ns) * 1e-3 / static_cast<double>(parts.steps)});
    idle->us -= named.back().us;
  }
  if (host_alone && !named.empty()) idle->name = QObject::tr("other work of the host");
  split.parts.insert(idle, named.begin(), named.end());
}

}  // namespace

StepSplit split_from(const prof::MeaningTimes& times, prof::TimeNs wall, int64_t steps) {
  StepSplit split;
  const double per_step = 1e-3 / static_cast<double>(steps);
  prof::MeaningTimes sums = times;
  // Waiting for the next launch and other waiting are one hatched part in the window.
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
  const prof::StepSample sample = prof::sample_steps(marks, trace, steps_per_epoch, {.until = until, .since = since});
  const prof::Breakdown& parts = sample.parts;
  if (parts.steps == 0 || parts.wall() <= 0) return {};
  StepSplit split = split_from(parts.times, parts.wall(), parts.steps);
  name_gaps(split, parts);
  split.kernels = sample.kernels_per_step, split.allocations = sample.allocations_per_step;
  split.busy = parts.busy_share();
  return split;
}

}  // namespace ws::app
