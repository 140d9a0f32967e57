#include "profiling/formats/join_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "profiling/analysis/ranks.h"
#include "profiling/base/budget.h"
#include "profiling/base/failure.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/statistics.h"
#include "profiling/base/whole_file.h"
#include "profiling/formats/chrome_handler.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/look_up.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

int64_t whole_number(const RunSummary& summary, const char* key, int64_t otherwise) {
  const std::string text = summary.said(key);
  return text.empty() ? otherwise : number_in(text, otherwise);
}

RankOfFile rank_of(const RunSummary& summary) {
  const int64_t rank = whole_number(summary, kRankKey, -1), ranks = whole_number(summary, kWorldKey, 0);
  if (rank < 0 || rank >= ranks || ranks < 2 || ranks > kMostRanks) return {};
  const int64_t restart = std::clamp<int64_t>(whole_number(summary, kRestartKey, 0), 0, kMostRanks);
  return {static_cast<int>(rank), static_cast<int>(ranks), static_cast<int>(restart)};
}

// Why these are not the ranks of one program; empty if they are.
std::string why_not_one(const std::vector<RankOfFile>& all, const std::function<std::string(size_t)>& name) {
  std::map<int, size_t> seen;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].rank < 0)
      return name(i) + " does not say which rank of a program it is. Leave it out if it is of the launcher.";
    if (all[i].restart != all[0].restart)
      return name(i) + " and " + name(0) + " are of different attempts: the launcher has started all ranks anew.";
    if (all[i].ranks != all[0].ranks)
      return name(i) + " is of a program with " + std::to_string(all[i].ranks) + " ranks, " + name(0) +
             " of one with " + std::to_string(all[0].ranks) + ".";
    if (const auto [at, fresh] = seen.try_emplace(all[i].rank, i); !fresh)
      return name(i) + " and " + name(at->second) + " are both rank " + std::to_string(all[i].rank) + ".";
  }
  return all.size() < 2 ? "At least two ranks are needed." : "";
}

// One rank's run while it is open. `points`: a trace with its counters and memory events; `run.trace` may lack them.
struct OpenRank {
  RunData& run;
  const Trace& points;
  const ReadBlock& read;
};
// Opens the rank with this index. `whole`: for the last time, with everything; otherwise with its tracks only.
using OpenRanks = std::function<void(size_t index, bool whole, const std::function<void(OpenRank)>& use)>;

// A sum of times that files claim.
TimeNs bounded(long double time) {
  constexpr TimeNs kFar = (TimeNs{1} << 62) - 1;  // 146 years: the distance of two of these is a time as well
  return static_cast<TimeNs>(std::clamp(time, -static_cast<long double>(kFar), static_cast<long double>(kFar)));
}
TimeNs later(TimeNs time, TimeNs by) { return bounded(static_cast<long double>(time) + static_cast<long double>(by)); }

// aligned time = time + shift + rate · (time - from)
struct ClockMap {
  TimeNs shift = 0, from = 0;
  double rate = 0;
  TimeNs operator()(TimeNs time) const {
    const long double drift = std::round(rate * (static_cast<double>(time) - static_cast<double>(from)));
    return bounded(static_cast<long double>(time) + static_cast<long double>(shift) + drift);
  }
};

struct CommonEnd {
  TimeNs time = 0;   // on the clock that is to be aligned
  double apart = 0;  // ns until the end on the reference clock
};

