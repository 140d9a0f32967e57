#include "profiling/analysis/ranks.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "profiling/analysis/collective_waits.h"
#include "profiling/analysis/covered_time.h"
#include "profiling/analysis/late_steps.h"
#include "profiling/analysis/step_breaks.h"
#include "profiling/analysis/step_finder.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/json_input.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/statistics.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

constexpr float kNotKnown = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kWarmUpFrom = 5;    // with so many steps, the first one is left out of means
constexpr size_t kMostMissing = 16;  // a damaged file may claim any rank: so many missing ranks are listed for each one

double micros(TimeNs ns) { return static_cast<double>(ns) * 1e-3; }

// When each step of a rank begins, as far as it is marked.
struct StepMarks {
  std::vector<TimeNs> starts;
  std::vector<int64_t> numbers;
  // The mark that was open at a time, or the first one; -1 if there is none.
  int64_t at(TimeNs time) const {
    const auto after = std::ranges::upper_bound(starts, time) - starts.begin();
    return starts.empty() ? -1 : std::max<int64_t>(after - 1, 0);
  }
};

// Some programs do not number their steps.
int64_t number_of(const Span& mark, size_t index) {
  return mark.step > 0 ? int64_t{mark.step} - 1 : static_cast<int64_t>(index);
}

void add_mark(StepMarks& marks, const Span& span) {
  marks.numbers.push_back(number_of(span, marks.starts.size()));
  marks.starts.push_back(span.start);
}

// Bytes on the busiest link for each byte of the message.
double bus_factor(const std::string& name, size_t ranks) {
  std::string plain;
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto n = static_cast<double>(ranks);
  const auto has = [&](const char* word) { return plain.find(word) != plain.npos; };
  if (has("allreduce")) return all_reduce_bus_factor(n);
  return has("allgather") || has("reducescatter") || has("alltoall") ? (n - 1) / n : 1;
}

// A collective on one rank: it waits until the last rank arrives, then data moves.
struct Parts {
  TimeNs begin = 0, arrived = 0, end = 0;
  uint32_t kind = 0;
};

class RankComparison {
 public:
  RankComparison(const Trace& trace, const ReadBlock& read, double clock_error_us, std::span<const TimeRange> typical)
      : trace_(trace), read_(read), typical_(typical) {
    report_.clock_error_us = clock_error_us;
  }

  RankReport compare() {
    list_ranks();
    if (!report_.any()) return {};
    found_.add(trace_, read_);
    matched_ = match_by_time(found_, static_cast<TimeNs>(report_.clock_error_us * 1e3));
    for (size_t r = 0; r < found_.ranks.size(); ++r) {
      const auto at = std::ranges::lower_bound(report_.ranks, found_.ranks[r], {}, &RankRow::rank);
      rows_.push_back(static_cast<size_t>(at - report_.ranks.begin()));
    }
    for (const CollectiveKind& kind : found_.kinds) only_messages_ = only_messages_ && is_point_to_point(kind);
    note_missing();
    find_marks();
    find_steps();
    if (report_.steps.empty()) return std::move(report_);
    place_arrivals();
    add_step_lengths();
    add_times();
    add_exposed();
    to_means();
    find_stragglers();
    return std::move(report_);
  }

 private:
  struct Sums {
    double matches = 0, calls = 0, wait = 0, idle_wait = 0, transfer = 0, exposed = 0;
    size_t ranks = 0;  // the most that took part
    bool messages = false;
    double bus_bytes = 0, bus_ns = 0;  // on the busiest link, and how long the transfers take
  };

  // A rank without spans, or between two others, belongs to the run but was not recorded.
  void list_ranks() {
    std::map<int, bool> there;
    for (size_t t = 0; t < trace_.tracks().size(); ++t) {
      const Track& track = trace_.tracks()[t];
      if (track.rank < 0) continue;
      there[track.rank] |= track.spans > 0;
      tracks_[track.rank].push_back(t);
    }
    if (there.empty()) return;
    const int last = there.rbegin()->first;
    if (static_cast<size_t>(last) < kMostMissing * there.size())
      for (int rank = 0; rank < last; ++rank) there.try_emplace(rank, false);
    for (const auto& [rank, recorded] : there) {
      RankRow& row = report_.ranks.emplace_back();
      row.rank = rank, row.recorded = recorded;
    }
    if (std::ranges::count(report_.ranks, true, &RankRow::recorded) < 2) report_.ranks.clear();
  }

  // `rank`: index into found_.ranks.
  RankRow& row(size_t rank) { return report_.ranks[rows_[rank]]; }

