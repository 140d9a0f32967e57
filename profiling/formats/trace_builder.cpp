#include "profiling/formats/trace_builder.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "profiling/trace/span_walk.h"
#include "profiling/formats/guess_steps.h"

namespace ws::prof {

namespace {

constexpr int64_t kLongest = (int64_t{1} << 40) - 1;
constexpr int64_t kFarthestOfAll = int64_t{1} << 62;  // 146 years in both directions
constexpr int64_t kAnotherClock =
    int64_t{1'000'000'000'000'000};  // larger starts are clock readings, not offsets
constexpr size_t kMostLanes = 64;
constexpr uint64_t kSpanBytes = 4 * sizeof(Span);  // here, in the trace, and while both grow
constexpr uint64_t kRowBytes = 1024;

bool possible(TimeNs time) { return time >= -kFarthestOfAll && time <= kFarthestOfAll; }

}  // namespace

OpTag TraceBuilder::op(const OpInfo& info) {
  if (info.name.empty()) return kNoOp;
  const std::string key = info.layer + '\0' + info.name + '\0' + info.phase + '\0' + info.detail;
  if (const auto at = ops_.find(key); at != ops_.end()) return at->second;
  if (trace_.ops.size() > 0xffff) return kNoOp;
  trace_.ops.push_back(info);
  return ops_[key] = static_cast<OpTag>(trace_.ops.size() - 1);
}

bool TraceBuilder::add(const Row& row, Span span, int64_t start, int64_t duration, int64_t external) {
  if (duration < 0) return leave_out("with a negative duration"), false;
  if (!possible(start)) return leave_out("with a time out of range"), false;
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
  int64_t end = 0;
  if (number == 0 || duration < 0 || __builtin_add_overflow(start, duration, &end)) return;
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
  const auto place = static_cast<size_t>(trace_.counter(counter, unit));
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
    at = sources.insert(sources.end(), source);
  }
  event.source = static_cast<uint8_t>(at - sources.begin());
  trace_.append_memory(event);
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
  std::ranges::sort(steps, {}, &Span::start);
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
      lanes.push_back(trace_.track(row.kind, row.name, row.group, static_cast<int>(lane)));
      lane_ends.push_back(std::numeric_limits<TimeNs>::min());
    }
    trace_.append(lanes[lane], span);
    lane_ends[lane] = std::max(lane_ends[lane], span.end());
  }
}

Trace TraceBuilder::finish(std::vector<std::string>& problems) {
  join_ops();
  if (find_steps_) find_steps();
  TimeNs first = std::numeric_limits<TimeNs>::max();
  for (const auto& [row, spans] : rows_) {
    for (const Span& span : spans) first = std::min(first, span.start);
  }
  const bool other = other_clock_ || first > kAnotherClock || first < 0;
  const TimeNs shift = first != std::numeric_limits<TimeNs>::max() && other ? first : 0;
  began_ = shift;
  for (auto& [row, spans] : rows_) {
    for (Span& span : spans) span.start -= shift;
    lay_out(row, spans);
  }
  for (size_t i = 0; i < points_.size(); ++i) trace_.append_counter(static_cast<TrackId>(i), std::move(points_[i]));
  if (shift != 0) trace_.shift_points(-shift);
  for (const auto& [what, times] : left_out_)
    problems.push_back(std::to_string(times) + (times == 1 ? " event " : " events ") + what + ".");
  return std::move(trace_);
}

}  // namespace ws::prof