// Fits a line to most of the points: through the medians of the first and the last third.
ClockMap fit(std::vector<CommonEnd> ends, double& error_us) {
  constexpr size_t kFewestForDrift = 30;
  std::ranges::sort(ends, {}, &CommonEnd::time);
  const auto middle = [](std::span<const CommonEnd> part, auto value) {
    std::vector<double> values;
    for (const CommonEnd& each : part) values.push_back(value(each));
    return median(std::move(values));
  };
  ClockMap map{.from = ends.front().time};
  const auto since = [&](const CommonEnd& each) { return static_cast<double>(each.time - map.from); };  // both are bounded
  const auto apart = [](const CommonEnd& each) { return each.apart; };
  const size_t third = ends.size() / 3;
  if (ends.size() >= kFewestForDrift) {
    const auto first = std::span(ends).first(third), last = std::span(ends).last(third);
    map.rate = (middle(last, apart) - middle(first, apart)) / std::max(1.0, middle(last, since) - middle(first, since));
  }
  const auto rest = [&](const CommonEnd& each) { return each.apart - map.rate * since(each); };
  const double offset = middle(ends, rest);
  map.shift = bounded(std::round(offset));
  std::vector<double> residuals;
  for (const CommonEnd& each : ends) residuals.push_back(std::abs(rest(each) - offset) * 1e-3);
  constexpr double kMostOf = 0.95;  // a few collectives end late on one host
  error_us = std::max(error_us, percentile(std::move(residuals), kMostOf));
  return map;
}

// Brings the clocks of all ranks to that of the lowest rank.
class Clocks {
 public:
  Clocks(const std::vector<RunSummary>& ranks, const OpenRanks& open) : ranks_(ranks), open_(open) {
    maps_.resize(ranks.size());
    group();
    for (const RunSummary& rank : ranks)
      error_us_ = std::max(error_us_, static_cast<double>(whole_number(rank, kClockWidthKey, 0)) * 0.5e-3);
    if (groups_.size() > 1) align();
  }
  const std::vector<ClockMap>& maps() const { return maps_; }
  double error_us() const { return error_us_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  static constexpr size_t kFewest = 3;  // common collectives

  // Ranks of one clock differ only by their origins.
  void group() {
    std::map<std::string, size_t> known;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const std::string clock = ranks_[i].said(kClockKey);
      const bool shared = !clock.empty() && clock != kWallClock;
      const size_t group = shared ? known.try_emplace(clock, groups_.size()).first->second : groups_.size();
      if (group == groups_.size()) groups_.emplace_back();
      groups_[group].push_back(i);
      maps_[i].shift = shared ? later(origin(i), -origin(groups_[group][0])) : 0;
    }
  }
  TimeNs origin(size_t rank) const { return later(whole_number(ranks_[rank], kClockOriginKey, 0), 0); }

  void align() {
    Collectives found;
    for (size_t i = 0; i < ranks_.size(); ++i)
      open_(i, false, [&](const OpenRank& rank) { found.add(rank.run.trace, rank.read, rank_of(ranks_[i]).rank); });
    for (size_t i = 0; i < ranks_.size(); ++i)
      for (CollectiveCall& call : found.calls[i])
        call.begin = later(call.begin, maps_[i].shift), call.end = later(call.end, maps_[i].shift);
    const MatchedCalls matched = match_by_order(found);
    // Some ranks may share no collective with the lowest one, only with ranks that do: each round goes one group further.
    group_maps_.assign(groups_.size(), std::nullopt);
    group_maps_[0] = ClockMap{};
    size_t aligned = 1;
    while (aligned < groups_.size()) {
      size_t now = align_round(found, matched);
      if (now == 0) guess(*std::ranges::find_if(group_maps_, [](const auto& map) { return !map; })), now = 1;
      aligned += now;
    }
    for (size_t g = 1; g < groups_.size(); ++g) {
      const ClockMap& map = *group_maps_[g];
      for (const size_t i : groups_[g]) {  // the shifts of a group and of its ranks add up
        const TimeNs own = maps_[i].shift;
        maps_[i] = map;
        maps_[i].shift = later(later(map.shift, own), bounded(std::round(map.rate * static_cast<double>(own))));
      }
    }
  }