  void note_missing() {
    std::string missing, silent;
    for (const RankRow& row : report_.ranks)
      if (!row.recorded) missing += (missing.empty() ? "" : ", ") + std::to_string(row.rank);
    for (size_t r = 0; r < found_.ranks.size(); ++r)
      if (found_.calls[r].empty() && row(r).recorded)
        silent += (silent.empty() ? "" : ", ") + std::to_string(found_.ranks[r]);
    if (!missing.empty()) report_.notes.push_back("Not recorded: rank " + missing + ".");
    note_lost();
    if (std::ranges::any_of(found_.kinds, &CollectiveKind::unknown_peer))
      report_.notes.push_back("Messages inside a larger communicator are not compared: the recording does not say which rank gets them.");
    const bool some = std::ranges::any_of(found_.calls, [](const auto& calls) { return !calls.empty(); });
    if (!silent.empty() && some) report_.notes.push_back("No collective was recorded on rank " + silent + ".");
  }

  // Tracing pauses now and then, so that a rank may lack a few calls. Ranks of different groups make different calls: a rank
  // lacks what another one has of the kinds that it takes part in.
  void note_lost() {
    constexpr double kMany = 0.01;
    std::vector<size_t> most(found_.kinds.size());
    std::vector<std::vector<size_t>> counts;
    for (const auto& calls : found_.calls) {
      std::vector<size_t>& of_rank = counts.emplace_back(found_.kinds.size());
      for (const CollectiveCall& one : calls) ++of_rank[one.kind];
      for (size_t k = 0; k < most.size(); ++k) most[k] = std::max(most[k], of_rank[k]);
    }
    for (size_t r = 0; r < found_.ranks.size(); ++r) {
      size_t all = 0;
      for (size_t k = 0; k < most.size(); ++k) all += counts[r][k] > 0 ? most[k] : 0;
      const size_t there = found_.calls[r].size();
      if (there == 0 || static_cast<double>(all - there) < kMany * static_cast<double>(all)) continue;
      report_.notes.push_back("Rank " + std::to_string(found_.ranks[r]) + " has only " + std::to_string(there) + " of " +
                              std::to_string(all) + " collectives. Steps without all ranks are not compared.");
    }
  }

  // Marks by rank; -1: marks that all ranks share.
  void find_marks() {
    for (size_t t = 0; t < trace_.tracks().size(); ++t) {
      const Track& track = trace_.tracks()[t];
      if (track.kind != TrackKind::Steps || marks_.contains(track.rank)) continue;
      std::vector<Span> steps;
      for (size_t b = 0; b < track.blocks.size(); ++b)
        read_(t, b, [&](std::span<const Span> spans) { steps.insert(steps.end(), spans.begin(), spans.end()); });
      order_by_start(steps);  // blocks of a file may overlap
      for (const Span& step : steps) add_mark(marks_[track.rank], step);
      note_breaks(steps);
    }
    const bool known = std::ranges::any_of(found_.calls, [](const auto& calls) {
      return std::ranges::any_of(calls, [](const CollectiveCall& call) { return call.step > 0; });
    });
    if (marks_.empty() && !known) search_marks();
  }

  // An evaluation interrupts every rank. A rank that comes late interrupts only itself, and the other ranks wait in their
  // step.
  void note_breaks(const std::vector<Span>& steps) {
    const StepBreaks breaks(steps);
    for (size_t i = 1; i < steps.size(); ++i)
      if (breaks.between(steps[i - 1], steps[i])) {
        Breaks& found = breaks_[number_of(steps[i], i)];
        ++found.ranks, found.pauses += breaks.pause(steps[i - 1], steps[i]);
      }
  }
  bool is_after_break(int64_t step) const {
    const auto at = breaks_.find(step);
    return at != breaks_.end() && at->second.ranks == marks_.size();
  }
  size_t pauses() const {
    return static_cast<size_t>(std::ranges::count_if(report_.steps, [this](int64_t step) {
      const auto at = breaks_.find(step);
      return step > report_.steps[first_used_] && at != breaks_.end() && at->second.pauses == marks_.size();
    }));
  }

  // Searches the kernels of the first rank for a repeating pattern.
  void search_marks() {
    if (found_.ranks.empty()) return;
    std::vector<std::string> names;
    for (size_t i = 0; i < trace_.name_count(); ++i) names.push_back(trace_.name(static_cast<NameId>(i)));
    StepFinder finder;
    for (const size_t t : tracks_.at(found_.ranks[0])) {
      const Track& track = trace_.tracks()[t];
      if (track.kind != TrackKind::Stream) continue;
      for (size_t b = 0; b < track.blocks.size(); ++b)
        read_(t, b, [&](std::span<const Span> spans) { finder.take(track.kind, track.name, spans, names); });
    }
    for (const Span& span : finder.find().spans({})) add_mark(marks_[found_.ranks[0]], span);
  }

  const StepMarks* marks_of(int rank) const {
    for (const int each : {rank, -1})
      if (const auto at = marks_.find(each); at != marks_.end()) return &at->second;
    return nullptr;
  }

  const CollectiveCall* call(size_t match, size_t rank) const {
    const uint32_t index = matched_.index(match, rank);
    return index == MatchedCalls::kNone ? nullptr : &found_.calls[rank][index];
  }

