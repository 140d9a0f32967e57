#include "profiling/formats/trace_builder.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "profiling/trace/batch_codec.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"
#include "profiling/formats/guess_steps.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr int64_t kLongest = (int64_t{1} << 40) - 1;
// The clock of a file may count from 1970. The difference of any two such times and their durations fits in 64 bits.
constexpr int64_t kFarthestOfAll = (int64_t{1} << 62) - (int64_t{1} << 42);
constexpr int64_t kFarthest = int64_t{1} << 60;  // from the begin of the run: 36 years
constexpr const char* kTooFar = "more than 36 years from the start of the run";
constexpr int64_t kAnotherClock =
    int64_t{1'000'000'000'000'000};  // larger starts are clock readings, not offsets
constexpr size_t kMostLanes = 64;
constexpr uint64_t kSpanBytes = 4 * sizeof(Span);  // here, in the trace, and while both grow
constexpr uint64_t kRowBytes = 1024;
constexpr uint64_t kNameBytes = 100;  // beside its text

bool possible(TimeNs time) { return time >= -kFarthestOfAll && time <= kFarthestOfAll; }
bool too_far(TimeNs time) { return time < -kFarthest || time > kFarthest; }

}  // namespace

OpTag TraceBuilder::op(const OpInfo& info) {
  if (info.name.empty()) return kNoOp;
  const std::string key = info.layer + '\0' + info.name + '\0' + info.phase + '\0' + info.detail +
                          '\0' + (info.stack ? encode_stack(*info.stack) : "");
  if (const auto at = ops_.find(key); at != ops_.end()) return at->second;
  if (trace_.ops.size() > 0xffff) return kNoOp;
  budget_.take(kRowBytes + 3 * key.size());
  trace_.ops.push_back(info);
  return ops_[key] = static_cast<OpTag>(trace_.ops.size() - 1);
}

NameId TraceBuilder::name(std::string_view text) {
  if (!trace_.knows(text)) budget_.take(kNameBytes + text.size());
  return trace_.intern(text);
}

NameId TraceBuilder::name(const std::shared_ptr<const CodeStack>& stack) {
  const size_t before = trace_.name_count();
  const NameId name = trace_.intern(stack);
  if (trace_.name_count() > before) budget_.take(kNameBytes + 3 * trace_.name(name).size());
  return name;
}

bool TraceBuilder::add(const Row& row, Span span, int64_t start, int64_t duration, int64_t external) {
  if (duration < 0) {
    leave_out("with a negative duration");
    return false;
  }
  if (!possible(start)) {
    leave_out("with a time out of range");
    return false;
  }
  if (duration > kLongest) {
    leave_out("longer than 18 minutes (cut to that)");
    duration = kLongest;
  }
  span.start = start;
  span.duration = static_cast<uint64_t>(duration);
  span.flags = span.flags | kImported;
  budget_.take(kSpanBytes);
  std::vector<Span>& spans = rows_[row];
  if (spans.empty()) budget_.take(kRowBytes + row.name.size() + row.group.size());
  spans.push_back(span);
  if (external != 0 && span.op == kNoOp) launched_.push_back({&spans, spans.size() - 1, external});
  return true;
}

void TraceBuilder::add_external(int64_t number, NameId op, int64_t start, int64_t duration) {
  if (number == 0 || !possible(start) || duration < 0) return;
  if (!external_.contains(number)) budget_.take(2 * sizeof(ExternalOp));
  const int64_t end = start + std::min(duration, kLongest);
  const auto [at, fresh] = external_.try_emplace(number, ExternalOp{op, start, end});
  if (!fresh) at->second.end = at->second.start - 1;
}

// Some versions of PyTorch give work without a launching op a number too, which belongs to a different op.
const TraceBuilder::ExternalOp* TraceBuilder::launcher_of(const Launched& launched) {
  const auto op = external_.find(launched.external);
  if (op == external_.end()) return nullptr;
  const Span& span = (*launched.row)[launched.index];
  const auto call = calls_.find(span.correlation);
  const bool called = span.correlation != 0 && call != calls_.end();
  const auto [name, start, end] = op->second;
  const bool fits = called ? start <= call->second && call->second <= end : start <= end && start <= span.start;
  return fits ? &op->second : nullptr;
}

void TraceBuilder::join_ops() {
  if (external_.empty() || launched_.empty()) return;
  for (const auto& [row, spans] : rows_) {
    if (runs_on_gpu(row.kind)) continue;
    for (const Span& span : spans)
      if (span.correlation != 0) calls_.try_emplace(span.correlation, span.start);
  }
  for (const Launched& launched : launched_)
    if (const ExternalOp* by = launcher_of(launched)) {
      Span& span = (*launched.row)[launched.index];
      span.op = op({trace_.name(by->name), {}, {}, {}, span.span_meaning()});
    }
}

void TraceBuilder::add_point(std::string_view counter, std::string_view unit, CounterPoint point) {
  if (!possible(point.time)) return leave_out("with a time out of range");
  const auto place = static_cast<size_t>(trace_.counter(counter, unit, kind_of_counter(counter, unit)));
  if (place >= points_.size()) budget_.take(kRowBytes + counter.size()), points_.resize(place + 1);
  budget_.take(4 * sizeof(CounterPoint));
  points_[place].push_back(point);
}