  // Aligns the groups that share collectives with those that are aligned. Returns how many.
  size_t align_round(const Collectives& found, const MatchedCalls& matched) {
    std::vector<std::optional<TimeNs>> there(matched.size());  // where each collective ended on the clock of the lowest rank
    for (size_t m = 0; m < matched.size(); ++m) {
      std::vector<TimeNs> ends;
      for (size_t g = 0; g < groups_.size(); ++g)
        if (group_maps_[g]) add_ends(found, matched, m, g, *group_maps_[g], ends);
      if (!ends.empty()) there[m] = middle_value(ends);
    }
    const double so_far = aligned_error_us_;
    std::vector<std::pair<size_t, ClockMap>> news;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (group_maps_[g]) continue;
      std::vector<CommonEnd> common;
      for (size_t m = 0; m < matched.size(); ++m) {
        std::vector<TimeNs> ends;
        if (there[m]) add_ends(found, matched, m, g, {}, ends);
        if (ends.empty()) continue;
        const TimeNs here = middle_value(ends);
        common.push_back({here, static_cast<double>(*there[m] - here)});
      }
      if (common.size() < kFewest) continue;
      double error = 0;
      news.emplace_back(g, fit(std::move(common), error));
      aligned_error_us_ = std::max(aligned_error_us_, so_far + error);
    }
    for (const auto& [g, map] : news) group_maps_[g] = map;
    error_us_ = std::max(error_us_, aligned_error_us_);
    return news.size();
  }

  void add_ends(const Collectives& found, const MatchedCalls& matched, size_t match, size_t group, const ClockMap& map,
                std::vector<TimeNs>& ends) const {
    for (const size_t i : groups_[group])
      if (const uint32_t at = matched.index(match, i); at != MatchedCalls::kNone) ends.push_back(map(found.calls[i][at].end));
  }

  void guess(std::optional<ClockMap>& map) {
    const size_t first = groups_[static_cast<size_t>(&map - group_maps_.data())][0], reference = groups_[0][0];
    const bool wall =
        ranks_[first].said(kClockKey) == kWallClock && ranks_[reference].said(kClockKey) == kWallClock;
    problems_.push_back(
        "Rank " + std::to_string(rank_of(ranks_[first]).rank) + " shares no collective with rank " +
        std::to_string(rank_of(ranks_[reference]).rank) + ": their clocks are aligned by " +
        (wall ? "the wall clock, to some ms." : "the start of their recordings, which is only a guess."));
    error_us_ = std::max(error_us_, wall ? 1e4 : 1e6);
    map = ClockMap{.shift = wall ? later(origin(first), -origin(reference)) : 0};
  }

  const std::vector<RunSummary>& ranks_;
  const OpenRanks& open_;
  std::vector<std::vector<size_t>> groups_;
  std::vector<std::optional<ClockMap>> group_maps_;  // nullopt: not aligned yet
  std::vector<ClockMap> maps_;
  double error_us_ = 0, aligned_error_us_ = 0;  // errors of a chain of groups add up
  std::vector<std::string> problems_;
};

std::string group_of(int rank, const std::string& group) {
  const std::string begin = "rank " + std::to_string(rank);
  return group.empty() ? begin : begin + " · " + group;
}

// Copies rank after rank into one trace.
class RankJoin {
 public:
  // `keep` is called with the trace after each few blocks. It may write them and free their memory.
  RankJoin(Trace& trace, std::function<void(Trace&)> keep) : trace_(trace), keep_(std::move(keep)) {}

  void add(const OpenRank& open, int rank, const ClockMap& clock, bool leads) {
    const Trace& from = open.run.trace;
    renumber(from);
    const uint32_t before = highest_correlation_;
    std::vector<Span> moved;
    for (size_t t = 0; t < from.tracks().size(); ++t) {
      const Track& track = from.tracks()[t];
      const TrackId to = trace_.track(track.kind, track.name, group_of(rank, track.group), track.depth, rank);
      for (size_t b = 0; b < track.blocks.size(); ++b) {
        open.read(t, b, [&](std::span<const Span> spans) {
          moved.assign(spans.begin(), spans.end());
          for (Span& span : moved) move(span, clock, before);
          trace_.append(to, moved);
        });
        if (++blocks_ % kBlocksAtOnce == 0) keep_(trace_);
      }
    }
    add_points(open.points, rank, clock, leads);
    keep_(trace_);
  }