  template <class Visit>
  void each_call(size_t match, Visit visit) const {
    for (size_t r = 0; r < found_.ranks.size(); ++r)
      if (const CollectiveCall* one = call(match, r)) visit(r, *one);
  }

  // The number of the step that a collective belongs to; -1: not known. Ranks may count their steps differently, so the
  // first rank that knows decides.
  int64_t step_of(size_t match) const {
    int64_t known = -1, marked = -1;
    each_call(match, [&](size_t r, const CollectiveCall& one) {
      if (known < 0 && one.step > 0) known = int64_t{one.step} - 1;
      const StepMarks* marks = known < 0 && marked < 0 ? marks_of(found_.ranks[r]) : nullptr;
      if (marks && one.begin >= marks->starts[0]) marked = marks->numbers[static_cast<size_t>(marks->at(one.begin))];
    });
    return known >= 0 ? known : marked;
  }

  // A collective begins on the GPU some time after the host has launched it. If each step has as many of a kind, the first
  // ones belong to the first step, although some begin when the host's next step has begun. Leaves -1 where that is not so.
  void number_in_order(std::vector<int64_t>& numbers) const {
    std::vector<std::vector<size_t>> kinds(found_.kinds.size());
    for (size_t m = 0; m < matched_.size(); ++m)
      if (taking_part(m) > 1) kinds[matched_.kinds[m]].push_back(m);
    for (const std::vector<size_t>& all : kinds) {
      const StepMarks* marks = nullptr;
      if (!all.empty()) each_call(all[0], [&](size_t r, const CollectiveCall&) { marks = marks ? marks : marks_of(found_.ranks[r]); });
      if (!marks || all.size() % marks->starts.size() != 0) continue;
      const size_t each = all.size() / marks->starts.size();
      bool in_order = true;
      for (size_t i = 0; i < all.size() && in_order; ++i) in_order = may_be_of(all[i], i / each);
      for (size_t i = 0; i < all.size() && in_order; ++i) numbers[all[i]] = marks->numbers[i / each];
    }
  }
  // True if no rank calls it before its mark with this index, and none says of which step it is.
  bool may_be_of(size_t match, size_t mark) const {
    bool may = true;
    each_call(match, [&](size_t r, const CollectiveCall& one) {
      const StepMarks* marks = marks_of(found_.ranks[r]);
      may = may && one.step == 0 && marks && mark < marks->starts.size() && one.begin >= marks->starts[mark];
    });
    return may;
  }

  size_t taking_part(size_t match) const {
    size_t count = 0;
    each_call(match, [&](size_t, const CollectiveCall&) { ++count; });
    return count;
  }

  // Keeps the steps in which every rank whose groups communicate was part of a collective.
  void find_steps() {
    const size_t ranks = found_.ranks.size();
    std::vector<std::vector<bool>> members(found_.kinds.size(), std::vector<bool>(ranks));
    std::vector<int64_t> numbers(matched_.size(), -1);
    number_in_order(numbers);
    for (size_t m = 0; m < matched_.size(); ++m)
      if (numbers[m] < 0 && taking_part(m) > 1) numbers[m] = step_of(m);
    if (std::ranges::all_of(numbers, [](int64_t number) { return number < 0; })) {
      const bool host_only = std::ranges::none_of(found_.ranks, [this](int rank) { return has_streams(rank); });
      const std::string how = host_only ? " Of a program that runs on the CPU, record --level ops sees them." : "";
      if (matched_.size() == 0) return void(report_.notes.push_back("No collective of two ranks was recorded." + how));
      report_.notes.push_back("No steps were found: the times are those of the whole run.");
      for (size_t m = 0; m < matched_.size(); ++m) numbers[m] = taking_part(m) > 1 ? 0 : -1;
    }
    struct Presence {
      std::vector<bool> there;
      std::set<uint32_t> kinds;
    };
    std::map<int64_t, Presence> seen;
    for (size_t m = 0; m < matched_.size(); ++m) {
      if (numbers[m] < 0) continue;
      const uint32_t kind = matched_.kinds[m];
      Presence& present = seen.try_emplace(numbers[m], Presence{std::vector<bool>(ranks), {}}).first->second;
      present.kinds.insert(kind);
      each_call(m, [&](size_t r, const CollectiveCall&) { present.there[r] = members[kind][r] = true; });
    }
    const auto missing = [&](const Presence& present, size_t r) {
      return !present.there[r] && std::ranges::any_of(present.kinds, [&](uint32_t kind) { return members[kind][r]; });
    };
    for (const auto& [number, present] : seen) {
      bool all = true;
      for (size_t r = 0; r < ranks && all; ++r) all = !missing(present, r);
      if (all) report_.steps.push_back(number);
    }
    place_matches(numbers);
  }

