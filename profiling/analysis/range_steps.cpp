#include "profiling/analysis/range_steps.h"

#include <algorithm>

namespace ws::prof {

namespace {

constexpr TimeNs kPatience = 5'000'000'000;  // a launch that failed, or that a graph captured, has no kernel
constexpr double kKnown = 0.99;              // share of the kernels whose launch must be known
constexpr size_t kMostLaunches = size_t{1} << 18;

bool outer_first(const FoundStep& a, const FoundStep& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; }

}  // namespace

void RangeSteps::launch(const std::string& thread, SeenLaunch launch) {
  if (!newest_ || newest_->first != thread) {  // a batch has the launches of a thread together
    const auto [at, fresh] = threads_.try_emplace(thread, static_cast<uint16_t>(threads_.size()));
    if (fresh) ours_.push_back(false);
    newest_ = &*at;
  }
  launches_.push_back({launch.call, newest_->second, false, launch.start});
}

// A range that ends after one inside of it may come late. It takes the place of the inner ones.
void RangeSteps::take_range(FoundStep range) {
  const auto first = std::ranges::lower_bound(host_, range, outer_first);
  if (first != host_.begin() && range.start < std::prev(first)->end) return;
  const auto last = std::ranges::lower_bound(first, host_.end(), range.end, {}, &FoundStep::start);
  const auto at = first - host_.begin(), count = last - first;
  for (auto& [name, row] : rows_) {
    if (static_cast<size_t>(at) >= row.gpu.size()) continue;
    const auto begin = row.gpu.begin() + at, end = begin + std::min(count, row.gpu.end() - begin);
    FoundStep all = kNone;
    for (auto each = begin; each != end; ++each) all = {std::min(all.start, each->start), std::max(all.end, each->end)};
    row.gpu.insert(row.gpu.erase(begin, end), all);
  }
  host_.insert(host_.erase(first, last), range);
  changed_ = std::min(changed_, static_cast<size_t>(at));
  certain_ = std::min(certain_, host_.size());
  for (size_t* each : {&complete_, &candidate_}) *each = std::min(*each, static_cast<size_t>(at));
}

// The newest range waits for its successor: an outer range may still end.
void RangeSteps::take_ranges(bool over) {
  std::ranges::stable_sort(fresh_, outer_first);
  for (const FoundStep& range : fresh_) take_range(range);
  fresh_.clear();
  certain_ = over ? host_.size() : host_.empty() ? 0 : host_.size() - 1;
}

void RangeSteps::sort_launches() {
  if (sorted_ == launches_.size()) return;
  const auto tail = launches_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  std::ranges::stable_sort(tail, launches_.end(), {}, &Launch::call);
  const auto into = std::ranges::upper_bound(launches_.begin(), tail, tail->call, {}, &Launch::call);
  looked_ = std::min(looked_, static_cast<size_t>(into - launches_.begin()));
  std::ranges::inplace_merge(into, tail, launches_.end(), {}, &Launch::call);
  sorted_ = launches_.size();
}

RangeSteps::Launch* RangeSteps::launch_of(uint32_t call) {
  constexpr size_t kNear = 8;
  for (size_t i = hint_; i < std::min(hint_ + kNear, launches_.size()); ++i)
    if (launches_[i].call == call) return &launches_[hint_ = i];
  const auto at = std::ranges::lower_bound(launches_, call, {}, &Launch::call);
  if (at == launches_.end() || at->call != call) return nullptr;
  hint_ = static_cast<size_t>(at - launches_.begin());
  return &*at;
}

// `until`: later launches may belong to a step that is not known yet.
void RangeSteps::place(Row& row, std::vector<SeenKernel>& kernels, TimeNs until, bool over) {
  size_t kept = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const SeenKernel kernel = kernels[i];
    Launch* const launch = launch_of(kernel.call);
    if (launch) launch->seen = true, ours_[launch->thread] = true, row.launched_until = std::max(row.launched_until, launch->start);
    if (!over && (launch ? launch->start >= until : i >= row.asked)) {
      kernels[kept++] = kernel;
      continue;
    }
    ++(launch ? row.kernels : row.unknown);
    if (!launch) continue;
    const auto after = std::ranges::upper_bound(host_, launch->start, {}, &FoundStep::start);
    if (after == host_.begin() || launch->start >= std::prev(after)->end) continue;
    const auto step = static_cast<size_t>(after - host_.begin()) - 1;
    if (row.gpu.size() <= step) row.gpu.resize(step + 1, kNone);
    FoundStep& ran = row.gpu[step];
    if (kernel.start >= ran.start && kernel.end <= ran.end) continue;
    ran = {std::min(ran.start, kernel.start), std::max(ran.end, kernel.end)};
    changed_ = std::min(changed_, step);
  }
  kernels.resize(kept);
  row.asked = kept;
}