  OpTag op(OpTag tag) const { return tag < ops_.size() ? ops_[tag] : OpTag{kNoOp}; }

 private:
  static constexpr size_t kBlocksAtOnce = 256;

  void renumber(const Trace& from) {
    names_.clear(), details_.clear(), ops_.clear();
    for (size_t i = 0; i < from.name_count(); ++i) names_.push_back(trace_.intern(from, static_cast<NameId>(i)));
    for (size_t i = 0; i < from.detail_count(); ++i)
      details_.push_back(trace_.intern(from.detail(static_cast<DetailId>(i))));
    for (const OpInfo& op : from.ops) ops_.push_back(joined_op(op));
  }

  OpTag joined_op(const OpInfo& op) {
    if (op.name.empty()) return kNoOp;
    uint64_t hash = mixed(static_cast<uint64_t>(op.meaning), op.name);
    for (const std::string* text : {&op.detail, &op.layer, &op.phase}) hash = mixed(hash, *text);
    if (op.stack) hash = mixed(hash, line_of(op));
    const int64_t known = places_.find(hash, [&](size_t place) {
      const OpInfo& other = trace_.ops[place];
      return other.name == op.name && other.detail == op.detail && other.layer == op.layer && other.phase == op.phase &&
             other.meaning == op.meaning && other.bytes == op.bytes && other.flops == op.flops && same_stack(other, op);
    });
    if (known >= 0) return static_cast<OpTag>(known);
    if (trace_.ops.size() > 0xffff) return kNoOp;
    places_.add(hash, trace_.ops.size());
    trace_.ops.push_back(op);
    return static_cast<OpTag>(trace_.ops.size() - 1);
  }

  // Each process numbers its calls itself.
  void move(Span& span, const ClockMap& clock, uint32_t before) {
    constexpr uint64_t kMostDuration = (uint64_t{1} << 40) - 1;
    const TimeNs end = clock(span.end());
    span.start = clock(span.start);
    span.duration = std::min(static_cast<uint64_t>(std::max<TimeNs>(0, end - span.start)), kMostDuration);
    span.name = names_[static_cast<size_t>(span.name)];
    span.detail = details_[static_cast<size_t>(span.detail)];
    span.op = op(span.op);
    const uint64_t correlation = uint64_t{span.correlation} + before;
    if (span.correlation != 0) span.correlation = correlation >> 32 ? 0 : static_cast<uint32_t>(correlation);
    highest_correlation_ = std::max(highest_correlation_, span.correlation);
  }

  // Memory events of several processes have the same addresses, so only one rank's are kept.
  void add_points(const Trace& from, int rank, const ClockMap& clock, bool leads) {
    for (const CounterTrack& counter : from.counters()) {
      if (!leads && is_loss_curve(counter)) continue;  // as the metrics
      std::vector<CounterPoint> points(counter.points.begin(), counter.points.end());
      for (CounterPoint& point : points) point.time = clock(point.time);
      trace_.append_counter(trace_.counter(leads ? counter.name : group_of(rank, counter.name), counter.unit),
                            std::move(points));
    }
    if (!leads) return;
    trace_.memory_sources = from.memory_sources;
    for (MemoryEvent event : from.memory()) {
      event.time = clock(event.time), event.op = op(event.op);
      trace_.append_memory(event);
    }
  }

  Trace& trace_;
  std::function<void(Trace&)> keep_;
  std::vector<NameId> names_;
  std::vector<DetailId> details_;
  std::vector<OpTag> ops_;
  LookUp places_;
  uint32_t highest_correlation_ = 0;
  size_t blocks_ = 0;
};