  void place_matches(const std::vector<int64_t>& numbers) {
    const auto& steps = report_.steps;
    step_index_.assign(matched_.size(), -1);
    for (size_t m = 0; m < matched_.size(); ++m) {
      const auto at = std::ranges::lower_bound(steps, numbers[m]);
      if (numbers[m] >= 0 && at != steps.end() && *at == numbers[m]) step_index_[m] = at - steps.begin();
    }
    first_used_ = steps.size() >= kWarmUpFrom ? 1 : 0;
    used_ = steps.size() - first_used_;
  }
  // A step of a pipeline waits for messages by its nature, so that no rank is late to them if there are collectives.
  bool shows_lateness(size_t match) const {
    return only_messages_ || !is_point_to_point(found_.kinds[matched_.kinds[match]]);
  }
  bool is_used(size_t match) const { return step_index_[match] >= static_cast<int64_t>(first_used_); }

  void place_arrivals() {
    report_.lateness.assign(report_.ranks.size() * report_.steps.size(), kNotKnown);
    report_.step_begins.assign(report_.steps.size(), kAlways);
    ends_.assign(found_.ranks.size(), std::vector<TimeNs>(report_.steps.size(), -kAlways));
    for (size_t m = 0; m < matched_.size(); ++m)
      if (step_index_[m] >= 0) place_arrivals(m, static_cast<size_t>(step_index_[m]));
  }

  void place_arrivals(size_t match, size_t step) {
    const Arrivals all = arrivals(found_, matched_, match);
    each_call(match, [&](size_t r, const CollectiveCall& one) {
      const size_t place = rows_[r];
      ++report_.ranks[place].collectives;
      if (shows_lateness(match)) {
        float& late = report_.lateness[place * report_.steps.size() + step];
        const auto now = static_cast<float>(micros(one.begin - all.first));
        late = late >= now ? late : now;  // also replaces NaN
      }
      ends_[r][step] = std::max(ends_[r][step], one.end);
      see_begin(r, one, step);
    });
  }

  void add_times() {
    sums_.resize(found_.kinds.size());
    parts_.resize(found_.ranks.size());
    choose_typical();
    for (size_t m = 0; m < matched_.size(); ++m)
      if (step_index_[m] >= 0 && in_times_[static_cast<size_t>(step_index_[m])]) add_match(m);
  }

  // Times are of the typical steps, so that they belong to the median step. If none is known, of all counted steps.
  void choose_typical() {
    in_times_.assign(counted_.size(), false);
    for (size_t s = 0; s + 1 < counted_.size(); ++s) {
      const TimeNs middle = report_.step_begins[s] + (report_.step_begins[s + 1] - report_.step_begins[s]) / 2;
      in_times_[s] = counted_[s] && std::ranges::any_of(typical_, [middle](const TimeRange& range) { return range.begin <= middle && middle < range.end; });
    }
    if (std::ranges::none_of(in_times_, std::identity())) in_times_ = counted_, typical_ = {};
  }

  void add_match(size_t match) {
    const Arrivals all = arrivals(found_, matched_, match);
    double others_wait = 0;
    TimeNs longest = 0;
    each_call(match, [&](size_t r, const CollectiveCall& one) {
      const CollectiveParts parts = parts_of(one, all);
      add_call(r, one, parts, matched_.kinds[match]);
      others_wait += micros(parts.wait);
      longest = std::max(longest, parts.transfer);
    });
    row(all.last_rank).caused += others_wait / static_cast<double>(all.count - 1);
    Sums& sums = sums_[matched_.kinds[match]];
    ++sums.matches, sums.ranks = std::max(sums.ranks, all.count);
    const CollectiveKind& kind = found_.kinds[matched_.kinds[match]];
    if (kind.bytes > 0 && longest > 0)
      sums.bus_bytes += bus_factor(kind.name, all.count) * static_cast<double>(kind.bytes), sums.bus_ns += static_cast<double>(longest);
  }

  void add_call(size_t rank, const CollectiveCall& one, const CollectiveParts& parts, uint32_t kind) {
    RankRow& of = row(rank);
    Sums& sums = sums_[kind];
    of.wait += micros(parts.wait), of.transfer += micros(parts.transfer);
    sums.wait += micros(parts.wait), sums.transfer += micros(parts.transfer), ++sums.calls;
    const TimeNs arrived = std::min(one.end, one.begin + parts.wait);
    if (parts.transfer > 0 || !typical_.empty()) parts_[rank].push_back({typical_.empty() ? arrived : one.begin, arrived, one.end, kind});
  }

  void see_begin(size_t rank, const CollectiveCall& one, size_t step) {
    const StepMarks* marks = marks_of(found_.ranks[rank]);
    const int64_t mark = marks ? marks->at(one.begin) : -1;
    const TimeNs begin = mark < 0 ? one.begin : std::min(one.begin, marks->starts[static_cast<size_t>(mark)]);
    report_.step_begins[step] = std::min(report_.step_begins[step], begin);
  }

