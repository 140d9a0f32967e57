#include "app/core/insights/program_insights.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "profiling/base/text.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::Span;
using prof::TimeNs;
using prof::Track;
using prof::TrackKind;

constexpr double kShareOfSteps = 0.10;  // share of the steps' time

struct Cost {
  TimeNs time = 0;
  uint64_t count = 0;
  std::optional<prof::FoundSpan> longest;

  void add(size_t track, const Span& span, TimeNs length) {
    time += length;
    ++count;
    if (!longest || span.duration > longest->span.duration) longest = prof::FoundSpan{track, span};
  }
};
using Costs = std::map<std::string, Cost>;

const std::pair<const std::string, Cost>* largest(const Costs& costs) {
  const auto most = std::ranges::max_element(costs, {}, [](const auto& entry) { return entry.second.time; });
  return most == costs.end() ? nullptr : &*most;
}

// The range from the first step to the last: the start of a program is not judged.
prof::TimeRange steps_of(const TraceLook& look) {
  prof::TimeRange range{look.end, look.begin};
  for (const Track& track : look.trace->tracks())
    if (track.kind == TrackKind::Steps)
      prof::each_span(track, look.begin, look.end, [&](const Span& span) {
        range = {std::min(range.begin, span.start), std::max(range.end, span.end())};
      });
  return range.end > range.begin ? prof::TimeRange{std::max(range.begin, look.begin), std::min(range.end, look.end)}
                                 : prof::TimeRange{look.begin, look.end};
}

TimeNs within(const prof::TimeRange& range, const Span& span) {
  return std::max<TimeNs>(0, std::min(range.end, span.end()) - std::max(range.begin, span.start));
}

// Turns "hot (a.py:3)" into "a.py:3 in hot". Empty for a frame of Python itself or of an installed package.
std::string own_line(std::string_view frame) {
  const size_t open = frame.rfind(" (");
  if (open == std::string_view::npos || !frame.ends_with(')')) return {};
  const std::string_view place = frame.substr(open + 2, frame.size() - open - 3);
  for (const std::string_view other : {"site-packages/", "dist-packages/", "/lib/python", "<frozen"})
    if (place.find(other) != std::string_view::npos) return {};
  return std::string(place) + " in " + std::string(frame.substr(0, open));
}

std::string innermost_own_line(std::string_view stack) {
  constexpr std::string_view kBetween = " < ";
  while (!stack.empty()) {
    const size_t cut = stack.find(kBetween);
    if (std::string line = own_line(stack.substr(0, cut)); !line.empty()) return line;
    stack = cut == std::string_view::npos ? std::string_view{} : stack.substr(cut + kBetween.size());
  }
  return {};
}

class Program {
 public:
  explicit Program(const TraceLook& look) : trace_(*look.trace), judged_(steps_of(look)) {
    const auto& tracks = trace_.tracks();
    for (size_t i = 0; i < tracks.size(); ++i)
      if (tracks[i].kind == TrackKind::Phases && tracks[i].name.ends_with(" ranges")) see_ranges(i);
    std::ranges::sort(data_ranges_, {}, &prof::TimeRange::begin);
    for (size_t i = 0; i < tracks.size(); ++i) {
      if (tracks[i].kind == TrackKind::Other && tracks[i].name == "samples of MainThread") see_samples(i);
      if (tracks[i].kind == TrackKind::Other && tracks[i].name.starts_with("loader worker ")) see_worker(i);
    }
  }

  std::vector<Insight> found() const {
    std::vector<Insight> all;
    for (auto found : {waits_for_data(), waits_for_gpu(), hot_line()})
      if (found) all.push_back(std::move(*found));
    std::ranges::stable_sort(all, std::greater<>{}, &Insight::cost_ns);
    return all;
  }

 private:
  using Found = std::optional<Insight>;

