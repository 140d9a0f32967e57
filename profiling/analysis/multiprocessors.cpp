#include "profiling/analysis/multiprocessors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include "profiling/analysis/inner_parts.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/statistics.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

constexpr size_t kSpansOfALane = 4096;  // spans of a lane
constexpr size_t kFewestSteps = 5;      // below it, late may be chance
constexpr double kOften = 0.5;          // share of the steps in which a multiprocessor must be late
constexpr double kNoise = 4;            // times the usual distance from the median
constexpr double kSurely = 2;           // times the noise: late even if it happens in one step only
constexpr double kClockStepNs = 32;     // of the GPU's timer

// "SM 017 warp 03" is multiprocessor 17. Other lanes stand for themselves.
std::string place_of(const std::string& lane) {
  if (!lane.starts_with("SM ")) return lane;
  const size_t digit = std::min(lane.find_first_not_of('0', 3), lane.size());
  const size_t end = std::min(lane.find(' ', 3), lane.size());
  return "multiprocessor " + (digit < end ? lane.substr(digit, end - digit) : "0");
}

using InnerKey = std::tuple<Meaning, NameId, OpTag>;

// What a multiprocessor does for a part in one step. Of several warps, the longest counts.
struct InnerWork {
  uint32_t step = 0, row = 0, lane = 0;
  TimeNs begin = kAlways, end = -kAlways;
  double lane_ns = 0, ns = 0;
};

// How much later than the median a row ends a part, but no more than it lost in this part; and what the other rows lose.
struct Lateness {
  uint32_t step, row;
  double late, cost;
  TimeNs usual, end;
};

class Comparison {
 public:
  Comparison(const Trace& trace, const ReadBlock& read, bool part) : trace_(trace), read_(read), part_(part) {}

  MultiprocessorReport report() {
    for (const size_t track : lanes()) add_lane(track);
    order_steps();
    order_parts(works_by_part());
    for (size_t part = 0; part < works_.size(); ++part) {
      out_.phases.push_back(phase(part));
      if (std::get<Meaning>(parts_[part]) != Meaning::Sync) find_late(part);
    }
    sort_rows(out_.late, [](const auto& a, const auto& b) { return a.cost_us > b.cost_us; });
    out_.typical = typical_step();
    return std::move(out_);
  }

 private:
  using Round = std::tuple<std::string, TimeNs, uint32_t>;  // GPU, begin of the kernel, step

  // In the order of GPUs and multiprocessors.
  std::vector<size_t> lanes() const {
    std::vector<size_t> lanes;
    for (size_t i = 0; i < trace_.tracks().size(); ++i)
      if (trace_.tracks()[i].kind == TrackKind::Inner) lanes.push_back(i);
    std::ranges::stable_sort(lanes, {}, [&](size_t i) {
      return std::pair<std::string_view, std::string_view>(trace_.tracks()[i].group, trace_.tracks()[i].name);
    });
    return lanes;
  }

  // Newest spans of a lane, and whether older ones were left out.
  std::pair<std::vector<Span>, bool> newest_spans(size_t track) const {
    const auto& blocks = trace_.tracks()[track].blocks;
    std::vector<Span> spans;
    size_t block = blocks.size();
    while (block > 0 && spans.size() < kSpansOfALane) {
      const size_t before = spans.size();
      read_(track, block - 1, [&](std::span<const Span> older) { spans.insert(spans.end(), older.begin(), older.end()); });
      if (spans.size() == before && blocks[block - 1].count > 0) break;
      --block;
    }
    order_by_start(spans);
    return {std::move(spans), part_ || block > 0};
  }

  void add_lane(size_t track) {
    const auto [spans, cut] = newest_spans(track);
    if (spans.empty()) return;
    const std::string& gpu = trace_.tracks()[track].group;
    const auto [row, lane] = place_lane(trace_.tracks()[track]);
    const std::vector<Span>& kernels = kernels_of(gpu, spans.front().start);
    std::optional<Round> last, partly;  // partly: the oldest round may have lost its begin
    uint32_t step = 0;
    for (const Span& span : spans) {
      const Span* kernel = kernel_around(kernels, span);
      const Round round{gpu, kernel ? kernel->start : 0, span.step};
      if (cut && !partly) partly = round;
      if (round == partly) continue;
      if (round != last) last = round, step = step_of(round, kernel);
      out_.bars.push_back({step, row, part_of(span), lane, span.start, span.end()});
    }
  }