  // A step lasts from the last collective of the step before it to its own last one. Steps after a pause or an
  // evaluation do not count, as in every mean step. Nor does the last one before it: its batch can be a smaller one. All means
  // are of these steps, so that the parts of a step are not longer than the step.
  void add_step_lengths() {
    const auto& steps = report_.steps;
    int64_t stride = std::numeric_limits<int64_t>::max();
    for (size_t s = 1; s < steps.size(); ++s) stride = std::min(stride, steps[s] - steps[s - 1]);
    counted_.assign(steps.size(), false);
    for (size_t s = 1; s < steps.size(); ++s)
      counted_[s] = steps[s] - steps[s - 1] == stride && !is_after_break(steps[s]) &&
                    (s + 1 == steps.size() || !is_after_break(steps[s + 1]));
    leave_long_steps_out();
    const TimeNs begin = report_.step_begins.back();
    bool measured = false;
    for (size_t r = 0; r < ends_.size(); ++r) {
      const std::vector<double> lengths = lengths_of(r);
      for (const double length : lengths) row(r).step += length / static_cast<double>(lengths.size());
      measured = measured || !lengths.empty();
    }
    if (measured) return;
    for (size_t r = 0; r < ends_.size(); ++r) row(r).step = micros(std::max(begin, ends_[r].back()) - begin);
    for (size_t s = first_used_; s < steps.size(); ++s) counted_[s] = true;
  }

  bool has_length(size_t rank, size_t step) const {
    return counted_[step] && ends_[rank][step - 1] != -kAlways && ends_[rank][step] > ends_[rank][step - 1];
  }
  // Empty if the rank only takes part now and then.
  std::vector<double> lengths_of(size_t rank) const {
    std::vector<double> lengths;
    for (size_t s = 1; s < counted_.size(); ++s)
      if (has_length(rank, s)) lengths.push_back(micros(ends_[rank][s] - ends_[rank][s - 1]));
    return lengths;
  }
  // A pause inside of a step.
  void leave_long_steps_out() {
    std::set<size_t> left_out;
    for (size_t r = 0; r < ends_.size(); ++r) {
      const std::vector<double> lengths = lengths_of(r);
      const double longest = lengths.empty() ? 0 : kPauseFactor * median(lengths);
      for (size_t s = 1; s < counted_.size(); ++s)
        if (has_length(r, s) && micros(ends_[r][s] - ends_[r][s - 1]) > longest) left_out.insert(s);
    }
    for (const size_t step : left_out) counted_[step] = false;
    report_.pauses = pauses() + left_out.size();
  }