// Kernels come in buffers, one a thread. What was launched before a kernel that came a call ago is there by now, and a
// launch of which nothing came yet holds its step back.
void RangeSteps::look_for_complete(const Kernels& kernels, TimeNs now, bool over) {
  over_ = over;
  const TimeNs late = std::max<TimeNs>(now, 0) - kPatience;
  if (over || !any_kernel_) {
    complete_ = candidate_ = certain_;
    return;
  }
  TimeNs until = -kAlways;
  if (launches_known()) {
    const Row* const row = busiest();
    until = std::exchange(seen_before_, row ? row->launched_until : -kAlways);
    const auto skipped = [&](const Launch& launch) { return launch.seen || !ours_[launch.thread] || launch.start < late; };
    while (looked_ < launches_.size() && skipped(launches_[looked_])) ++looked_;
    if (looked_ < launches_.size()) until = std::min(until, launches_[looked_].start);
  } else {
    TimeNs newest = -kAlways;
    for (const auto& [name, row] : kernels)
      if (!row.empty()) newest = std::max(newest, row.back().start);
    until = std::exchange(seen_before_, newest);
  }
  until = std::max(until, late);
  const auto ends = std::ranges::upper_bound(host_.begin(), host_.begin() + static_cast<std::ptrdiff_t>(certain_), until, {}, &FoundStep::end);
  complete_ = std::max(complete_, std::min(candidate_, static_cast<size_t>(ends - host_.begin())));
  candidate_ = static_cast<size_t>(ends - host_.begin());
}

// A kernel comes some seconds after its launch at most.
void RangeSteps::forget_launches() {
  if (launches_.size() < kMostLaunches) return;
  const TimeNs before = complete_ > 0 ? host_[complete_ - 1].start : launches_[launches_.size() / 2].start;
  const size_t old = std::min(looked_, launches_.size() / 2);
  size_t first = 0;
  while (first < old && launches_[first].start < before) ++first;
  launches_.erase(launches_.begin(), launches_.begin() + static_cast<std::ptrdiff_t>(first));
  looked_ -= first, sorted_ = launches_.size();
}

void RangeSteps::update(Kernels& kernels, TimeNs now, bool over) {
  take_ranges(over);
  for (const auto& [name, row] : kernels) any_kernel_ |= !row.empty();
  if (!any()) return;
  if (launches_known()) {
    sort_launches();
    const TimeNs until = certain_ > 0 ? host_[certain_ - 1].end : host_[0].start;
    for (auto& [name, waiting] : kernels)
      if (!waiting.empty()) place(rows_[name], waiting, until, over);
  }
  look_for_complete(kernels, now, over);
  if (!over) forget_launches();
}

const RangeSteps::Row* RangeSteps::busiest() const {
  const Row* most = nullptr;
  for (const auto& [name, row] : rows_)
    if (row.kernels + row.unknown > 0 && (!most || row.kernels + row.unknown > most->kernels + most->unknown)) most = &row;
  return most;
}

// A range that launched no kernels has no time of its own on the GPU.
FoundStep RangeSteps::on_gpu(const Row& row, size_t step, TimeNs before) const {
  const FoundStep ran = step < row.gpu.size() ? row.gpu[step] : kNone;
  if (ran.start <= ran.end) return ran;
  return step > 0 ? FoundStep{before, before} : FoundStep{host_[0].start, host_[0].start};
}

// True if most kernels began after the host had marked the end of their step.
bool RangeSteps::runs_ahead(const Row* row, bool may_move) {
  if (!row || !may_move) return false;
  if (static_cast<double>(row->kernels) < kKnown * static_cast<double>(row->kernels + row->unknown)) return false;
  if (row == row_ && !over_ && complete_ < decided_ + decided_ / 8 + 1) return ahead_;  // looks through all steps seldom
  decided_ = complete_;
  size_t behind = 0;
  FoundStep before{-kAlways, -kAlways};
  for (size_t i = 0; i < complete_; ++i) {
    const FoundStep ran = on_gpu(*row, i, before.end);
    if (ran.start < before.start) return false;
    behind += ran.start > host_[i].end;
    before = ran;
  }
  return 2 * behind > complete_;
}

size_t RangeSteps::show(std::vector<FoundStep>& steps, bool may_move) {
  const Row* const row = busiest();
  const bool ahead = runs_ahead(row, may_move);
  const bool moved = ahead != ahead_ || (ahead && row != row_);
  ahead_ = ahead, row_ = row;
  const size_t stayed = moved ? 0 : std::min({changed_, steps.size(), complete_});
  steps.resize(stayed);
  while (steps.size() < complete_) {
    const size_t i = steps.size();
    FoundStep step = ahead ? on_gpu(*row, i, i > 0 ? steps[i - 1].end : 0) : host_[i];
    step.step = host_[i].step;
    steps.push_back(step);
  }
  changed_ = complete_;
  return stayed;
}

}  // namespace ws::prof
