#include "profiling/causes/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/failure.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"
#include "profiling/causes/launch_times.h"

namespace ws::prof {
namespace {

constexpr size_t kMostExact = 6;  // edits whose orders are all tried: 64 replays
constexpr double kReplayed = 0.01;  // a replay that misses the measured time by more is said
constexpr int kOrders = 24;       // of more edits, drawn with a fixed seed
constexpr double kMentioned = 0.01;  // of a step: what is not known of launches

class Prediction {
 public:
  Prediction(const StepCauses& causes, const Trace& trace, const std::vector<Edit>& edits)
      : causes_(causes), graph_(causes.graph), trace_(trace), edits_(edits), editor_(causes, trace), launches_(causes.graph), rate_(causes.graph, causes.cuts), start_(measured_timing(causes.graph)) {}

  WhatIf result(size_t most_rows) {
    WhatIf all;
    all.measured_us = causes_.step_us, all.steps = causes_.steps, all.which = causes_.which, all.whole_trace = causes_.whole_trace, all.warnings = graph_.warnings;
    const std::vector<TimeNs> unchanged = replay(graph_, start_);
    base_ = rate_.ratio(unchanged);
    all.replay_error = std::abs(base_ - 1);
    all.unexplained_us = per_step(static_cast<double>(graph_.unexplained_ns));
    if (graph_.unexplained_ns > 0) all.least_explained = name_of(graph_.least_explained);
    if (all.replay_error > kReplayed) all.warnings.push_back(missed_text(all.replay_error, unchanged));
    describe(start_, start_, unchanged, most_rows, all.path, all.rows, all.more_rows);
    all.predicted_us = all.measured_us, all.saves_us = {0, 0};
    if (!edits_.empty()) add_edits(all, most_rows);
    return all;
  }

  CriticalReport report() {
    CriticalReport report;
    const std::vector<TimeNs> times = replay(graph_, start_);
    base_ = rate_.ratio(times);
    const CriticalPath path = critical_path(graph_, start_, times);
    report.step_us = causes_.step_us, report.steps = causes_.steps, report.which = causes_.which, report.whole_trace = causes_.whole_trace, report.warnings = graph_.warnings;
    report.unexplained_us = per_step(static_cast<double>(graph_.unexplained_ns));
    if (graph_.unexplained_ns > 0) report.least_explained = name_of(graph_.least_explained);
    for (const PathGroup& group : editor_.groups()) {
      const double on_path = path_ns(group, path);
      const std::optional<int> rank = busiest_rank(group, start_);
      report.rows.push_back({group.kind, group.name, group.meaning, work_us(group, start_, rank), on_path / static_cast<double>(path.total_ns) * report.step_us.value, on_path > 0 ? 0 : slack_us(group, path), rank.value_or(-1)});
    }
    std::ranges::stable_sort(report.rows, [](const auto& a, const auto& b) {
      const auto key = [](const auto& row) { return std::tuple(row.kind == GroupKind::Cause ? -1 : static_cast<int>(row.kind), -row.path_us, -row.now_us); };
      return key(a) < key(b);
    });
    return report;
  }

 private:
  std::string name_of(uint32_t node) const { return shortened(plain_kernel_name(trace_.name(graph_.nodes[node].name)), 60); }

  // Names the span whose length of time the replay misses most.
  std::string missed_text(double error, const std::vector<TimeNs>& times) const {
    const auto moved = [&](uint32_t node) {
      return std::abs((times[end_of(node)] - times[start_of(node)]) - graph_.nodes[node].measured_ns);
    };
    uint32_t most = 0;
    for (uint32_t node = 1; node < graph_.nodes.size(); ++node)
      if (moved(node) > moved(most)) most = node;
    return "The replay of the unchanged steps is " + fixed(100 * error, 1) + " % off. It cannot explain " + name_of(most) + ": " + fixed(static_cast<double>(moved(most)) * 1e-3, 2) + " µs.";
  }

  // ns of the window as µs of a step, on the scale of the step time that every view shows.
  double per_step(double ns) const {
    const auto window = static_cast<double>(graph_.window.length());
    return window > 0 ? ns / window * causes_.step_us.value : 0;
  }