  std::pair<uint32_t, uint32_t> place_lane(const Track& track) {
    const std::string name = place_of(track.name);
    if (out_.rows.empty() || out_.rows.back().gpu != track.group || out_.rows.back().name != name)
      out_.rows.push_back({track.group, name, {}});
    out_.rows.back().lanes.push_back(track.name);
    return {static_cast<uint32_t>(out_.rows.size() - 1), static_cast<uint32_t>(out_.rows.back().lanes.size() - 1)};
  }

  // The lanes of a GPU have about the same begin: older kernels are read for the first lane only.
  const std::vector<Span>& kernels_of(const std::string& gpu, TimeNs begin) {
    auto& [since, kernels] = kernels_.try_emplace(gpu, kAlways, std::vector<Span>()).first->second;
    if (begin >= since) return kernels;
    for (size_t t = 0; t < trace_.tracks().size(); ++t)
      if (trace_.tracks()[t].kind == TrackKind::Stream && trace_.tracks()[t].group == gpu)
        add_kernels(t, begin, since, kernels);
    since = begin;
    order_by_start(kernels);
    return kernels;
  }

  void add_kernels(size_t track, TimeNs begin, TimeNs since, std::vector<Span>& kernels) const {
    const auto& blocks = trace_.tracks()[track].blocks;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].last < begin || blocks[b].first >= since) continue;
      read_(track, b, [&](std::span<const Span> spans) {
        for (const Span& span : spans)
          if (is_kernel(span) && span.end() > begin && span.end() <= since) kernels.push_back(span);
      });
    }
  }

  uint32_t step_of(const Round& round, const Span* kernel) {
    const auto [at, fresh] = step_numbers_.try_emplace(round, static_cast<uint32_t>(out_.steps.size()));
    if (fresh)
      out_.steps.push_back({int64_t{std::get<uint32_t>(round)} - 1,
                            kernel ? trace_.name(kernel->name) : std::string(), kAlways, -kAlways, {}});
    return at->second;
  }

  uint32_t part_of(const Span& span) {
    const InnerKey part{span.span_meaning(), span.name, span.op};
    const auto [at, fresh] = part_numbers_.try_emplace(part, static_cast<uint32_t>(parts_.size()));
    if (fresh) parts_.push_back(part);
    return at->second;
  }

  void order_steps() {
    for (const InnerBar& bar : out_.bars) {
      InnerStep& step = out_.steps[bar.step];
      step.begin = std::min(step.begin, bar.begin), step.end = std::max(step.end, bar.end);
    }
    std::vector<uint32_t> order(out_.steps.size()), place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(out_.steps[i].begin, i); });
    std::vector<InnerStep> steps;
    for (const uint32_t i : order) place[i] = static_cast<uint32_t>(steps.size()), steps.push_back(out_.steps[i]);
    out_.steps = std::move(steps);
    for (InnerBar& bar : out_.bars) bar.step = place[bar.step];
    std::ranges::stable_sort(out_.bars, {}, &InnerBar::step);
    std::vector<double> lengths;
    for (const InnerStep& step : out_.steps) lengths.push_back(step.us());
    if (!lengths.empty()) out_.step_us = median(std::move(lengths));
  }

  // By part, then by step and row.
  std::vector<std::vector<InnerWork>> works_by_part() const {
    std::vector<std::vector<InnerWork>> works(parts_.size());
    for (const InnerBar& bar : out_.bars) {
      std::vector<InnerWork>& all = works[bar.part];
      if (all.empty() || all.back().step != bar.step || all.back().row != bar.row)
        all.push_back({bar.step, bar.row, bar.lane});
      InnerWork& work = all.back();
      if (std::exchange(work.lane, bar.lane) != bar.lane) work.lane_ns = 0;
      work.begin = std::min(work.begin, bar.begin), work.end = std::max(work.end, bar.end);
      work.lane_ns += static_cast<double>(bar.end - bar.begin), work.ns = std::max(work.ns, work.lane_ns);
    }
    return works;
  }

  // By the begin in the step, of which the median counts.
  void order_parts(std::vector<std::vector<InnerWork>> works) {
    std::vector<std::pair<double, InnerKey>> begins;
    for (size_t i = 0; i < works.size(); ++i) {
      std::vector<double> all;
      for (const InnerWork& work : works[i]) all.push_back(static_cast<double>(work.begin - out_.steps[work.step].begin));
      begins.emplace_back(median(std::move(all)), parts_[i]);
    }
    std::ranges::sort(begins);
    std::vector<uint32_t> place(parts_.size());
    parts_.clear();
    for (const auto& [begin, part] : begins) {
      const uint32_t old = part_numbers_.at(part);
      place[old] = static_cast<uint32_t>(parts_.size());
      parts_.push_back(part), works_.push_back(std::move(works[old]));
    }
    for (InnerBar& bar : out_.bars) bar.part = place[bar.part];
  }

  std::string text_of(const InnerKey& part) const {
    const OpTag op = std::get<OpTag>(part);
    const std::string& name = trace_.name(std::get<NameId>(part));
    if (op == kNoOp || op >= trace_.ops.size()) return name;
    const OpInfo& info = trace_.ops[op];
    const std::string& said = name.empty() ? info.name : name;
    if (info.meaning != Meaning::Sync || info.detail.empty()) return said;
    constexpr std::string_view kWhose = " of the other blocks";  // a block waits for no others
    std::string_view what = info.detail;
    if (what.ends_with(kWhose)) what.remove_suffix(kWhose.size());
    return said + " " + std::string(what);  // "wait for hidden units"
  }

  InnerPhase phase(size_t part) const {
    std::map<size_t, std::pair<double, double>> sums;  // by row: ns and steps
    for (const InnerWork& work : works_[part]) sums[work.row].first += work.ns, ++sums[work.row].second;
    InnerPhase phase{text_of(parts_[part]), std::get<Meaning>(parts_[part]), sums.size()};
    std::vector<double> means;
    for (const auto& [row, sum] : sums) {
      means.push_back(sum.first / sum.second * 1e-3);
      if (means.size() == 1 || means.back() > phase.most)
        phase.most = means.back(), phase.slowest = row_name(out_, row);
    }
    phase.least = std::ranges::min(means), phase.median = median(std::move(means));
    return phase;
  }

  // `works`: of one part in one step.
  static void add_lateness(std::span<const InnerWork> works, std::vector<Lateness>& all) {
    if (works.size() < 3) return;  // of two, none is the late one
    std::vector<double> begins, ends;
    for (const InnerWork& work : works)
      begins.push_back(static_cast<double>(work.begin)), ends.push_back(static_cast<double>(work.end));
    std::vector<double> sorted = ends;
    std::ranges::nth_element(sorted, sorted.begin() + 1, std::greater());
    const double begin = median(std::move(begins)), end = median(std::move(ends));
    for (const InnerWork& work : works) {
      const auto own = static_cast<double>(work.end);
      const double late = own - end, lost = late - std::max(static_cast<double>(work.begin) - begin, 0.0);
      const double after = own >= sorted[0] ? own - sorted[1] : 0;
      all.push_back({work.step, work.row, std::min(late, lost), std::clamp(lost, 0.0, after),
                     static_cast<TimeNs>(std::llround(end)), work.end});
    }
  }

  std::vector<Lateness> lateness_of(size_t part) const {
    std::vector<Lateness> all;
    const std::vector<InnerWork>& works = works_[part];
    for (auto begin = works.begin(), end = begin; begin != works.end(); begin = end) {
      end = std::find_if(begin, works.end(), [&](const InnerWork& work) { return work.step != begin->step; });
      add_lateness({begin, end}, all);
    }
    return all;
  }

  void find_late(size_t part) {
    const std::vector<Lateness> all = lateness_of(part);
    if (all.empty()) return;
    std::vector<double> distances;
    for (const Lateness& one : all) distances.push_back(std::abs(one.late));
    const double noise = std::max(kNoise * median(std::move(distances)), kClockStepNs);
    std::map<uint32_t, std::vector<Lateness>> by_row;
    std::map<uint32_t, size_t> steps;
    for (const Lateness& one : all) {
      ++steps[one.row];
      if (one.late > noise) by_row[one.row].push_back(one);
    }
    for (const auto& [row, late] : by_row) {
      const bool often = add_often_late(part, late, steps[row]);
      for (const Lateness& one : late)
        if (one.cost > 0 && (often || one.late > kSurely * noise))
          out_.steps[one.step].late.push_back({row, part, one.usual, one.end});
    }
  }

  // Returns false if it may be chance.
  bool add_often_late(size_t part, const std::vector<Lateness>& late, size_t steps) {
    std::vector<double> ns;
    double cost = 0;
    for (const Lateness& one : late) ns.push_back(one.late), cost += one.cost;
    const double share = static_cast<double>(late.size()) / static_cast<double>(steps), usual = median(std::move(ns));
    if (steps < kFewestSteps || share < kOften || cost <= 0) return false;
    const auto typical = std::ranges::min_element(late, {}, [&](const Lateness& one) {
      return std::pair(one.cost <= 0, std::abs(one.late - usual));
    });
    out_.late.push_back({row_name(out_, late[0].row), text_of(parts_[part]), usual * 1e-3, share,
                         cost / static_cast<double>(steps) * 1e-3, typical->step, late[0].row, part});
    return true;
  }

  size_t typical_step() const {
    if (!out_.late.empty()) return out_.late[0].step;
    const auto step = std::ranges::min_element(
        out_.steps, {}, [&](const InnerStep& one) { return std::abs(one.us() - out_.step_us); });
    return static_cast<size_t>(step - out_.steps.begin());
  }

  const Trace& trace_;
  const ReadBlock& read_;
  bool part_;
  MultiprocessorReport out_;
  std::map<std::string, std::pair<TimeNs, std::vector<Span>>> kernels_;  // by GPU: since when they were read
  std::map<Round, uint32_t> step_numbers_;
  std::map<InnerKey, uint32_t> part_numbers_;
  std::vector<InnerKey> parts_;
  std::vector<std::vector<InnerWork>> works_;  // by part
};

}  // namespace