  void add_exposed() {
    report_.computation = std::ranges::none_of(trace_.tracks(), [](const Track& track) { return times_collectives(track); });
    for (size_t r = 0; r < found_.ranks.size(); ++r) {
      auto calls = std::exchange(parts_[r], {});
      if (!report_.computation) {
        row(r).exposed = std::numeric_limits<double>::quiet_NaN();
        for (const Parts& call : calls) sums_[call.kind].exposed = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      std::ranges::sort(calls, {}, &Parts::begin);
      const CoveredTime busy = computing(found_.ranks[r], calls);
      const auto alone = [&busy](TimeNs begin, TimeNs end) { return micros(end - begin - busy.within({begin, end})); };
      for (const Parts& call : calls) {
        const double exposed = alone(call.arrived, call.end);
        row(r).exposed += exposed;
        sums_[call.kind].exposed += exposed, sums_[call.kind].idle_wait += alone(call.begin, call.arrived);
      }
    }
  }

  // When this rank computes during these parts of collectives.
  CoveredTime computing(int rank, const std::vector<Parts>& calls) const {
    std::vector<TimeNs> reach;  // greatest end of a call and the calls before it
    for (const Parts& call : calls) reach.push_back(std::max(call.end, reach.empty() ? call.end : reach.back()));
    const auto during_call = [&](TimeNs begin, TimeNs end) {
      const auto before = std::ranges::lower_bound(calls, end, {}, &Parts::begin) - calls.begin();
      return before > 0 && reach[static_cast<size_t>(before) - 1] > begin;
    };
    const bool on_gpu = has_streams(rank);
    std::vector<TimeRange> busy;
    for (const size_t t : tracks_.at(rank)) {
      const Track& track = trace_.tracks()[t];
      if (track.kind != (on_gpu ? TrackKind::Stream : TrackKind::CpuThread)) continue;
      for (size_t b = 0; b < track.blocks.size(); ++b) {
        if (!during_call(track.blocks[b].first, track.blocks[b].last)) continue;
        read_(t, b, [&](std::span<const Span> spans) {
          for (const Span& span : spans)
            if (computes(span) && during_call(span.start, span.end())) busy.push_back({span.start, span.end()});
        });
      }
    }
    return CoveredTime(std::move(busy));
  }

  bool has_streams(int rank) const {
    return std::ranges::any_of(tracks_.at(rank), [this](size_t t) {
      return trace_.tracks()[t].kind == TrackKind::Stream && trace_.tracks()[t].spans > 0;
    });
  }
  static bool computes(const Span& span) {
    return span.span_meaning() != Meaning::Communication &&
           (span.span_kind() == SpanKind::Kernel || span.span_kind() == SpanKind::Op);
  }

  void to_means() {
    const auto steps = static_cast<double>(std::max<size_t>(1, static_cast<size_t>(std::ranges::count(in_times_, true))));
    double ranks = 0, stepping = 0;
    for (size_t r = 0; r < found_.ranks.size(); ++r) {
      if (found_.calls[r].empty()) continue;
      RankRow& of = row(r);
      for (double* sum : {&of.wait, &of.transfer, &of.exposed, &of.caused}) *sum /= steps;
      for (size_t s = 0; s < report_.steps.size(); ++s)
        if (const double late = report_.late(rows_[r], s); in_times_[s] && late > 0) of.late += late / steps;  // NaN: not known
      report_.step_us += of.step, report_.wait_us += of.wait, report_.exposed_us += of.exposed;
      ++ranks, stepping += of.step > 0;
    }
    report_.step_us /= std::max(1.0, stepping);
    for (const RankRow& row : report_.ranks) {
      report_.longest_wait_us = std::max(report_.longest_wait_us, row.wait);
      report_.longest_exposed_us = std::max(report_.longest_exposed_us, row.exposed);
    }
    for (double* sum : {&report_.wait_us, &report_.exposed_us}) *sum /= std::max(1.0, ranks);
    list_collectives(steps, std::max(1.0, ranks));
  }

  // Communicators of one size and streams are not separated here.
  void list_collectives(double steps, double ranks) {
    std::map<std::tuple<std::string, uint64_t, size_t>, Sums> rows;
    for (size_t k = 0; k < sums_.size(); ++k) {
      if (sums_[k].matches == 0) continue;
      const size_t part = static_cast<double>(sums_[k].ranks) < ranks ? sums_[k].ranks : 0;
      Sums& to = rows[{found_.kinds[k].name, found_.kinds[k].bytes, part}];
      to.messages = is_point_to_point(found_.kinds[k]);
      to.calls += sums_[k].calls, to.wait += typical_.empty() ? sums_[k].wait : sums_[k].idle_wait;
      to.transfer += sums_[k].transfer, to.exposed += sums_[k].exposed;
      to.bus_bytes += sums_[k].bus_bytes, to.bus_ns += sums_[k].bus_ns;
    }
    const double each = steps * ranks;
    for (const auto& [kind, sum] : rows) {
      const auto& [name, bytes, part] = kind;
      const std::string of = part > 0 ? " · " + std::to_string(part) + " ranks" : "";
      const double members = part > 0 ? static_cast<double>(part) : ranks, waiting = each * (members - 1) / std::max(1.0, members);
      report_.collectives.push_back({name + of, bytes, sum.calls / each, waiting > 0 ? sum.wait / waiting : 0, sum.transfer / each, sum.exposed / each,
                                     sum.bus_ns > 0 ? sum.bus_bytes / sum.bus_ns : 0, 0, static_cast<int>(part), sum.messages});
    }
    sort_rows(report_.collectives, [](const CollectiveRow& a, const CollectiveRow& b) {
      return a.wait + a.transfer > b.wait + b.transfer;
    });
  }

  // The same call in each step: the k-th of its kind. Calls that fewer than half of the steps make are left out.
  std::vector<std::vector<size_t>> matches_by_place() const {
    std::map<std::pair<uint32_t, size_t>, std::vector<size_t>> places;
    std::vector<std::pair<int64_t, size_t>> last(found_.kinds.size(), {-1, 0});  // by kind: step, and calls in it
    for (size_t m = 0; m < matched_.size(); ++m) {
      if (step_index_[m] < 0 || !is_used(m) || is_point_to_point(found_.kinds[matched_.kinds[m]])) continue;
      const uint32_t kind = matched_.kinds[m];
      auto& [step, calls] = last[kind];
      if (step != step_index_[m]) step = step_index_[m], calls = 0;
      places[{kind, calls++}].push_back(m);
    }
    std::vector<std::vector<size_t>> often;
    for (auto& [place, matches] : places)
      if (2 * matches.size() >= used_) often.push_back(std::move(matches));
    return often;
  }

  // How much later than the median of the other ranks a rank comes to a collective, in µs: by rank and used step. Where
  // two ranks are in the middle, the earlier one counts.
  std::vector<StepDelays> against_others(const std::vector<size_t>& matches) const {
    std::vector<StepDelays> late(report_.ranks.size(), StepDelays(used_, kNotKnown));
    std::vector<TimeNs> all;
    for (const size_t m : matches) {
      all.clear();
      each_call(m, [&](size_t, const CollectiveCall& one) { all.push_back(one.begin); });
      if (all.size() < 2) continue;
      std::ranges::sort(all);
      const size_t middle = (all.size() - 2) / 2, step = static_cast<size_t>(step_index_[m]) - first_used_;
      each_call(m, [&](size_t r, const CollectiveCall& one) {
        const TimeNs others = all[one.begin <= all[middle] ? middle + 1 : middle];
        late[rows_[r]][step] = micros(one.begin - others);
      });
    }
    return late;
  }

  void find_stragglers() {
    constexpr size_t kMost = 4;
    constexpr double kLeastShare = 0.0005;  // "0.0 %" is no finding
    std::map<std::pair<size_t, bool>, Straggler> worst;  // by rank, and whether there is a pattern
    const std::span<const int64_t> numbers = std::span(report_.steps).subspan(first_used_);
    for (const std::vector<size_t>& place : matches_by_place()) {
      const std::vector<StepDelays> late = against_others(place);
      const double spread = usual_spread(late);
      bool found = false;
      const auto see = [&](size_t r, double usual) {
        for (const LateSteps& steps : late_steps(late[r], numbers, usual, report_.clock_error_us)) {
          found = true;
          Straggler& so_far = worst[{r, steps.every > 0}];
          if (const Straggler one = straggler(r, steps); one.cost_us > so_far.cost_us) so_far = one;
        }
      };
      for (size_t r = 0; r < late.size(); ++r) see(r, spread);
      if (found || found_.ranks.size() != 2) continue;
      for (size_t r = 0; r < late.size(); ++r)
        if (const double mean = systematic_lateness(late[r]); mean > 0) see(r, mean / 2 / kSigmasOfLate);
    }
    std::vector<Straggler> all;
    for (const auto& [key, one] : worst)
      if (one.rank >= 0 && (report_.step_us <= 0 || one.share >= kLeastShare)) all.push_back(one);
    if (all.empty()) return;
    sort_rows(all, [](const Straggler& a, const Straggler& b) { return a.cost_us > b.cost_us; });
    all.resize(std::min(all.size(), kMost));
    report_.straggler = all[0];
    report_.more_late.assign(all.begin() + 1, all.end());
  }

  Straggler straggler(size_t row, const LateSteps& steps) const {
    const double cost = steps.late_us * static_cast<double>(steps.count) / static_cast<double>(used_);
    return {report_.ranks[row].rank, steps.late_us, static_cast<int64_t>(steps.count), steps.every,
            cost, report_.step_us > 0 ? cost / report_.step_us : 0};
  }

  const Trace& trace_;
  const ReadBlock& read_;
  RankReport report_;
  std::map<int, std::vector<size_t>> tracks_;  // by rank
  Collectives found_;
  MatchedCalls matched_;
  bool only_messages_ = true;  // no collective, only sends from rank to rank
  std::vector<size_t> rows_;  // index into report_.ranks, by index into found_.ranks
  std::map<int, StepMarks> marks_;
  struct Breaks {
    size_t ranks = 0, pauses = 0;
  };
  std::map<int64_t, Breaks> breaks_;  // by step: number of ranks whose marks are interrupted before it, and by a pause
  std::vector<int64_t> step_index_;  // of each match, index into report_.steps; -1: not compared
  size_t first_used_ = 0, used_ = 0;  // stragglers are searched in these steps
  std::span<const TimeRange> typical_;  // the steps that the median step comes from
  std::vector<char> counted_, in_times_;  // by step: the mean step counts it; times of collectives do
  std::vector<Sums> sums_;                        // by kind
  std::vector<std::vector<Parts>> parts_;         // by rank; only transfers without typical steps
  std::vector<std::vector<TimeNs>> ends_;         // by rank and step: end of the last collective
};

// How many times as long as the median of the other ranks one computes. 0: not known, or hardly longer.
double computes_longer(const RankReport& report, int rank) {
  constexpr double kLonger = 1.15;
  std::vector<double> others;
  double own = 0;
  for (const RankRow& row : report.ranks) {
    if (row.rank == rank) own = row.computes;
    else if (row.computes > 0) others.push_back(row.computes);
  }
  const double usual = others.empty() ? 0 : median(std::move(others));
  return usual > 0 && own > kLonger * usual ? own / usual : 0;
}

// A rank that is late in every step is late in the median step, which shows what the other ranks wait for it.
void take_wait_of_median(Straggler& straggler, const RankReport& report) {
  const auto row = std::ranges::find(report.ranks, straggler.rank, &RankRow::rank);
  if (row == report.ranks.end()) return;
  straggler.computes = computes_longer(report, straggler.rank);
  if (straggler.every != 1 || !(row->caused > 0)) return;
  straggler.of_median = true, straggler.cost_us = row->caused, straggler.share = row->caused / report.median_step_us;
}

// Collectives of the typical steps share out what the ranks wait and transfer in the median step.
void share_out(std::vector<CollectiveRow>& rows, const RankReport& report) {
  const auto all = static_cast<double>(report.ranks.size());
  double wait = 0, exposed = 0;  // of a rank
  for (const CollectiveRow& row : rows) {
    const double members = row.ranks > 0 ? row.ranks : all;
    wait += row.wait * (members - 1) / all, exposed += row.exposed;
  }
  for (CollectiveRow& row : rows) {
    row.wait *= wait > 0 ? report.wait_us / wait : 0;
    row.exposed *= exposed > 0 ? report.exposed_us / exposed : 0;
  }
}

// What the GPU of each rank does in the median step. The same parts as in the split of that step.
void add_median_step(RankReport& report, const StepSample& sample) {
  if (!report.any() || report.steps.empty() || !sample.traced()) return;
  const double mean_wait = report.wait_us;
  report.median_step_us = sample.median_step_us();
  report.wait_us = report.exposed_us = report.longest_wait_us = report.longest_exposed_us = 0;
  for (RankRow& row : report.ranks) {
    const auto at = sample.rank_parts.find(row.rank);
    if (at == sample.rank_parts.end()) continue;
    const Breakdown& parts = at->second;
    const auto of_step = [&parts](int64_t ns) { return micros(ns) / static_cast<double>(parts.steps); };
    row.step = report.median_step_us, row.computes = of_step(parts.computes()), row.wait = of_step(parts.rank_wait);
    row.exposed = of_step(parts.times[static_cast<size_t>(Meaning::Communication)] - parts.rank_wait);
    report.wait_us += row.wait, report.exposed_us += row.exposed;
    report.longest_wait_us = std::max(report.longest_wait_us, row.wait), report.longest_exposed_us = std::max(report.longest_exposed_us, row.exposed);
  }
  const auto ranks = static_cast<double>(sample.rank_parts.size());
  report.wait_us /= ranks, report.exposed_us /= ranks;
  share_out(report.collectives, report);
  for (RankRow& row : report.ranks) row.caused *= mean_wait > 0 ? report.wait_us / mean_wait : 0;
  take_wait_of_median(report.straggler, report);
  for (Straggler& one : report.more_late) take_wait_of_median(one, report);
}

}  // namespace

