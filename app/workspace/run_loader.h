// Fills a Run from a run file.
#pragma once
#include <QString>
#include <memory>

#include "app/workspace/run.h"

namespace ws::app {

// Reads what the list shows. The losses and the trace stay in the file. Throws Failure.
void read_summary(Run& run, const QString& path);

QStringList command_of(const prof::RunSummary& summary);  // command of a recorded program; empty if unknown

// Reads everything else. Safe on any thread: it touches no Run.
struct RunDetails {
  std::vector<StepPoint> steps;
  std::vector<EvalPoint> evals;
  std::vector<MeterPoint> meters;
  std::vector<Change> changes;
  std::optional<CompiledPlan> plan;  // plan of the first choices; nullopt if the data shape is unknown
  prof::Trace trace;
  prof::GpuSteps gpu_steps;
  StepSplit split;
  prof::AllocatorHistory allocator_calls;
  std::vector<LogLine> log;
  std::shared_ptr<prof::RunFileReader> reader;
  double steps_per_epoch = 0;
  int64_t run_steps = 0;
  int64_t steady_since = 0;
  prof::StepTime step_time;
};
std::unique_ptr<RunDetails> read_details(const QString& path);  // throws Failure
void give_details(Run& run, RunDetails&& details);              // on the window's thread

std::string marks_text(const std::vector<TimeMark>& marks);
std::vector<TimeMark> marks_from(const std::string& text);  // leaves out what cannot be parsed

}  // namespace ws::app
