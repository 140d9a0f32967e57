#include "profiling/formats/finish_recording.h"

#include "profiling/formats/convert.h"
#include "profiling/formats/guess_steps.h"

namespace ws::prof {

namespace {

bool has_steps(const Trace& trace) {
  return std::ranges::any_of(trace.tracks(), [](const Track& t) { return t.kind == TrackKind::Steps && t.spans > 0; });
}

std::map<TraceBuilder::Row, std::vector<Span>> rows_of(const Trace& trace) {
  std::map<TraceBuilder::Row, std::vector<Span>> rows;
  for (const Track& track : trace.tracks()) {
    auto& row = rows[{track.kind, track.name, track.group}];
    for (const SpanBlock& block : track.blocks) row.insert(row.end(), block.spans.begin(), block.spans.end());
  }
  return rows;
}

void find_steps_of(RunData& run) {
  const GuessedSteps found = guess_steps(run.trace, rows_of(run.trace));
  if (found.steps.empty()) return;
  const TrackId track = run.trace.track(TrackKind::Steps, "steps", "CPU");
  for (Span step : found.steps) {
    step.flags = found.on_gpu ? kEstimated : 0;
    run.trace.append(track, step);
  }
  const auto count = static_cast<double>(found.steps.size());
  uint64_t calls = 0;
  for (const StepAllocations& c : run.allocations)
    calls += c.allocations + c.frees + c.async_allocations + c.async_frees;
  run.summary.steps = static_cast<int64_t>(found.steps.size());
  run.summary.us_per_step = static_cast<double>(found.steps.back().end() - found.steps.front().start) * 1e-3 / count;
  run.summary.allocator_calls_per_step = static_cast<double>(calls) / count;
  run.summary.extra["steps_from"] = found.on_gpu ? "the repeating pattern of kernels" : "NVTX ranges";
}

}  // namespace

bool finish_recording(const std::string& path, const std::string& why) {
  if (read_run_summary(path).status != "running") return false;
  RunData run = import_run(path);
  if (!has_steps(run.trace)) find_steps_of(run);
  run.summary.status = "stopped";
  run.summary.extra["message"] = why;
  run.summary.wall_s = static_cast<double>(run.trace.last_time()) * 1e-9;
  export_run(run, path);
  return true;
}

}  // namespace ws::prof