  double slack_us(const PathGroup& group, const CriticalPath& path) const {
    int64_t least = kAlways;
    for (const auto& [node, share] : group.nodes) least = std::min(least, path.slack_ns[node]);
    return group.nodes.empty() ? std::nan("") : static_cast<double>(least) * 1e-3;
  }

  // The ns of each node and each delay of a group on a rank, or on all of them.
  template <class Visit>
  void each_ns(const PathGroup& group, const Timing& timing, std::optional<int> rank, Visit visit) const {
    const auto counts = [&](uint32_t node) { return !rank || graph_.nodes[node].rank == *rank; };
    for (const auto& [node, share] : group.nodes)
      if (counts(node)) visit(node, static_cast<double>(timing.work_ns[node]) * static_cast<double>(share));
    for (const uint32_t edge : group.edges) {
      if (timing.lag[edge] == kNoLag) continue;
      const auto event = static_cast<EventId>(std::ranges::upper_bound(graph_.first_edge, edge) - graph_.first_edge.begin() - 1);
      if (counts(event / 2)) visit(event / 2, static_cast<double>(std::max<int64_t>(0, timing.lag[edge])));
    }
  }

  double now_ns(const PathGroup& group, const Timing& timing, std::optional<int> rank) const {
    double sum = 0;
    each_ns(group, timing, rank, [&sum](uint32_t, double ns) { sum += ns; });
    return sum;
  }

  // The rank with most of the group. A step is one step of each rank, so the sum over ranks would be longer than the step.
  std::optional<int> busiest_rank(const PathGroup& group, const Timing& timing) const {
    if (!several_ranks_) return std::nullopt;
    std::map<int, double> by_rank;
    each_ns(group, timing, std::nullopt, [&](uint32_t node, double ns) { by_rank[graph_.nodes[node].rank] += ns; });
    if (by_rank.empty()) return std::nullopt;
    return std::ranges::max_element(by_rank, {}, [](const auto& one) { return one.second; })->first;
  }

  // Its work in the median step, on the scale of the step time. What it saves is also of the median step, in the second half of
  // the steps: see ReplayRate.
  double work_us(const PathGroup& group, const Timing& timing, std::optional<int> rank) const {
    constexpr size_t kFewest = 4;
    const std::vector<TimeNs>& cuts = causes_.cuts;
    if (cuts.size() <= kFewest) return per_step(now_ns(group, timing, rank));
    std::vector<double> work(cuts.size() - 1), length;
    each_ns(group, timing, rank, [&](uint32_t node, double ns) {
      const auto after = std::ranges::upper_bound(cuts, graph_.nodes[node].start);
      if (after != cuts.begin() && after != cuts.end()) work[static_cast<size_t>(after - cuts.begin()) - 1] += ns;
    });
    for (size_t step = 0; step < work.size(); ++step) length.push_back(static_cast<double>(cuts[step + 1] - cuts[step]));
    for (std::vector<double>* of_steps : {&work, &length}) of_steps->erase(of_steps->begin(), of_steps->begin() + static_cast<std::ptrdiff_t>(of_steps->size() / 2));
    const double middle = median(std::move(length));
    return middle > 0 ? median(std::move(work)) / middle * causes_.step_us.value : 0;
  }

  double step_us(Timing& edited) {
    launches_.settle(edited, times_);
    return causes_.step_us.value * rate_.ratio(times_) / base_;
  }

  PathShare path_share(const PathGroup& group, const Timing& timing, double path_us) const {
    Timing lasts = timing;
    for (const auto& [node, share] : group.nodes)
      if (lasts.work_ns[node] > 0) lasts.work_ns[node] = graph_.nodes[node].measured_ns;
    const std::optional<int> rank = busiest_rank(group, timing);
    return {group.name, group.meaning, path_us, work_us(group, timing, rank), work_us(group, lasts, rank)};
  }