StepSample sample_of_ranks(const RunData& run) {
  const std::vector<Track>& tracks = run.trace.tracks();
  if (std::ranges::none_of(tracks, [](const Track& track) { return track.rank > 0; }) || std::ranges::any_of(tracks, times_collectives)) return {};
  StepSample sample = StepsOfRun::of(run).sample({.of_ranks = true});
  if (sample.rank_parts.empty()) return {};
  scale_median(sample, step_time(run, sample).us.value);
  return sample;
}

RankReport rank_report(const Trace& trace, const ReadBlock& read, double clock_error_us, const StepSample& sample) {
  RankReport report = RankComparison(trace, read, clock_error_us, sample.typical).compare();
  add_median_step(report, sample);
  return report;
}

RankReport rank_report(const Trace& trace, double clock_error_us, const StepSample& sample) {
  RankReport report = rank_report(trace, blocks_in_memory(trace), clock_error_us, sample);
  const auto evicted = [](const Track& track) {
    return track.rank >= 0 && std::ranges::any_of(track.blocks, [](const SpanBlock& b) { return !b.resident(); });
  };
  if (report.any() && std::ranges::any_of(trace.tracks(), evicted))
    report.notes.push_back("Some spans are not in memory: their collectives are not compared.");
  return report;
}

RankReport rank_report(const RunData& run) {
  RankReport report = rank_report(run.trace, clock_error_of(run.summary), sample_of_ranks(run));
  add_summary(report, run.summary);
  return report;
}

