#include "profiling/analysis/multiprocessors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>

#include "profiling/analysis/inner_parts.h"
#include "profiling/base/statistics.h"

namespace ws::prof {
namespace {

constexpr size_t kSpansOfALane = 4096;  // spans of a lane
constexpr size_t kFewestSteps = 5;      // below it, late may be chance
constexpr double kOften = 0.5;          // share of the steps in which a multiprocessor must be late
constexpr double kNoise = 4;            // times the usual distance from the median
constexpr double kClockStepNs = 32;     // of the GPU's timer

// "SM 017 warp 03" is multiprocessor 17. Other lanes stand for themselves.
std::string place_of(const std::string& lane) {
  if (!lane.starts_with("SM ")) return lane;
  const size_t digit = std::min(lane.find_first_not_of('0', 3), lane.size());
  const size_t end = std::min(lane.find(' ', 3), lane.size());
  return "multiprocessor " + (digit < end ? lane.substr(digit, end - digit) : "0");
}

// Newest spans of a lane, and whether older ones were left out.
std::pair<std::vector<Span>, bool> newest_spans(const Track& track) {
  auto block = track.blocks.end();
  size_t count = 0;
  while (block != track.blocks.begin() && count < kSpansOfALane && std::prev(block)->resident())
    count += (--block)->spans.size();
  std::vector<Span> spans;
  for (auto at = block; at != track.blocks.end(); ++at) spans.insert(spans.end(), at->spans.begin(), at->spans.end());
  return {std::move(spans), block != track.blocks.begin()};
}

class Comparison {
  using Row = std::pair<std::string, std::string>;          // GPU and multiprocessor
  using Round = std::tuple<std::string, TimeNs, uint32_t>;  // GPU, begin of the kernel, step
  using Part = std::tuple<Meaning, NameId, OpTag>;

  // What a multiprocessor does for a part in one round. Of several warps, the longest counts.
  struct Work {
    TimeNs begin = kAlways, end = -kAlways;
    double ns = 0;
  };

 public:
  explicit Comparison(const Trace& trace) : trace_(trace) {
    for (const Track& track : trace.tracks())
      if (track.kind == TrackKind::Inner) add_lane(track);
  }

  MultiprocessorReport report() {
    MultiprocessorReport report;
    report.multiprocessors = rows_.size(), report.steps = rounds_.size();
    std::vector<double> lengths;
    for (const auto& [round, whole] : rounds_) lengths.push_back(static_cast<double>(whole.end - whole.begin) * 1e-3);
    if (!lengths.empty()) report.step_us = median(std::move(lengths));
    for (const auto& [part, rounds] : parts_in_order()) {
      report.phases.push_back(phase(part, *rounds));
      if (std::get<Meaning>(part) != Meaning::Sync) find_late(part, *rounds, report.late);
    }
    std::ranges::stable_sort(report.late, std::greater(), &LateMultiprocessor::cost_us);
    return report;
  }

 private:
  using Works = std::map<size_t, Work>;  // by row
  using Rounds = std::map<Round, Works>;

  void add_lane(const Track& track) {
    const auto [spans, cut] = newest_spans(track);
    if (spans.empty()) return;
    const size_t row = row_of(track);
    std::map<std::pair<Part, Round>, Work> works;
    const std::vector<Span>& kernels = kernels_of(track.group);
    std::optional<Round> partly;  // the oldest round may have lost its begin
    for (const Span& span : spans) {
      const Span* kernel = kernel_around(kernels, span);
      const Round round{track.group, kernel ? kernel->start : 0, span.step};
      if (cut && !partly) partly = round;
      if (round == partly) continue;
      Work& work = works[{Part{span.span_meaning(), span.name, span.op}, round}];
      widen(work, span.start, span.end()), work.ns += static_cast<double>(span.duration);
    }
    for (const auto& [key, work] : works) {
      Work& all = parts_[key.first][key.second][row];
      widen(all, work.begin, work.end), all.ns = std::max(all.ns, work.ns);
      widen(rounds_[key.second], work.begin, work.end);
    }
  }

  static void widen(Work& work, TimeNs begin, TimeNs end) {
    work.begin = std::min(work.begin, begin), work.end = std::max(work.end, end);
  }

  size_t row_of(const Track& track) {
    const auto [at, fresh] = row_numbers_.try_emplace(Row{track.group, place_of(track.name)}, rows_.size());
    if (fresh) rows_.push_back(at->first);
    return at->second;
  }

  const std::vector<Span>& kernels_of(const std::string& group) {
    const auto [at, fresh] = kernels_.try_emplace(group);
    if (fresh) at->second = kernels_since(trace_, group, -kAlways);
    return at->second;
  }

