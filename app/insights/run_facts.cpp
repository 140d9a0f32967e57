#include "app/insights/run_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/timeline/trace_queries.h"
#include "engine/executor.h"
#include "profiling/analysis/occupancy.h"

namespace ws::app {
namespace {

using prof::Meaning;
using prof::SpanKind;
using prof::TrackKind;

constexpr size_t kNewestSteps = 300, kLongRow = 20, kLossesAveraged = 20, kRowsWithOccupancy = 8;
constexpr prof::TimeNs kPauseNs = 200'000;

struct Steps {
  size_t track = 0;
  std::vector<prof::Span> spans;  // oldest first; the last one only ends the one before it
};

// Between two steps of a row lies an evaluation, or a pause: it is no part of a step.
bool broken_between(const prof::Span& before, const prof::Span& after) {
  return after.start - before.end() > std::max<prof::TimeNs>(kPauseNs, 2 * static_cast<prof::TimeNs>(before.duration));
}

// The newest long row of steps without a break; the longest one when all are short.
std::vector<prof::Span> newest_row(const prof::Track& track) {
  std::vector<prof::Span> row, best;
  size_t seen = 0;
  for (auto block = track.blocks.rbegin(); block != track.blocks.rend(); ++block)
    for (auto span = block->spans.rbegin(); span != block->spans.rend(); ++span) {
      if (row.size() >= kNewestSteps || ++seen > 4 * kNewestSteps) return row.size() > best.size() ? row : best;
      if (!row.empty() && broken_between(*span, row.back())) {
        if (row.size() > best.size()) best = row;
        if (best.size() >= kLongRow) return best;
        row.clear();
      }
      row.push_back(*span);
    }
  return row.size() > best.size() ? row : best;
}

Steps newest_steps(const prof::Trace& trace) {
  Steps found;
  for (size_t i = 0; i < trace.tracks().size() && found.spans.empty(); ++i) {
    if (trace.tracks()[i].kind != TrackKind::Steps) continue;
    found.track = i;
    found.spans = newest_row(trace.tracks()[i]);
  }
  std::reverse(found.spans.begin(), found.spans.end());
  return found;
}

prof::Breakdown parts_of(const prof::Trace& trace, const Steps& steps) {
  if (steps.spans.size() < 2) return {};
  prof::Breakdown parts = prof::breakdown(trace, steps.spans.front().start, steps.spans.back().start);
  parts.steps = static_cast<int64_t>(steps.spans.size()) - 1;
  return parts;
}

double driver_calls_per_step(const Run& run) {
  const auto share = [](const AllocatorCalls& calls, int64_t steps) {
    return steps > 0 ? static_cast<double>(calls.device_allocate + calls.device_free) / static_cast<double>(steps) : 0;
  };
  if (run.summary) return share(run.summary->calls, run.summary->steps);
  return run.progress ? share(run.progress->calls, run.progress->step) : 0;
}

// The width of the probabilities; a regression has none.
int64_t classes_of(const CompiledPlan& plan) {
  for (const Op& op : plan.before.ops)
    if (op.kind == OpKind::Softmax && !op.out.empty()) return plan.before.buffer(op.out[0]).cols;
  return 0;
}

void add_losses(RunFacts& facts, const Run& run) {
  if (run.steps.empty()) {
    facts.first_loss = facts.last_loss = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  facts.first_loss = static_cast<double>(run.steps.front().loss);
  const size_t count = std::min(kLossesAveraged, run.steps.size());
  for (size_t i = run.steps.size() - count; i < run.steps.size(); ++i)
    facts.last_loss += static_cast<double>(run.steps[i].loss) / static_cast<double>(count);
  facts.diverged = !std::isfinite(facts.last_loss);
}

void add_kernels(RunFacts& facts, const Run& run, const prof::Breakdown& parts) {
  facts.kernels = prof::kernel_table(run.trace, parts.begin, parts.end);
  uint64_t count = 0;
  for (const prof::KernelRow& row : facts.kernels) count += row.time.count;
  facts.kernels_per_step = static_cast<double>(count) / static_cast<double>(parts.steps);
  const prof::DeviceLimits limits = prof::limits_of_card(run.summary ? run.summary->device : run.device.toStdString());
  for (size_t i = 0; i < std::min(kRowsWithOccupancy, facts.kernels.size()); ++i) {
    const prof::Detail& detail = facts.kernels[i].detail;
    facts.occupancy.push_back(detail.block[0] > 0 ? prof::occupancy_of(detail, limits).share : -1);
  }
}

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

// Calls of the host do not show what a kernel took, and kernels do not show what a call took.
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
    for_each_span(trace.tracks()[i], begin, end, [&](const prof::Span& span) {
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
    for_each_span(trace.tracks()[i], begin, end, [&](const prof::Span& span) {
      if (free_since < span.start && span.start - free_since > best.length) best = {i, span, span.start - free_since};
      free_since =
          free_since == std::numeric_limits<prof::TimeNs>::max() ? span.end() : std::max(free_since, span.end());
      return true;
    });
  }
  return best;
}

}  // namespace

RunSpec spec_now(const Run& run) {
  RunSpec spec = run.spec;
  for (const Change& change : run.changes) set_field(spec, change.key, change.to);
  return spec;
}

bool on_gpu(const Run& run) {
  for (const prof::Track& track : run.trace.tracks())
    if (on_gpu(track) && track.spans > 0) return true;
  if (run.spec.exec.device != Device::Auto) return run.spec.exec.device == Device::Cuda;
  return run.origin == RunOrigin::Live && device_info().cuda;
}

RunFacts facts_of_run(const Run& run) {
  const Steps steps = newest_steps(run.trace);
  const prof::Breakdown parts = parts_of(run.trace, steps);
  RunFacts facts = facts_of(spec_now(run), parts, on_gpu(run));
  if (parts.steps > 0) add_kernels(facts, run, parts);
  facts.allocator_calls_per_step = driver_calls_per_step(run);
  add_losses(facts, run);
  facts.overhead_share = run.overhead_share;
  facts.peak_bytes = run.summary ? run.summary->peak_bytes : run.progress ? run.progress->memory.peak : 0;
  if (run.plan) {
    facts.plan = &*run.plan;
    facts.classes = classes_of(*run.plan);
  }
  return facts;
}

double measured_step_us(const Run& run) {
  const Steps steps = newest_steps(run.trace);
  if (steps.spans.size() < 2) return run.usPerStep();
  return static_cast<double>(steps.spans.back().start - steps.spans.front().start) * 1e-3 /
         static_cast<double>(steps.spans.size() - 1);
}

std::optional<Evidence> evidence_of(const Run& run, Meaning meaning) {
  const Steps steps = newest_steps(run.trace);
  if (steps.spans.size() < 2) return std::nullopt;
  const bool gap = meaning == Meaning::Launch || meaning == Meaning::Idle;
  const prof::TimeNs begin = steps.spans.front().start, end = steps.spans.back().start;
  const Seen seen = gap ? longest_wait(run.trace, begin, end) : longest_span(run.trace, begin, end, meaning);
  if (seen.length < 0) return std::nullopt;
  const auto after = std::upper_bound(steps.spans.begin(), steps.spans.end(), seen.span.start,
                                      [](prof::TimeNs t, const prof::Span& s) { return t < s.start; });
  const prof::Span& step = after == steps.spans.begin() ? *after : *(after - 1);
  return Evidence{seen.track, seen.span, steps.track, step, gap ? seen.length : 0};
}

}  // namespace ws::app