std::string without_rank(const std::string& name) {
  const size_t at = name.rfind(" · rank ");
  return at == name.npos ? name : name.substr(0, at);
}

std::string devices_text(const std::vector<RunSummary>& ranks) {
  const bool same = std::ranges::all_of(ranks, [&](const RunSummary& r) { return r.device == ranks[0].device; });
  return ranks[0].device.empty() || !same ? ranks[0].device : several_text(ranks.size(), ranks[0].device);
}

// Files of one program often have names of their own, such as the host and the process. Then only their folder has a
// name for all of them. Returns "" if they already have one name, or no folder.
std::string common_name(const std::vector<std::string>& paths, const std::vector<std::string>& names) {
  const auto name_of_run = [](const std::string& name) { return without_rank(name); };
  if (std::ranges::adjacent_find(names, std::ranges::not_equal_to(), name_of_run) == names.end()) return "";
  const auto folder = [](const std::string& path) { return std::filesystem::absolute(path).lexically_normal().parent_path(); };
  if (std::ranges::adjacent_find(paths, std::ranges::not_equal_to(), folder) != paths.end()) return "";
  return folder(paths[0]).filename().string();
}

// The summary of the lowest rank, as one of all ranks.
RunSummary joined_summary(const std::vector<RunSummary>& ranks) {
  RunSummary joined = ranks[0];
  joined.name = without_rank(joined.name) + " · " + std::to_string(rank_of(ranks[0]).ranks) + " ranks";
  if (const int restart = rank_of(ranks[0]).restart; restart > 0) joined.name += " · restart " + std::to_string(restart);
  joined.device = devices_text(ranks);
  for (const char* key : {kRankKey, kHostKey, kClockKey, kClockOriginKey, kClockWidthKey, kClockErrorKey})
    joined.extra.erase(key);
  std::set<std::string> names;
  nlohmann::json hosts = nlohmann::json::array();
  for (int64_t i = 0; i < rank_of(ranks[0]).ranks; ++i) hosts.push_back("");
  for (const RunSummary& rank : ranks) {
    joined.wall_s = std::max(joined.wall_s, rank.wall_s);
    const std::string host = rank.said(kHostKey);
    hosts[static_cast<size_t>(rank_of(rank).rank)] = host;
    names.insert(host);
    if (rank.status == "finished" || joined.status == rank.status) continue;
    if (joined.status == "finished" || joined.status == "running") joined.status = rank.status;
    const std::string why = rank.said("message");
    if (!joined.extra.contains("message"))
      joined.extra["message"] = "Rank " + std::to_string(rank_of(rank).rank) + ": " + (why.empty() ? rank.status : why);
  }
  if (names.size() > 1) joined.extra[kHostsKey] = hosts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return joined;
}

// What the lowest rank says of the run as a whole, on the joined clock.
void take_rows(RunData& from, const RankJoin& join, TimeNs shift, RunData& to) {
  to.metrics = std::move(from.metrics), to.evaluations = std::move(from.evaluations), to.marks = std::move(from.marks);
  const double s = static_cast<double>(shift) * 1e-9;
  for (Metric& each : to.metrics) each.wall_s += s;
  for (Evaluation& each : to.evaluations) each.wall_s += s;
  for (ChangeMark& each : to.marks) each.wall_s += s;
  for (const StepWindow& each : from.step_windows) {
    to.step_windows.push_back(each);
    to.step_windows.back().begin = later(each.begin, shift), to.step_windows.back().end = later(each.end, shift);
  }
  to.allocations = std::move(from.allocations);
  for (StepAllocations& calls : to.allocations) calls.op = join.op(calls.op);
}

