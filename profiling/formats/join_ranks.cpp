#include "profiling/formats/join_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
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
#include "profiling/base/json_input.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"
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

// The ranks that a run says it holds, in order. Empty if it says none, or what it says cannot be.
std::vector<int> held_ranks(const RunSummary& summary, int64_t ranks) {
  std::vector<int64_t> said;
  if (const int64_t rank = whole_number(summary, kRankKey, -1); rank >= 0) said.push_back(rank);
  const auto list = parse_json_or_null(summary.said(kHeldRanksKey));
  if (said.empty() && list.is_array())
    for (const auto& each : list) said.push_back(each.is_number_integer() ? each.get<int64_t>() : -1);
  const bool apart = std::ranges::adjacent_find(said, std::ranges::greater_equal()) == said.end();
  if (!apart || std::ranges::any_of(said, [&](int64_t rank) { return rank < 0 || rank >= ranks; })) return {};
  return {said.begin(), said.end()};
}

RankOfFile rank_of(const RunSummary& summary) {
  const int64_t ranks = whole_number(summary, kWorldKey, 0);
  if (ranks < 2 || ranks > kMostRanks) return {};
  std::vector<int> held = held_ranks(summary, ranks);
  if (held.empty()) return {};
  const int64_t restart = std::clamp<int64_t>(whole_number(summary, kRestartKey, 0), 0, kMostRanks);
  const int lowest = held.front();
  return {lowest, static_cast<int>(ranks), static_cast<int>(restart), std::move(held)};
}

// The rank that a path names, such as 3 in "rank3.json" or "rank_3/trace.json"; -1 if it names none.
int rank_in_path(const std::filesystem::path& path) {
  for (std::string part : {path.filename().string(), path.parent_path().filename().string()}) {
    std::ranges::transform(part, part.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    for (size_t at = part.rfind("rank"); at != part.npos; at = at == 0 ? part.npos : part.rfind("rank", at - 1)) {
      size_t digits = at + 4;
      if (digits < part.size() && std::string_view("_-. =").find(part[digits]) != std::string_view::npos) ++digits;
      const size_t end = std::min(part.find_first_not_of("0123456789", digits), part.size());
      if (end > digits && end - digits <= 5) return std::stoi(part.substr(digits, end - digits));
    }
  }
  return -1;
}

// Traces of programs that did not tell the profiler their rank often have it in their names. One of them must be rank 0,
// so that "lora_rank8.json" and "lora_rank16.json" stay two runs.
void take_ranks_from_paths(std::vector<RankOfFile>& all, const std::vector<std::string>& paths) {
  const auto has_own = [](const RankOfFile& file) { return file.rank >= 0; };
  if (std::ranges::any_of(all, has_own) || std::ranges::any_of(paths, [](const auto& path) { return path.ends_with(".wsrun"); }))
    return;
  std::vector<int> named;
  for (const std::string& path : paths) named.push_back(rank_in_path(path));
  const int highest = std::ranges::max(named);
  if (std::ranges::min(named) != 0 || highest < 1 || highest >= kMostRanks) return;
  for (size_t i = 0; i < all.size(); ++i) all[i] = {named[i], highest + 1, 0, {named[i]}};
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
    for (const int rank : all[i].held)
      if (const auto [at, fresh] = seen.try_emplace(rank, i); !fresh)
        return name(at->second) + " and " + name(i) + " both hold rank " + std::to_string(rank) + ". Leave one out.";
  }
  return all.size() < 2 ? "At least two ranks are needed." : "";
}

// The run of one rank, or of several that were joined before, while it is open. `points`: a trace with its counters and
// memory events; `run.trace` may lack them.
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