  // `settled`: with what the launches of `timing` take then.
  void describe(const Timing& timing, const Timing& settled, const std::vector<TimeNs>& times, size_t most_rows, std::vector<PathShare>& shares, std::vector<HelpRow>& rows, size_t& more) {
    const CriticalPath path = critical_path(graph_, settled, times), gpus_wait = while_gpus_wait(graph_, times, path);
    const double now = causes_.step_us.value * rate_.ratio(times) / base_;
    std::vector<std::pair<double, const PathGroup*>> on_path;
    for (const PathGroup& group : editor_.groups())
      if (const double ns = path_ns(group, path); ns > 0) {
        on_path.emplace_back(ns, &group);
        if (group.kind != GroupKind::Cause) continue;
        const double us = now / static_cast<double>(path.total_ns);
        shares.push_back(path_share(group, timing, ns * us)), shares.back().gpu_waits_us = path_ns(group, gpus_wait) * us;
      }
    std::ranges::stable_sort(on_path, std::ranges::greater{}, [](const auto& one) { return one.first; });
    more = on_path.size() - std::min(on_path.size(), most_rows);
    on_path.resize(on_path.size() - more);
    Timing changed;
    for (const auto& [ns, group] : on_path) {
      changed = timing;
      editor_.make_free(*group, changed);
      const std::optional<int> rank = busiest_rank(*group, timing);
      const double work = work_us(*group, timing, rank), all_ns = now_ns(*group, timing, rank);
      rows.push_back({group->kind, group->name, group->meaning, work, all_ns > 0 ? ns / all_ns * work : 0, now - step_us(changed), rank.value_or(-1)});
    }
    std::ranges::stable_sort(rows, std::ranges::greater{}, &HelpRow::gain_us);
    std::ranges::stable_sort(shares, std::ranges::greater{}, &PathShare::path_us);
  }

  // Sets of edits are bits. The one that puts calls into a graph comes last: it must see which calls stay.
  Timing edited(uint64_t set) const {
    Timing timing = start_;
    for (const bool last : {false, true})
      for (size_t i = 0; i < edits_.size(); ++i)
        if ((set >> i & 1) && (edits_[i].kind == EditKind::OneGraph) == last) editor_.apply(edits_[i], timing);
    return timing;
  }
  double with(uint64_t set) {
    if (const auto known = known_.find(set); known != known_.end()) return known->second;
    Timing timing = edited(set);
    return known_[set] = step_us(timing);
  }

  void add_edits(WhatIf& all, size_t most_rows) {
    if (edits_.size() > 60) throw Failure("These are more than 60 edits. Try fewer at once.");
    const uint64_t every = (uint64_t{1} << edits_.size()) - 1;
    const Timing timing = edited(every);
    Timing settled = timing;
    std::vector<TimeNs> times;
    launches_.settle(settled, times);
    predict(times, launches_.unknown(settled, times), all);
    known_[0] = causes_.step_us.value, known_[every] = all.predicted_us.value;
    const std::vector<double> means = mean_parts();
    for (size_t i = 0; i < edits_.size(); ++i) {
      all.edits.push_back({edits_[i].text, known_[0] - with(uint64_t{1} << i), means[i]});
      const bool matters = std::abs(all.edits[i].alone_us) >= kMentioned * causes_.step_us.value;
      if (std::string other = editor_.other_meaning(edits_[i]); !matters && !other.empty()) all.warnings.push_back(std::move(other));
    }
    describe(timing, settled, times, most_rows, all.path_after, all.rows_after, all.more_rows_after);
  }

  // The noise of the measured step, and how much the ratio differs between pieces of the window. Where records were lost, the
  // same share of what changes is not known. Nor is what launches take that find what they did not find in the trace.
  void predict(const std::vector<TimeNs>& times, const LaunchTimes::Unknown& not_known, WhatIf& all) {
    const double ratio = rate_.ratio(times) / base_;
    const double pieces = mean_with_interval(rate_.ratios(times)).half_width / base_;
    const double launches = per_step(static_cast<double>(not_known.ns));
    if (launches > kMentioned * causes_.step_us.value * ratio) all.warnings.push_back(unknown_text(not_known, launches));
    const double unknown = lost_share(trace_);
    const auto share = [&](double of_step) {
      return Interval{causes_.step_us.value * of_step,
                      std::hypot(std::hypot(causes_.step_us.half_width * of_step, causes_.step_us.value * pieces, causes_.step_us.value * unknown), launches)};
    };
    all.predicted_us = share(ratio), all.saves_us = share(1 - ratio);
  }

