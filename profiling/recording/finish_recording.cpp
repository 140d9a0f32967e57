#include "profiling/recording/finish_recording.h"

#include <algorithm>
#include <map>

#include "profiling/analysis/step_finder.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/whole_file.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

std::map<int, FoundSteps> steps_of(const RunData& run) {
  StepFinders finder;
  std::vector<std::string> names;
  for (size_t i = 0; i < run.trace.name_count(); ++i) names.push_back(run.trace.name(static_cast<NameId>(i)));
  for (const StepAllocations& calls : run.allocations) finder.take(calls);
  for (const Track& track : run.trace.tracks())
    for (const SpanBlock& block : track.blocks)
      finder.take(track.rank, track.kind, track.group + " " + track.name, block.spans, names);
  return finder.find();
}

void find_steps_of(RunData& run) {
  const auto by_rank = steps_of(run);
  if (by_rank.empty()) return;
  for (const auto& [rank, steps] : by_rank)
    if (!steps.marked) run.trace.append(run.trace.track(TrackKind::Steps, "steps", "CPU", 0, rank), steps.spans(run.trace.intern("step")));
  const FoundSteps& found = by_rank.begin()->second;
  run.summary.steps = static_cast<int64_t>(found.steps.size());
  run.summary.us_per_step = found.us_each;
  run.summary.step_time = step_time(found, used_gpu(run.trace));
  run.summary.allocator_calls_per_step = found.allocator_calls_each;
  run.summary.extra.try_emplace("steps_from", found.from());
}

}  // namespace

bool finish_recording(const std::string& path, const std::string& why) {
  const auto file = FileIdentity::of(path);
  if (read_run_summary(path).status != "running") return false;
  RunData run = import_run(path);
  find_steps_of(run);
  run.summary.status = "stopped";
  run.summary.extra["message"] = why;
  run.summary.wall_s = static_cast<double>(run.trace.last_time()) * 1e-9;
  if (!run.summary.step_time.known()) run.summary.step_time = step_time(run, StepsOfRun::of(run).sample({.lengths_only = true}));
  write_whole_file(path, [&](const std::string& part) {
    RunFileWriter writer(part, run.summary);
    writer.add(run.trace);
    finish_run_file(writer, run);
    if (FileIdentity::of(path) != file) throw Failure(path + " was replaced by another file while it was being completed.");
  });
  return true;
}

}  // namespace ws::prof
