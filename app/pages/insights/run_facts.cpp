#include "app/pages/insights/run_facts.h"

#include <algorithm>
#include <limits>

#include "app/workspace/compared_live_run.h"
#include "app/workspace/card_limits.h"
#include "app/workspace/run_loss.h"
#include "engine/devices/devices.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {
namespace {

using prof::Meaning;
using prof::SpanKind;
using prof::TrackKind;

bool shows(const prof::Span& span, Meaning meaning) {
  switch (span.span_kind()) {
    case SpanKind::Step:
    case SpanKind::Phase:
    case SpanKind::Overhead:
      return false;
    case SpanKind::Alloc:
    case SpanKind::Free:
      return meaning == Meaning::Allocation;
    case SpanKind::Copy:
    case SpanKind::Memset:
      return meaning == Meaning::Copy;
    default:
      return span.span_meaning() == meaning;
  }
}

// Host calls do not show the time of a kernel, and kernels do not show the time of a call.
bool is_witness(const prof::Track& track, Meaning meaning) {
  const bool call = meaning == Meaning::Allocation || meaning == Meaning::Sync;
  if (track.kind == TrackKind::CpuThread) return true;
  return call ? track.kind == TrackKind::Api : on_gpu(track);
}

struct Seen {
  size_t track = 0;
  prof::Span span;
  prof::TimeNs length = -1;
};

Seen longest_span(const prof::Trace& trace, prof::TimeNs begin, prof::TimeNs end, Meaning meaning) {
  Seen best;
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (!is_witness(trace.tracks()[i], meaning)) continue;
    prof::for_each_span(trace.tracks()[i], begin, end, [&](const prof::Span& span) {
      if (shows(span, meaning) && static_cast<prof::TimeNs>(span.duration) > best.length)
        best = {i, span, static_cast<prof::TimeNs>(span.duration)};
      return true;
    });
  }
  return best;
}

Seen longest_wait(const prof::Trace& trace, prof::TimeNs begin, prof::TimeNs end) {
  Seen best;
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (trace.tracks()[i].kind != TrackKind::Stream && trace.tracks()[i].kind != TrackKind::CpuThread) continue;
    prof::TimeNs free_since = std::numeric_limits<prof::TimeNs>::max();
    prof::for_each_span(trace.tracks()[i], begin, end, [&](const prof::Span& span) {
      if (free_since < span.start && span.start - free_since > best.length) best = {i, span, span.start - free_since};
      free_since =
          free_since == std::numeric_limits<prof::TimeNs>::max() ? span.end() : std::max(free_since, span.end());
      return true;
    });
  }
  return best;
}

}  // namespace

bool on_gpu(const Run& run) {
  if (prof::used_gpu(run.trace)) return true;
  if (run.spec.exec.device != Device::Auto) return run.spec.exec.device == Device::Cuda;
  return run.origin == RunOrigin::Live && device_info().cuda;
}

JudgedRun judged_run(const Run& run) {
  JudgedRun judged{.trace = run.trace, .imported = run.origin == RunOrigin::Imported, .gpu = on_gpu(run)};
  judged.sample = sample_of(run);
  if (!run.hasChoices()) return judged;
  judged.choices = run.spec;
  judged.plan = run.plan ? &*run.plan : nullptr;
  judged.limits = card_limits(run);
  judged.has_losses = !run.steps.empty();
  if (judged.has_losses) judged.first_loss = static_cast<double>(run.steps.front().loss);
  judged.last_loss = mean_of_newest(run.steps, &StepPoint::loss).value;
  judged.driver_calls = run.driverCalls(), judged.peak_bytes = run.peakBytes(), judged.tracing_cost = run.tracing_cost;
  return judged;
}

std::optional<Evidence> evidence_of(const Run& run, Meaning meaning) {
  const prof::StepWindowNs row = sample_of(run).row;
  const prof::Track* marks = first_track(run.marks(), TrackKind::Steps);
  if (!marks || row.begin >= row.end) return std::nullopt;
  const bool gap = meaning == Meaning::Launch || meaning == Meaning::Idle;
  const Seen seen =
      gap ? longest_wait(run.trace, row.begin, row.end) : longest_span(run.trace, row.begin, row.end, meaning);
  if (seen.length < 0) return std::nullopt;
  Evidence evidence{seen.track, seen.span, 0, {}, gap ? seen.length : 0};
  prof::for_each_span(*marks, row.begin, row.end, [&](const prof::Span& step) {
    if (step.start <= seen.span.start || evidence.step.duration == 0) evidence.step = step;
    return step.start <= seen.span.start;
  });
  // The timeline has only the host's step track. It shows the time of the step, wherever the step is marked.
  if (const prof::Track* steps = first_track(run.trace, TrackKind::Steps))
    evidence.step_track = static_cast<size_t>(steps - run.trace.tracks().data());
  return evidence;
}

std::optional<Evidence> evidence_of(const Run& run, const Insight& insight) {
  if (!insight.place) return evidence_of(run, insight.look_at);
  Evidence evidence{insight.place->track, insight.place->span, insight.place->track, insight.place->span, 0};
  evidence.step.start = insight.around.begin;
  evidence.step.duration = static_cast<uint64_t>(insight.around.end - insight.around.begin);
  return evidence;
}

}  // namespace ws::app