void TraceBuilder::add_memory(MemoryEvent event, const std::string& source) {
  if (!possible(event.time)) return leave_out("with a time out of range");
  budget_.take(2 * sizeof(MemoryEvent));
  auto& sources = trace_.memory_sources;
  auto at = std::ranges::find(sources, source);
  if (at == sources.end()) {
    if (sources.size() > 255) return leave_out("of more than 256 allocators");
    budget_.take(kNameBytes + source.size());
    at = sources.insert(sources.end(), source);
  }
  event.source = static_cast<uint8_t>(at - sources.begin());
  memory_.push_back(event);
}

// Launched work belongs to the step in which its call began. Without a recorded call, it belongs to the step of the op
// that launched it, otherwise to the step at its own time.
void TraceBuilder::find_steps() {
  std::vector<Span> steps;
  for (const auto& [row, spans] : rows_) {
    if (row.kind == TrackKind::Steps) steps.insert(steps.end(), spans.begin(), spans.end());
  }
  bool on_gpu = false;
  if (steps.empty()) {
    GuessedSteps guess = guess_steps(trace_, rows_);
    if (guess.steps.empty()) return;
    steps = rows_[{TrackKind::Steps, "steps", "CPU"}] = std::move(guess.steps);
    on_gpu = guess.on_gpu;
  }
  order_by_start(steps);
  const auto step_at = [&steps](TimeNs time) -> uint32_t {
    const auto after = std::ranges::upper_bound(steps, time, {}, &Span::start);
    return after == steps.begin() || std::prev(after)->end() <= time ? 0 : std::prev(after)->step;
  };
  std::unordered_map<uint32_t, uint32_t> step_of_call;
  std::unordered_set<uint32_t> calls;  // all calls, with or without a step
  for (auto& [row, spans] : rows_) {
    if (runs_on_gpu(row.kind) || on_gpu) continue;
    for (Span& span : spans) {
      if (span.step == 0) span.step = step_at(span.start);
      if (span.correlation != 0) calls.insert(span.correlation);
      if (span.correlation != 0 && span.step != 0) step_of_call[span.correlation] = span.step;
    }
  }
  for (const Launched& launched : launched_) {
    Span& span = (*launched.row)[launched.index];
    const ExternalOp* by = calls.contains(span.correlation) ? nullptr : launcher_of(launched);
    if (by && span.step == 0 && !on_gpu) span.step = step_at(by->start);
  }
  for (auto& [row, spans] : rows_) {
    if (!runs_on_gpu(row.kind)) continue;
    for (Span& span : spans) {
      if (span.step != 0) continue;
      const auto call = step_of_call.find(span.correlation);
      span.step = call != step_of_call.end()         ? call->second
                  : calls.contains(span.correlation) ? 0
                                                     : step_at(span.start);
    }
  }
}

// A span that overlaps the previous one moves to the row below.
void TraceBuilder::lay_out(const Row& row, std::vector<Span>& spans) {
  std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  std::vector<TimeNs> lane_ends;
  std::vector<TrackId> lanes;
  for (const Span& span : spans) {
    size_t lane = 0;
    while (lane < lane_ends.size() && lane_ends[lane] > span.start) ++lane;
    lane = std::min(lane, kMostLanes - 1);
    if (lane == lanes.size()) {
      lanes.push_back(trace_.track(row.kind, row.name, row.group, static_cast<int>(lane), row.rank));
      lane_ends.push_back(std::numeric_limits<TimeNs>::min());
    }
    trace_.append(lanes[lane], span);
    lane_ends[lane] = std::max(lane_ends[lane], span.end());
  }
}

// Returns the start of the first span, or the first time of all if there are no spans.
TimeNs TraceBuilder::first_time() const {
  constexpr TimeNs kNone = std::numeric_limits<TimeNs>::max();
  TimeNs first = kNone;
  for (const auto& [row, spans] : rows_)
    for (const Span& span : spans) first = std::min(first, span.start);
  if (first != kNone) return first;
  for (const auto& points : points_)
    for (const CounterPoint& point : points) first = std::min(first, point.time);
  for (const MemoryEvent& event : memory_) first = std::min(first, event.time);
  return first == kNone ? 0 : first;
}

// Moves the begin of the run to time 0, and leaves out what is too far from it: sums of times cannot overflow then.
template <class Items, class Item>
void TraceBuilder::begin_at(TimeNs begin, Items& items, TimeNs Item::*time) {
  for (Item& item : items) item.*time -= begin;
  const auto far = std::erase_if(items, [time](const Item& item) { return too_far(item.*time); });
  if (far > 0) left_out_[kTooFar] += static_cast<int64_t>(far);
}

Trace TraceBuilder::finish(std::vector<std::string>& problems) {
  join_ops();
  if (find_steps_) find_steps();
  const TimeNs first = first_time();
  const TimeNs shift = other_clock_ || first > kAnotherClock || first < 0 ? first : 0;
  began_ = shift;
  for (auto& [row, spans] : rows_) {
    begin_at(shift, spans, &Span::start);
    lay_out(row, spans);
  }
  for (size_t i = 0; i < points_.size(); ++i) {
    begin_at(shift, points_[i], &CounterPoint::time);
    trace_.append_counter(static_cast<TrackId>(i), std::move(points_[i]));
  }
  begin_at(shift, memory_, &MemoryEvent::time);
  for (const MemoryEvent& event : memory_) trace_.append_memory(event);
  for (const auto& [what, times] : left_out_)
    problems.push_back(std::to_string(times) + (times == 1 ? " event " : " events ") + what + ".");
  return std::move(trace_);
}

}  // namespace ws::prof