void note_missing(const std::vector<RunSummary>& ranks, RunData& to) {
  std::set<int> there;
  for (const RunSummary& rank : ranks) there.insert(rank_of(rank).rank);
  std::string missing;
  for (int rank = 0; rank < rank_of(ranks[0]).ranks; ++rank) {
    if (there.contains(rank)) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    to.trace.track(TrackKind::Other, "not recorded", group_of(rank, ""), 0, rank);
  }
  if (!missing.empty()) to.problems.push_back("There is no file of rank " + missing + ".");
}

// `ranks`: sorted by rank.
RunData joined(const std::vector<RunSummary>& ranks, const OpenRanks& open, const std::function<void(Trace&)>& keep) {
  const Clocks clocks(ranks, open);
  std::vector<ClockMap> maps = clocks.maps();
  TimeNs first = kAlways;
  for (size_t i = 0; i < ranks.size(); ++i)
    open(i, false, [&](const OpenRank& rank) { first = std::min(first, maps[i](rank.run.trace.first_time())); });
  const TimeNs earlier = std::max<TimeNs>(0, -first);  // another rank began before the lowest one
  for (ClockMap& map : maps) map.shift = later(map.shift, earlier);
  RunData run;
  run.summary = joined_summary(ranks);
  run.problems = clocks.problems();
  if (clocks.error_us() > 0) run.summary.extra[kClockErrorKey] = std::to_string(clocks.error_us());
  RankJoin join(run.trace, keep);
  for (size_t i = 0; i < ranks.size(); ++i)
    open(i, true, [&](OpenRank rank) {
      const int number = rank_of(ranks[i]).rank;
      join.add(rank, number, maps[i], i == 0);
      run.trace.losses.add(rank.points.losses);
      for (const std::string& problem : rank.run.problems)
        run.problems.push_back("Rank " + std::to_string(number) + ": " + problem);
      if (i == 0) take_rows(rank.run, join, earlier, run);
    });
  note_missing(ranks, run);
  return run;
}

template <class Item, class Summary>
std::vector<RunSummary> in_order(std::vector<Item>& items, Summary summary) {
  sort_rows(items, [&](const Item& a, const Item& b) { return rank_of(summary(a)).rank < rank_of(summary(b)).rank; });
  std::vector<RunSummary> all;
  for (const Item& item : items) all.push_back(summary(item));
  return all;
}

// Reads the head of a Chrome trace: the ranks are named before the first event.
class RankSink final : public ChromeSink {
 public:
  struct Enough {};
  void add(ChromeEvent&) override { throw Enough(); }
  void set_about(const std::string&, const std::string&) override {}
  void set_kept(const std::string& key, const std::string& value) override { summary.extra[key] = value; }
  void set_device(const std::string&, const std::string&) override {}
  void set_base(int64_t) override {}
  void set_world(const std::string& key, int64_t value) override { summary.extra[key] = std::to_string(value); }
  RunSummary summary;
};

}  // namespace

RankOfFile rank_of_file(const std::string& path) {
  if (path.ends_with(".wsrun")) return rank_of(read_run_summary(path));
  if (!path.ends_with(".json") && !path.ends_with(".gz")) return {};
  RankSink sink;
  try {
    read_chrome(path, sink);
  } catch (const RankSink::Enough&) {
  }
  return rank_of(sink.summary);
}

bool ranks_of_one_program(const std::vector<std::string>& paths) {
  try {
    std::vector<RankOfFile> all;
    for (const std::string& path : paths) all.push_back(rank_of_file(path));
    return why_not_one(all, [&](size_t i) { return paths[i]; }).empty();
  } catch (const std::exception&) {
    return false;
  }
}

RunData join_ranks(std::vector<RunData> ranks) {
  const auto summaries = in_order(ranks, [](const RunData& run) { return run.summary; });
  std::vector<RankOfFile> all;
  for (const RunSummary& summary : summaries) all.push_back(rank_of(summary));
  if (const std::string why = why_not_one(all, [&](size_t i) { return summaries[i].name; }); !why.empty())
    throw Failure("These runs are not the ranks of one program: " + why);
  const OpenRanks open = [&ranks](size_t i, bool whole, const std::function<void(OpenRank)>& use) {
    use({ranks[i], ranks[i].trace, blocks_in_memory(ranks[i].trace)});
    if (whole) ranks[i] = {};  // its spans are copied
  };
  return joined(summaries, open, [](Trace&) {});
}