std::span<const InnerBar> MultiprocessorReport::bars_of(size_t step) const {
  const auto range = std::ranges::equal_range(bars, static_cast<uint32_t>(step), {}, &InnerBar::step);
  return {range.begin(), range.end()};
}

bool shows_inside(const Trace& trace) {
  return std::ranges::any_of(trace.tracks(), [](const Track& t) { return t.kind == TrackKind::Inner && t.spans > 0; });
}

MultiprocessorReport multiprocessor_report(const Trace& trace, const ReadBlock& read, bool part) {
  return Comparison(trace, read, part).report();
}

MultiprocessorReport multiprocessor_report(const Trace& trace) {
  return multiprocessor_report(trace, blocks_in_memory(trace));
}

InnerBar bar_of(const MultiprocessorReport& report, const LateMultiprocessor& late) {
  InnerBar last;
  for (const InnerBar& bar : report.bars_of(late.step))
    if (bar.row == late.row && bar.part == late.part && bar.end > last.end) last = bar;
  return last;
}

std::optional<FoundSpan> span_of(const Trace& trace, const MultiprocessorReport& report, const InnerBar& bar) {
  const InnerRow& row = report.rows[bar.row];
  std::optional<FoundSpan> found;
  for (size_t t = 0; t < trace.tracks().size() && !found; ++t) {
    const Track& track = trace.tracks()[t];
    if (track.kind != TrackKind::Inner || track.group != row.gpu || track.name != row.lanes[bar.lane]) continue;
    for_each_span(track, bar.begin, bar.end + 1, [&](const Span& span) {
      if (span.start == bar.begin && span.end() == bar.end) found = FoundSpan{t, span};
      return !found;
    });
  }
  return found;
}

}  // namespace ws::prof