  std::string name_of(size_t row) const {
    const bool one_gpu = std::ranges::all_of(rows_, [&](const Row& r) { return r.first == rows_[0].first; });
    return (one_gpu ? "" : rows_[row].first + " ") + rows_[row].second;
  }

  // By the begin in the step, of which the median counts.
  std::vector<std::pair<Part, const Rounds*>> parts_in_order() const {
    std::vector<std::tuple<double, Part, const Rounds*>> parts;
    for (const auto& [part, rounds] : parts_) {
      std::vector<double> begins;
      for (const auto& [round, works] : rounds)
        for (const Work& work : works | std::views::values)
          begins.push_back(static_cast<double>(work.begin - rounds_.at(round).begin));
      parts.emplace_back(median(std::move(begins)), part, &rounds);
    }
    std::ranges::sort(parts);
    std::vector<std::pair<Part, const Rounds*>> ordered;
    for (const auto& [begin, part, rounds] : parts) ordered.emplace_back(part, rounds);
    return ordered;
  }

  std::string text_of(const Part& part) const {
    const OpTag op = std::get<OpTag>(part);
    const std::string& name = trace_.name(std::get<NameId>(part));
    if (op == kNoOp || op >= trace_.ops.size()) return name;
    const OpInfo& info = trace_.ops[op];
    const std::string& said = name.empty() ? info.name : name;
    return info.meaning == Meaning::Sync && !info.detail.empty() ? said + " " + info.detail : said;  // "wait for ..."
  }

  InnerPhase phase(const Part& part, const Rounds& rounds) const {
    std::map<size_t, std::pair<double, double>> sums;  // by row: ns and rounds
    for (const Works& works : rounds | std::views::values)
      for (const auto& [row, work] : works) sums[row].first += work.ns, ++sums[row].second;
    InnerPhase phase{text_of(part), std::get<Meaning>(part), sums.size()};
    std::vector<double> means;
    for (const auto& [row, sum] : sums) {
      means.push_back(sum.first / sum.second * 1e-3);
      if (means.size() == 1 || means.back() > phase.most) phase.most = means.back(), phase.slowest = name_of(row);
    }
    phase.least = std::ranges::min(means), phase.median = median(std::move(means));
    return phase;
  }

  struct Lateness {
    double late, cost;
  };

  // How much later than the median each row ends, but no more than it lost in this part; and what the others lose.
  static std::map<size_t, Lateness> lateness(const Works& works) {
    std::vector<double> begins, ends;
    for (const Work& work : works | std::views::values)
      begins.push_back(static_cast<double>(work.begin)), ends.push_back(static_cast<double>(work.end));
    std::vector<double> sorted = ends;
    std::ranges::sort(sorted, std::greater());
    const double begin = median(std::move(begins)), end = median(std::move(ends));
    std::map<size_t, Lateness> all;
    for (const auto& [row, work] : works) {
      const auto own = static_cast<double>(work.end);
      const double late = own - end, lost = late - std::max(static_cast<double>(work.begin) - begin, 0.0);
      const double after = own >= sorted[0] ? own - sorted[1] : 0;
      all[row] = {std::min(late, lost), std::clamp(lost, 0.0, after)};
    }
    return all;
  }

  void find_late(const Part& part, const Rounds& rounds, std::vector<LateMultiprocessor>& found) const {
    std::map<size_t, std::vector<Lateness>> by_row;
    std::vector<double> distances;
    for (const Works& works : rounds | std::views::values) {
      if (works.size() < 3) continue;  // of two, none is the late one
      for (const auto& [row, late] : lateness(works)) {
        by_row[row].push_back(late);
        distances.push_back(std::abs(late.late));
      }
    }
    if (distances.empty()) return;
    const double noise = std::max(kNoise * median(std::move(distances)), kClockStepNs);
    for (const auto& [row, all] : by_row) {
      std::vector<double> late;
      double cost = 0;
      for (const Lateness& l : all)
        if (l.late > noise) late.push_back(l.late), cost += l.cost;
      const auto steps = static_cast<double>(all.size()), share = static_cast<double>(late.size()) / steps;
      if (all.size() < kFewestSteps || share < kOften || cost <= 0) continue;
      found.push_back({name_of(row), text_of(part), median(std::move(late)) * 1e-3, share, cost / steps * 1e-3});
    }
  }

  const Trace& trace_;
  std::vector<Row> rows_;
  std::map<Row, size_t> row_numbers_;
  std::map<std::string, std::vector<Span>> kernels_;  // by GPU
  std::map<Round, Work> rounds_;
  std::map<Part, Rounds> parts_;
};

}  // namespace

MultiprocessorReport multiprocessor_report(const Trace& trace) { return Comparison(trace).report(); }

}  // namespace ws::prof