double clock_error_of(const RunSummary& summary) {
  return std::max(0.0, std::strtod(summary.said(kClockErrorKey).c_str(), nullptr));
}

void add_summary(RankReport& report, const RunSummary& summary) {
  if (const std::string notes = summary.said(kRankNotesKey); !notes.empty()) report.notes.push_back(notes);
  const auto hosts = parse_json_or_null(summary.said(kHostsKey));
  for (RankRow& row : report.ranks)
    if (hosts.is_array() && static_cast<size_t>(row.rank) < hosts.size() &&
        hosts[static_cast<size_t>(row.rank)].is_string())
      row.host = hosts[static_cast<size_t>(row.rank)];
  add_peak(report, bus_rates_from_json(parse_json_or_null(summary.said(kBusRatesKey))));
}

void add_peak(RankReport& report, std::span<const BusRate> measured) {
  const auto elsewhere = [&](const RankRow& row) { return row.host != report.ranks[0].host; };
  if (std::ranges::any_of(report.ranks, elsewhere)) return;
  const auto ranks = static_cast<int>(report.ranks.size());
  report.peak.clear();
  std::ranges::copy_if(measured, std::back_inserter(report.peak), [&](const BusRate& r) { return r.ranks == ranks; });
  for (CollectiveRow& row : report.collectives)
    row.peak_gb_s = row.bytes > 0 ? bus_rate(measured, row.ranks > 0 ? row.ranks : ranks, static_cast<double>(row.bytes)) : 0;
}

}  // namespace ws::prof
