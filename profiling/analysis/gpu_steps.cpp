#include "profiling/analysis/gpu_steps.h"

#include <algorithm>

#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

constexpr size_t kMarksAsked = 1000;
constexpr size_t kHistoryBytes = 32u << 20;
constexpr TimeNs kLongestLag = 3'000'000'000;  // a GPU track that is further behind is no longer being recorded

TimeNs reach_of(const Trace& trace, bool gpu) {
  TimeNs reach = INT64_MIN;
  for (const Track& track : trace.tracks()) {
    const bool wanted = gpu ? track.kind == TrackKind::Stream || track.kind == TrackKind::GraphLaunches ||
                                  track.kind == TrackKind::Copies
                            : track.kind == TrackKind::Steps;
    if (wanted && !track.blocks.empty()) reach = std::max(reach, track.blocks.back().reach);
  }
  return reach;
}

std::vector<Span> newest_marks(const Trace& trace) {
  std::vector<Span> marks;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Steps || !marks.empty()) continue;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && marks.size() < kMarksAsked; ++block)
      for (auto span = block->spans.rbegin(); span != block->spans.rend() && marks.size() < kMarksAsked; ++span)
        if (span->step > 0) marks.push_back(*span);
  }
  std::ranges::reverse(marks);
  return marks;
}

}  // namespace

bool host_ran_ahead(const Trace& trace) {
  std::vector<Span> marks = newest_marks(trace);
  if (marks.empty()) return false;
  size_t within = 0, after = 0;
  for (const Track& track : tracks_of_steps(trace)) {
    if (track.kind != TrackKind::Stream && track.kind != TrackKind::GraphLaunches) continue;
    each_span(track, marks.front().start, kAlways, [&](const Span& span) {
      const auto next = std::ranges::upper_bound(marks, span.step, {}, &Span::step);
      if (span.step == 0 || next == marks.begin()) return;
      ++(span.start < (next - 1)->end() ? within : after);
    });
  }
  return after > within;
}

TimeNs arrived_until(const Trace& trace, bool over) {
  const TimeNs steps = reach_of(trace, false), gpu = reach_of(trace, true);
  if (steps == INT64_MIN) return trace.last_time();
  if (gpu == INT64_MIN) return steps;
  if (over) return std::max(steps, gpu);
  return steps - gpu > kLongestLag ? steps : std::min(steps, gpu);
}

void GpuSteps::close(Open& open, TrackId track, SpanKind kind, TimeNs next) {
  if (!open.any) return;
  Span span;
  span.start = open.start;
  span.duration = static_cast<uint64_t>(std::max<TimeNs>(1, std::min(open.end, next) - open.start));
  span.kind = static_cast<uint64_t>(kind);
  span.meaning = static_cast<uint64_t>(Meaning::Other);
  span.name = open.name;
  span.step = number_;
  trace_.append(track, span);
  open = {};
}

void GpuSteps::take(const Trace& from, const Work& work) {
  if (work.step > number_) {
    close(phase_, phases_, SpanKind::Phase, work.start);
    close(step_, steps_, SpanKind::Step, work.start);
    number_ = work.step;
  }
  if (!step_.any) step_ = {work.start, work.end, trace_.intern("step"), true};
  step_.end = std::max(step_.end, work.end);
  if (work.op == kNoOp || work.op >= from.ops.size()) return;
  const NameId name = trace_.intern(from.ops[work.op].phase);
  if (phase_.any && phase_.name != name) close(phase_, phases_, SpanKind::Phase, work.start);
  if (!phase_.any) phase_ = {work.start, work.end, name, true};
  phase_.end = std::max(phase_.end, work.end);
}

void GpuSteps::update(const Trace& from, TimeNs until) {
  if (until <= taken_) return;
  if (trace_.tracks().empty()) {
    steps_ = trace_.track(TrackKind::Steps, "steps", "GPU");
    phases_ = trace_.track(TrackKind::Phases, "phases", "GPU");
  }
  fresh_.clear();
  for (const Track& track : tracks_of_steps(from))
    if (track.kind == TrackKind::Stream || track.kind == TrackKind::GraphLaunches)
      each_span(track, taken_, until, [this](const Span& s) {
        if (s.start >= taken_ && s.step > 0 && is_kernel(s)) fresh_.push_back({s.start, s.end(), s.step, s.op});
      });
  std::ranges::stable_sort(fresh_, {}, &Work::start);
  for (const Work& work : fresh_) take(from, work);
  taken_ = until;
  trace_.evict(kHistoryBytes);
}

void GpuSteps::finish(const Trace& from) {
  update(from, INT64_MAX / 2);
  close(phase_, phases_, SpanKind::Phase, INT64_MAX);
  close(step_, steps_, SpanKind::Step, INT64_MAX);
}

}  // namespace ws::prof
