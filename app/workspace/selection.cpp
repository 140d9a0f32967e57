#include "app/workspace/selection.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace ws::app {
namespace {

void replace(std::vector<RunId>& runs, RunId old, RunId now) {
  std::erase(runs, now);
  std::ranges::replace(runs, old, now);
}

}  // namespace

RunId next_run_id() {
  static std::atomic<uint32_t> last = 0;
  return static_cast<RunId>(++last);
}

std::vector<RunId> Selection::baseline_first(std::vector<RunId> runs) {
  if (runs.size() > 1) std::swap(runs[0], runs[1]);
  return runs;
}

bool Selection::has(RunId run) const { return std::ranges::find(runs_, run) != runs_.end(); }

std::vector<RunId> Selection::without(RunId run) const {
  std::vector<RunId> rest = runs_;
  std::erase(rest, run);
  return rest;
}

void Selection::show(std::vector<RunId> runs) {
  std::erase(runs, RunId::None);
  if (runs.size() > kMost) runs.resize(kMost);
  if (runs == runs_) return;
  runs_ = std::move(runs);
  if (changed) changed();
}

void Selection::started(RunId run, bool comparable) {
  before_start_ = without(run);
  newest_start_ = run;
  const RunId last = current() == run ? RunId::None : current();
  show({run, comparable ? last : RunId::None});
}

void Selection::startedInSeries(RunId run) {
  before_start_ = without(run);
  newest_start_ = run;
  std::vector<RunId> now = before_start_;
  now.insert(now.begin(), run);
  show(std::move(now));
}

void Selection::ended(RunId run, bool any_step) {
  if (any_step) return;
  if (run == newest_start_ && current() == run) return show(before_start_);
  drop(run);
}

void Selection::select(RunId run) {
  if (run == RunId::None || run == current()) return;
  std::vector<RunId> now = runs_;
  if (const auto place = std::ranges::find(now, run); place != now.end())
    std::iter_swap(place, now.begin());
  else if (now.empty())
    now.push_back(run);
  else
    now.front() = run;
  show(std::move(now));
}

void Selection::compareWith(RunId baseline) {
  if (baseline != current()) show({current(), baseline});
}

void Selection::compare(RunId baseline, RunId current) {
  show(baseline == current ? std::vector{current} : std::vector{current, baseline});
}

bool Selection::add(RunId run) {
  if (has(run)) return true;
  if (run == RunId::None || runs_.size() >= kMost) return false;
  std::vector<RunId> now = runs_;
  now.push_back(run);
  show(std::move(now));
  return true;
}

void Selection::drop(RunId run) { show(without(run)); }

void Selection::setBaseline(RunId run) {
  if (run == RunId::None || run == baseline()) return;
  if (run == current()) return swap();
  std::vector<RunId> now = without(run);
  if (now.empty()) return show({run});
  now.insert(now.begin() + 1, run);
  show(std::move(now));
}

void Selection::swap() {
  std::vector<RunId> now = runs_;
  if (now.size() > 1) std::swap(now[0], now[1]);
  show(std::move(now));
}

void Selection::open(const std::vector<RunId>& runs) {
  std::vector<RunId> now;
  for (const RunId run : runs)
    if (std::ranges::find(now, run) == now.end()) now.push_back(run);
  show(std::move(now));
}

void Selection::removed(RunId run, RunId newest) {
  std::erase(before_start_, run);
  if (!has(run)) return;
  Removal removal{run, runs_, without(run)};
  if (removal.after.empty() && newest != RunId::None) removal.after = {newest};
  removals_.push_back(removal);
  show(removal.after);
}

// Restores what was shown, unless the user has shown something else since.
void Selection::restored(RunId removed, RunId now) {
  const auto kept = std::ranges::find(removals_, removed, &Removal::run);
  if (kept == removals_.end()) return;
  Removal removal = *kept;
  removals_.erase(kept);
  for (Removal& other : removals_) replace(other.before, removed, now), replace(other.after, removed, now);
  if (removal.after != runs_) return static_cast<void>(add(now));
  replace(removal.before, removed, now);
  show(std::move(removal.before));
}

void Selection::replaced(RunId live, RunId file) {
  replace(before_start_, live, file);
  for (Removal& removal : removals_) replace(removal.before, live, file), replace(removal.after, live, file);
  if (newest_start_ == live) newest_start_ = file;
  std::vector<RunId> now = runs_;
  if (has(live)) replace(now, live, file);
  show(std::move(now));
}

}  // namespace ws::app