RunData import_ranks(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return import_run(paths[0]);
  Budget budget;
  std::vector<RunData> ranks;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    ranks.push_back(import_run(path));
    if (ranks.back().summary.name.empty() || rank_of(ranks.back().summary).rank < 0) ranks.back().summary.name = path;
    names.push_back(ranks.back().summary.name);
    budget.take(ranks.back().trace.resident_bytes());
  }
  RunData joined = join_ranks(std::move(ranks));
  if (const std::string name = common_name(paths, names); !name.empty())
    joined.summary.name = name + joined.summary.name.substr(joined.summary.name.rfind(" · "));
  return joined;
}

void join_rank_files(const std::vector<std::string>& paths, const std::string& to) {
  std::vector<std::pair<std::string, RunSummary>> files;
  for (const std::string& path : paths) files.emplace_back(path, read_run_summary(path));
  const auto summaries = in_order(files, [](const auto& file) { return file.second; });
  std::vector<RankOfFile> all;
  for (const RunSummary& summary : summaries) all.push_back(rank_of(summary));
  if (const std::string why = why_not_one(all, [&](size_t i) { return files[i].first; }); !why.empty())
    throw Failure("These files are not the ranks of one program: " + why);
  const OpenRanks open = [&files](size_t i, bool whole, const std::function<void(OpenRank)>& use) {
    RunFileReader reader(files[i].first);
    RunData run;
    Trace points = whole ? reader.trace() : Trace();
    if (whole) {
      run.metrics = reader.metrics(), run.evaluations = reader.evaluations(), run.marks = reader.marks();
      run.step_windows = reader.step_windows(), run.allocations = reader.allocations();
    }
    run.trace = reader.outline();
    size_t unread = 0;
    const ReadBlock read = [&](size_t track, size_t block, const UseSpans& visit) {
      try {
        visit(reader.spans(run.trace, static_cast<TrackId>(track), block));
      } catch (const Failure&) {
        ++unread;
      }
    };
    use({run, points, read});
    if (whole && unread > 0)
      throw Failure(files[i].first + " is damaged: " + std::to_string(unread) + " blocks cannot be read.");
  };
  write_whole_file(to, [&](const std::string& part) {
    RunFileWriter writer(part, joined_summary(summaries));
    RunData run = joined(summaries, open, [&writer](Trace& trace) {
      trace.backed = true;
      writer.add(trace);
      trace.evict_spans(0);
    });
    std::string notes;
    for (const std::string& problem : run.problems) notes += (notes.empty() ? "" : " ") + problem;
    if (!notes.empty()) run.summary.extra[kRankNotesKey] = notes;
    finish_run_file(writer, run);
  });
}

void keep_rank(RunSummary& summary, int rank, int ranks) {
  summary.extra[kRankKey] = std::to_string(rank);
  summary.extra[kWorldKey] = std::to_string(ranks);
}

void keep_clock(RunSummary& summary, const std::string& clock, int64_t origin_ns) {
  summary.extra[kClockKey] = clock;
  summary.extra[kClockOriginKey] = std::to_string(origin_ns);
}

void keep_origin(RunSummary& summary, const LaunchedRank& self, int64_t origin_ns) {
  std::string boot;  // the same for all processes of this machine, until it starts again
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  keep_clock(summary, boot, origin_ns);
  if (self.rank < 0) return;
  keep_rank(summary, self.rank, self.ranks);
  if (self.restart > 0) summary.extra[kRestartKey] = std::to_string(self.restart);
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) summary.extra[kHostKey] = host;
}

}  // namespace ws::prof
