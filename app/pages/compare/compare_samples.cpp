#include "app/pages/compare/compare_samples.h"

#include <algorithm>

#include "app/workspace/compared_live_run.h"

namespace ws::app {

std::vector<Measures> ComparedRuns::measures() const {
  std::vector<const ComparedRun*> all;
  for (const auto& run : figures) all.push_back(run.get());
  return measures_of(all);
}

CompareSamples::CompareSamples(QObject* parent) : QObject(parent) {
  next_.setSingleShot(true);
  next_.setInterval(0);
  connect(&next_, &QTimer::timeout, this, &CompareSamples::takeNext);
}

void CompareSamples::look(const std::vector<Run*>& runs) {
  std::erase_if(samples_, [&](const auto& entry) { return std::ranges::find(runs, entry.first) == runs.end(); });
  stale_.clear();
  for (Run* run : runs) {
    Cached& known = samples_[run];
    const bool same = known.spans == run->trace.span_count() && known.steps == run->steps.size() &&
                      known.ended == run->summary.has_value();
    if (!same) known.left = Cached::Left::All;
    readRanks(run);
    if (known.left != Cached::Left::Nothing) stale_.emplace_back(run);
  }
  if (stale_.empty())
    emit taken();
  else
    next_.start();
}

// On another thread: a trace of many ranks is long.
void CompareSamples::readRanks(Run* run) {
  if (!several_ranks(run->trace)) return;
  Cached& cached = samples_[run];
  if (!cached.ranks) {
    cached.ranks = std::make_unique<RankReader>();
    cached.ranks->setRun(run);
    connect(cached.ranks.get(), &RankReader::changed, this, [this, &cached] {
      auto with_ranks = std::make_shared<ComparedRun>(*cached.run);
      take_ranks(*with_ranks, *cached.ranks->report());
      cached.run = std::move(with_ranks);
      if (ready()) emit taken();
    });
  }
  cached.ranks->refresh();
}

std::shared_ptr<const ComparedRun> CompareSamples::of(const Run* run) const {
  const auto at = samples_.find(run);
  return at == samples_.end() ? std::make_shared<ComparedRun>() : at->second.run;
}

std::shared_ptr<const prof::MemoryCurves> CompareSamples::memory(const Run* run) const {
  const auto at = samples_.find(run);
  return at == samples_.end() ? nullptr : at->second.memory;
}

void CompareSamples::takeNext() {
  constexpr size_t kEventsATurn = 50'000;
  while (!stale_.empty() && !stale_.front()) stale_.erase(stale_.begin());
  if (!stale_.empty()) {
    const Run* run = stale_.front();
    Cached& cached = samples_[run];
    if (cached.left == Cached::Left::All) {
      cached.spans = run->trace.span_count();
      cached.steps = run->steps.size();
      cached.ended = run->summary.has_value();
      auto taken_run = std::make_shared<ComparedRun>(compared_run(*run));
      if (cached.ranks) take_ranks(*taken_run, *cached.ranks->report());
      cached.run = std::move(taken_run);
      cached.left = Cached::Left::Memory;
    } else if (cached.memory->update(run->trace, kEventsATurn)) {
      cached.left = Cached::Left::Nothing;
      stale_.erase(stale_.begin());
    }
  }
  if (!stale_.empty()) return next_.start();
  emit taken();
}

}  // namespace ws::app