// Brings the clocks of all files to the clock of the file with the lowest rank.
class Clocks {
 public:
  Clocks(const std::vector<RunSummary>& ranks, const OpenRanks& open) : ranks_(ranks), open_(open) {
    maps_.resize(ranks.size());
    group();
    for (const RunSummary& rank : ranks)
      error_us_ = std::max({error_us_, clock_error_of(rank), static_cast<double>(whole_number(rank, kClockWidthKey, 0)) * 0.5e-3});
    if (groups_.size() > 1) align();
    say_guesses();
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
    for (size_t i = 0; i < ranks_.size(); ++i) {
      std::vector<size_t>& calls = calls_of_.emplace_back();
      for (const int rank : rank_of(ranks_[i]).held)
        if (const auto at = std::ranges::lower_bound(found.ranks, rank); at != found.ranks.end() && *at == rank)
          calls.push_back(static_cast<size_t>(at - found.ranks.begin()));
      for (const size_t r : calls)
        for (CollectiveCall& call : found.calls[r])
          call.begin = later(call.begin, maps_[i].shift), call.end = later(call.end, maps_[i].shift);
    }
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
      for (const size_t r : calls_of_[i])
        if (const uint32_t at = matched.index(match, r); at != MatchedCalls::kNone) ends.push_back(map(found.calls[r][at].end));
  }

  void guess(std::optional<ClockMap>& map) {
    const size_t first = groups_[static_cast<size_t>(&map - group_maps_.data())][0], reference = groups_[0][0];
    const bool wall =
        ranks_[first].said(kClockKey) == kWallClock && ranks_[reference].said(kClockKey) == kWallClock;
    std::vector<int>& guessed = guessed_[wall];
    for (const size_t i : groups_[static_cast<size_t>(&map - group_maps_.data())])
      std::ranges::copy(rank_of(ranks_[i]).held, std::back_inserter(guessed));
    error_us_ = std::max(error_us_, wall ? 1e4 : 1e6);
    map = ClockMap{.shift = wall ? later(origin(first), -origin(reference)) : 0};
  }

  void say_guesses() {
    for (auto& [wall, ranks] : guessed_) {
      std::ranges::sort(ranks);
      const std::string who = ranks_text(ranks), reference = std::to_string(rank_of(ranks_[groups_[0][0]]).rank);
      problems_.push_back("R" + who.substr(1) + (ranks.size() == 1 ? " shares" : " share") + " no collective with rank " + reference +
                          ": their clocks are aligned by " +
                          (wall ? "the wall clock, to some ms." : "the start of their recordings, which is only a guess."));
    }
  }

  const std::vector<RunSummary>& ranks_;  // by file
  const OpenRanks& open_;
  std::vector<std::vector<size_t>> groups_;    // files of one clock
  std::vector<std::vector<size_t>> calls_of_;  // by file: indices into Collectives::calls
  std::map<bool, std::vector<int>> guessed_;   // ranks that share no collective, by whether they have the wall clock
  std::vector<std::optional<ClockMap>> group_maps_;  // nullopt: not aligned yet
  std::vector<ClockMap> maps_;
  double error_us_ = 0, aligned_error_us_ = 0;  // errors of a chain of groups add up
  std::vector<std::string> problems_;
};

std::string group_of(int rank, const std::string& group) {
  const std::string begin = "rank " + std::to_string(rank);
  return group.empty() ? begin : begin + " · " + group;
}

bool names_rank(const std::string& group) {
  return group.starts_with("rank ") && group.size() > 5 && std::isdigit(static_cast<unsigned char>(group[5])) != 0;
}

// Copies file after file into one trace.
class RankJoin {
 public:
  // `keep` is called with the trace after each few blocks. It may write them and free their memory.
  RankJoin(Trace& trace, std::function<void(Trace&)> keep) : trace_(trace), keep_(std::move(keep)) {}