  std::string unknown_text(const LaunchTimes::Unknown& not_known, double us) const {
    return fixed(static_cast<double>(not_known.launches) / causes_.steps, 1) + " launches of a step find something else then: a busy stream instead of an idle one, or a launch before them instead of a wait or an allocator call. This trace has too few launches of the same kernels "
           "to show what that changes, so the interval is up to " + fixed(us, 2) + " µs wider.";
  }

  std::vector<double> mean_parts() {
    const size_t count = edits_.size();
    std::vector<double> parts(count, 0);
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::mt19937 lot(1);
    int orders = 0;
    const auto add_order = [&] {
      uint64_t set = 0;
      for (const size_t i : order) {
        parts[i] += with(set) - with(set | uint64_t{1} << i);
        set |= uint64_t{1} << i;
      }
      ++orders;
    };
    if (count <= kMostExact) {
      do add_order();
      while (std::ranges::next_permutation(order).found);
    } else {
      for (int i = 0; i < kOrders; ++i) std::ranges::shuffle(order, lot), add_order();
    }
    for (double& part : parts) part /= orders;
    return parts;
  }

  const StepCauses& causes_;
  const CauseGraph& graph_;
  const Trace& trace_;
  const std::vector<Edit>& edits_;
  const Editor editor_;
  const LaunchTimes launches_;
  const ReplayRate rate_;
  const Timing start_;
  const bool several_ranks_ = std::ranges::any_of(graph_.nodes, [this](const CauseNode& node) { return node.rank != graph_.nodes[0].rank; });
  double base_ = 1;  // ratio of the unchanged replay
  std::vector<TimeNs> times_;
  std::map<uint64_t, double> known_;
};

}  // namespace

namespace {

bool is_hand_over(const HelpRow& row, const WhatIf& result) {
  const auto ready = [](const EditPart& part) { return std::ranges::any_of(parse_edits(part.text), [](const Edit& edit) { return edit.kind == EditKind::LoaderReady; }); };
  return row.kind == GroupKind::Cause && row.name == path_cause_name({PathCause::WaitsForData}) && std::ranges::any_of(result.edits, ready);
}

}  // namespace

std::string name_after(const HelpRow& row, const WhatIf& result) { return row.name + (is_hand_over(row, result) ? ", hand-over" : ""); }

std::string hand_over_text(const WhatIf& result) {
  const bool any = std::ranges::any_of(result.rows_after, [&](const HelpRow& row) { return is_hand_over(row, result); });
  return any ? "A ready loader still hands over each batch: “waits for data, hand-over”." : "";
}

std::string launch_gaps_text(const WhatIf& result, double launch_gaps_us) {
  constexpr double kAlike = 0.1, kNamed = 0.05;  // shares of the launch gaps
  constexpr PathCause kParts[] = {PathCause::LaunchCalls, PathCause::LaunchDelay, PathCause::HostBetweenCalls, PathCause::OtherCalls, PathCause::GapsBetweenKernels, PathCause::FullQueue};
  double sum = 0;
  std::vector<std::string> named;
  for (const PathShare& share : result.path)
    if (std::ranges::any_of(kParts, [&](PathCause part) { return share.name == path_cause_name({part}); })) {
      sum += share.gpu_waits_us;
      if (share.gpu_waits_us >= kNamed * launch_gaps_us) named.push_back(share.name);
    }
  if (!(launch_gaps_us > 0) || named.empty() || std::abs(sum - launch_gaps_us) > kAlike * launch_gaps_us) return {};
  return "The GPU waits for " + joined_names(named) + ": these are the “" + std::string(meaning_name(Meaning::Launch)) + "” of the split, " + time_text(launch_gaps_us) + ".";
}

std::string edit_of(const HelpRow& row) {
  for (const PathCause cause : {PathCause::SyncCalls, PathCause::AllocatorCalls})
    if (row.kind == GroupKind::Cause && row.name == path_cause_name({cause})) return own_edit({cause});
  return std::string(group_kind_name(row.kind)) + " " + row.name + " gone";
}

WhatIf what_if(const StepCauses& causes, const Trace& trace, const std::vector<Edit>& edits, size_t most_rows) {
  return Prediction(causes, trace, edits).result(most_rows);
}

CriticalReport critical_report(const StepCauses& causes, const Trace& trace) {
  const std::vector<Edit> none;
  return Prediction(causes, trace, none).report();
}

}  // namespace ws::prof