  void see_ranges(size_t track) {
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      if (span.op == prof::kNoOp || span.op >= trace_.ops.size()) return;
      const prof::OpInfo& op = trace_.ops[span.op];
      const std::string line(prof::line_of(op));
      if (op.name == "wait for data" && op.phase == "data") {
        data_[line].add(track, span, within(judged_, span));
        data_ranges_.push_back({span.start, span.end()});
      }
      if (op.phase == "sync" && !line.empty()) syncs_[line + "\n" + op.name].add(track, span, within(judged_, span));
    });
  }

  void see_samples(size_t track) {
    // own line of the leaf; innermost own line
    std::unordered_map<uint32_t, std::pair<std::string, std::string>> known;
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      const auto [at, fresh] = known.try_emplace(static_cast<uint32_t>(span.name));
      if (fresh) {
        const std::string& stack = trace_.name(span.name);
        at->second = {own_line(std::string_view(stack).substr(0, stack.find(" < "))), innermost_own_line(stack)};
      }
      const TimeNs in_data = time_in_data(span);
      if (in_data > 0 && !at->second.second.empty()) loading_[at->second.second].add(track, span, in_data);
      if (in_data == 0 && !at->second.first.empty()) hot_[at->second.first].add(track, span, within(judged_, span));
    });
  }

  // Adds the batches of a worker, by the line where the worker was most of the time.
  void see_worker(size_t track) {
    ++workers_;
    prof::each_span(trace_.tracks()[track], judged_.begin, judged_.end, [&](const Span& span) {
      const std::string& line = trace_.name(span.name);
      if (line.find(':') != std::string::npos) made_[line].add(track, span, within(judged_, span));
    });
  }

  TimeNs time_in_data(const Span& span) const {
    TimeNs time = 0;
    auto at = std::ranges::upper_bound(data_ranges_, span.start, {}, &prof::TimeRange::end);
    for (; at != data_ranges_.end() && at->begin < span.end(); ++at) time += within(*at, span);
    return time;
  }

  bool worth_saying(TimeNs time) const {
    return static_cast<double>(time) >= kShareOfSteps * static_cast<double>(judged_.length());
  }
  std::string share(TimeNs time) const {
    return percent(static_cast<double>(time) / static_cast<double>(std::max<TimeNs>(judged_.length(), 1)), 0) + " of the time";
  }
  static std::string text(TimeNs time, uint64_t count) {
    return time_text(static_cast<double>(time) * 1e-3 / static_cast<double>(std::max<uint64_t>(count, 1)));
  }
  Insight insight(const char* rule, std::string headline, std::string why, prof::Meaning meaning, const Cost& cost) const {
    Insight found{rule, std::move(headline), std::move(why), {}, 0, meaning};
    found.cost_ns = static_cast<double>(cost.time);
    found.place = cost.longest;
    if (cost.longest) {
      const Span& span = cost.longest->span;
      const auto margin = static_cast<TimeNs>(span.duration) / 2 + 20'000;
      found.around = {span.start - margin, span.end() + margin};
    }
    return found;
  }

  Found waits_for_data() const {
    Cost all;
    for (const auto& [line, cost] : data_) {
      all.time += cost.time, all.count += cost.count;
      if (!all.longest || (cost.longest && cost.longest->span.duration > all.longest->span.duration)) all.longest = cost.longest;
    }
    if (!worth_saying(all.time)) return {};
    std::string where;
    const auto* line = largest(workers_ > 0 ? made_ : loading_);  // if workers load, the main thread only waits
    if (line && (workers_ > 0 || line->second.time * 2 > all.time))
      where = "Most of it is " + line->first + ". ";
    else if (const auto* loop = largest(data_); loop && !loop->first.empty())
      where = "The batches are taken at " + loop->first + ". ";
    return insight("waits for data", "the step waits for data: " + text(all.time, all.count) + " a batch, " + share(all.time),
                   where + (workers_ == 0 ? std::string("Give the DataLoader workers (num_workers)")
                    : workers_ == 1 ? std::string("One worker is not enough: give the DataLoader more (num_workers)")
                                    : count_text(workers_) + " workers are not enough: give the DataLoader more") +
                       ", or prepare the data once.",
                   prof::Meaning::Idle, all);
  }

  Found waits_for_gpu() const {
    const auto* most = largest(syncs_);
    if (!most || !worth_saying(most->second.time)) return {};
    const size_t cut = most->first.find('\n');
    return insight("waits by a line",
                   most->first.substr(0, cut) + " calls " + most->first.substr(cut + 1) + ": it waits " +
                       text(most->second.time, most->second.count) + " each time, " + share(most->second.time),
                   "The host stands still until the GPU is done, and then the GPU waits for the host. Keep the value on the "
                   "GPU, and read it every hundred steps.",
                   prof::Meaning::Sync, most->second);
  }

  Found hot_line() const {
    const auto* most = largest(hot_);
    if (!most || !worth_saying(most->second.time)) return {};
    return insight("hot line", most->first + " takes " + share(most->second.time),
                   "It is Python itself that runs there. Do it once before the loop, on tensors, or in the loader's workers.",
                   prof::Meaning::Idle, most->second);
  }

  const prof::Trace& trace_;
  const prof::TimeRange judged_;
  Costs data_, syncs_;      // by line
  Costs loading_, hot_;     // samples: by own line
  Costs made_;              // batches of workers, by the worker's line
  std::vector<prof::TimeRange> data_ranges_;
  int64_t workers_ = 0;
};

}  // namespace

std::vector<Insight> program_insights(const TraceLook& look) {
  return look.end > look.begin ? Program(look).found() : std::vector<Insight>{};
}

}  // namespace ws::app