  void add(const OpenRank& open, const std::vector<int>& held, const ClockMap& clock, bool leads) {
    const Trace& from = open.run.trace;
    renumber(from);
    const uint32_t before = highest_correlation_;
    std::vector<Span> moved;
    for (size_t t = 0; t < from.tracks().size(); ++t) {
      const Track& track = from.tracks()[t];
      const int rank = track.rank >= 0 ? track.rank : held[0];
      if (!std::ranges::binary_search(held, rank)) continue;  // stands for a rank without a file
      const std::string group = track.rank >= 0 ? track.group : group_of(rank, track.group);
      const TrackId to = trace_.track(track.kind, track.name, group, track.depth, rank);
      for (size_t b = 0; b < track.blocks.size(); ++b) {
        open.read(t, b, [&](std::span<const Span> spans) {
          moved.assign(spans.begin(), spans.end());
          for (Span& span : moved) move(span, clock, before);
          trace_.append(to, moved);
        });
        if (++blocks_ % kBlocksAtOnce == 0) keep_(trace_);
      }
    }
    add_points(open.points, held[0], clock, leads);
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
      if (!leads && is_loss_curve(counter.kind)) continue;  // as the metrics
      std::vector<CounterPoint> points(counter.points.begin(), counter.points.end());
      for (CounterPoint& point : points) point.time = clock(point.time);
      trace_.append_counter(trace_.counter(leads || names_rank(counter.name) ? counter.name : group_of(rank, counter.name), counter.unit, counter.kind),
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

// Also without "4 ranks" and what follows, which a run has that was joined before.
std::string without_rank(const RunSummary& run) {
  const bool several = rank_of(run).held.size() > 1;
  const size_t at = run.name.rfind(several ? " · " + std::to_string(rank_of(run).ranks) + " ranks" : " · rank ");
  return at == run.name.npos ? run.name : run.name.substr(0, at);
}

size_t count_of_ranks(const std::vector<RunSummary>& files) {
  size_t count = 0;
  for (const RunSummary& file : files) count += rank_of(file).held.size();
  return count;
}

std::string devices_text(const std::vector<RunSummary>& files) {
  const auto device = [](const RunSummary& file) { return rank_of(file).held.size() > 1 ? without_count(file.device) : file.device; };
  const std::string first = device(files[0]);
  const bool same = std::ranges::all_of(files, [&](const RunSummary& file) { return device(file) == first; });
  return first.empty() || !same ? files[0].device : several_text(count_of_ranks(files), first);
}

// Notes in a joined run which ranks it holds, on which hosts, and keeps a host that is the only one.
void keep_ranks_and_hosts(const std::vector<RunSummary>& files, RunSummary& joined) {
  std::vector<int> held;
  std::vector<std::string> hosts(static_cast<size_t>(rank_of(files[0]).ranks));
  std::set<std::string> names;
  for (const RunSummary& file : files) {
    const auto list = parse_json_or_null(file.said(kHostsKey));
    for (const int rank : rank_of(file).held) {
      const auto at = static_cast<size_t>(rank);
      const bool listed = list.is_array() && at < list.size() && list[at].is_string();
      hosts[at] = listed ? list[at].get<std::string>() : file.said(kHostKey);
      names.insert(hosts[at]), held.push_back(rank);
    }
  }
  std::ranges::sort(held);
  joined.extra[kHeldRanksKey] = nlohmann::json(held).dump();
  for (const char* key : {kHostKey, kHostsKey}) joined.extra.erase(key);
  if (names.size() > 1)
    joined.extra[kHostsKey] = nlohmann::json(hosts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  else if (!names.begin()->empty())
    joined.extra[kHostKey] = *names.begin();
}

// Files of one program often have names of their own, such as the host and the process. Then only their folder has a
// name for all of them. Returns "" if they already have one name, or no folder.
std::string common_name(const std::vector<std::string>& paths, const std::vector<RunData>& runs) {
  const auto name_of_run = [](const RunData& run) { return without_rank(run.summary); };
  if (std::ranges::adjacent_find(runs, std::ranges::not_equal_to(), name_of_run) == runs.end()) return "";
  const auto folder = [](const std::string& path) { return std::filesystem::absolute(path).lexically_normal().parent_path(); };
  if (std::ranges::adjacent_find(paths, std::ranges::not_equal_to(), folder) != paths.end()) return "";
  return folder(paths[0]).filename().string();
}

// The summary of the lowest rank, as one of all ranks. Times stay on its clock.
RunSummary joined_summary(const std::vector<RunSummary>& files) {
  RunSummary joined = files[0];
  const RankOfFile first = rank_of(files[0]);
  joined.name = without_rank(joined) + " · " + std::to_string(first.ranks) + " ranks";
  if (first.restart > 0) joined.name += " · restart " + std::to_string(first.restart);
  joined.device = devices_text(files);
  for (const char* key : {kRankKey, kClockWidthKey, kClockErrorKey, kRankNotesKey}) joined.extra.erase(key);
  keep_ranks_and_hosts(files, joined);
  for (const RunSummary& file : files) {
    joined.wall_s = std::max(joined.wall_s, file.wall_s);
    if (file.status == "finished" || joined.status == file.status) continue;
    if (joined.status == "finished" || joined.status == "running") joined.status = file.status;
    const RankOfFile rank = rank_of(file);
    const std::string why = file.said("message");
    if (!joined.extra.contains("message"))
      joined.extra["message"] = rank.held.size() > 1 && !why.empty() ? why : "Rank " + std::to_string(rank.rank) + ": " + (why.empty() ? file.status : why);
  }
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

void note_missing(const std::vector<RunSummary>& files, RunData& to) {
  std::set<int> there;
  for (const RunSummary& file : files)
    for (const int rank : rank_of(file).held) there.insert(rank);
  std::vector<int> missing;
  for (int rank = 0; rank < rank_of(files[0]).ranks; ++rank) {
    if (there.contains(rank)) continue;
    missing.push_back(rank);
    to.trace.track(TrackKind::NotRecorded, kNotRecorded, group_of(rank, ""), 0, rank);
  }
  if (!missing.empty()) to.problems.push_back("There is no file of " + ranks_text(missing) + ".");
}

// `ranks`: of each file, sorted by rank.
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
  if (run.summary.extra.contains(kClockKey))
    keep_clock(run.summary, run.summary.said(kClockKey), later(whole_number(ranks[0], kClockOriginKey, 0), -earlier));
  if (clocks.error_us() > 0) run.summary.extra[kClockErrorKey] = std::to_string(clocks.error_us());
  RankJoin join(run.trace, keep);
  for (size_t i = 0; i < ranks.size(); ++i)
    open(i, true, [&](OpenRank rank) {
      const std::vector<int> held = rank_of(ranks[i]).held;
      join.add(rank, held, maps[i], i == 0);
      run.trace.losses.add(rank.points.losses);
      for (const std::string& problem : rank.run.problems)
        run.problems.push_back("R" + ranks_text(held).substr(1) + ": " + problem);
      if (i == 0) take_rows(rank.run, join, earlier, run);
    });
  note_missing(ranks, run);
  keep(run.trace);
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

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text.append(i == 0 ? "" : ", ").append(std::to_string(ranks[i]));
    if (last > i + 1) text.append(" to ").append(std::to_string(ranks[last])), i = last;
  }
  return text;
}

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
    take_ranks_from_paths(all, paths);
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

std::vector<std::string> with_files_of_folders(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string file = entry.path().string();
      const bool trace = file.ends_with(".json") || file.ends_with(".json.gz") || file.ends_with(".wsrun");
      if (trace && entry.is_regular_file()) files.push_back(file);
    }
    if (files.size() == before) throw Failure(path + " is a folder without traces. It needs .json, .json.gz or .wsrun files.");
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

RunData import_ranks(const std::vector<std::string>& given) {
  const std::vector<std::string> paths = with_files_of_folders(given);
  if (paths.size() == 1) return import_run(paths[0]);
  Budget budget;
  std::vector<RunData> runs;
  std::vector<RankOfFile> all;
  for (const std::string& path : paths) {
    runs.push_back(import_run(path));
    all.push_back(rank_of(runs.back().summary));
    if (runs.back().summary.name.empty()) runs.back().summary.name = path;
    budget.take(runs.back().trace.resident_bytes());
  }
  take_ranks_from_paths(all, paths);
  if (const std::string why = why_not_one(all, [&](size_t i) { return paths[i]; }); !why.empty())
    throw Failure("These files are not the ranks of one program: " + why);
  for (size_t i = 0; i < runs.size(); ++i)
    if (all[i].held.size() == 1) keep_rank(runs[i].summary, all[i].rank, all[i].ranks);
  const std::string name = common_name(paths, runs);
  RunData joined = join_ranks(std::move(runs));
  if (!name.empty()) joined.summary.name = name + joined.summary.name.substr(joined.summary.name.rfind(" · "));
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
    keep_rank_notes(run);
    finish_run_file(writer, run);
  });
}

void keep_rank_notes(RunData& joined) {
  std::string notes;
  for (const std::string& problem : joined.problems) notes += (notes.empty() ? "" : " ") + problem;
  if (!notes.empty()) joined.summary.extra[kRankNotesKey] = notes;
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
