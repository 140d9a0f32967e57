#include "profiling/formats/convert.h"

#include <filesystem>

#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/formats/scalars.h"
#include "profiling/base/whole_file.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

RunData import_run_file(const std::string& path) {
  RunFileReader reader(path);
  RunData run;
  run.summary = reader.summary();
  run.metrics = reader.metrics();
  run.evaluations = reader.evaluations();
  run.marks = reader.marks();
  run.step_windows = reader.step_windows();
  run.allocations = reader.allocations();
  run.trace = reader.trace();
  reader.fill(run.trace);
  run.problems = reader.problems();
  if (const std::string owner = owner_of(path); !owner.empty())
    run.problems.push_back("still being written by process " + owner + ", so only what it has so far was read.");
  return run;
}

// Computes the step time once, for runs of other programs that do not store it.
RunSummary with_step_time(const RunData& run) {
  RunSummary summary = run.summary;
  if (!summary.step_time.known()) summary.step_time = step_time(run, StepsOfRun::of(run).sample({.lengths_only = true}));
  return summary;
}

void add_rows(RunFileWriter& writer, const RunData& run) {
  for (const Metric& metric : run.metrics) writer.add(metric);
  for (const Evaluation& evaluation : run.evaluations) writer.add(evaluation);
  for (const ChangeMark& mark : run.marks) writer.add(mark);
  for (const StepWindow& window : run.step_windows) writer.add(window);
  TraceBatch counted;
  counted.allocations = run.allocations;
  writer.add(std::move(counted));
}

void export_run_file(const RunData& run, const std::string& path) {
  RunFileWriter writer(path, with_step_time(run));
  add_rows(writer, run);
  writer.add(run.trace);
  writer.finish();
}

}  // namespace

RunData import_run(const std::string& path) {
  if (!std::filesystem::exists(path)) throw Failure("There is no file " + path + ".");
  if (path.ends_with(".json") || path.ends_with(".json.gz") || path.ends_with(".gz")) return import_chrome(path);
  if (path.ends_with(".csv")) return import_scalars_csv(path);
  if (path.ends_with(".wsrun")) return import_run_file(path);
  if (path.ends_with(".sqlite") || path.ends_with(".db")) return import_nsys(path);
  if (path.ends_with(".pickle") || path.ends_with(".pkl")) return import_memory_snapshot(path);
  if (path.ends_with(".perfetto-trace") || path.ends_with(".pftrace")) return import_perfetto(path);
  if (path.ends_with(".nsys-rep")) throw Failure("Export " + path + " first: nsys export --type sqlite.");
  std::string endings;
  for (const std::string_view ending : kReadEndings) endings += (endings.empty() ? "" : ", ") + std::string(ending);
  throw Failure(path + " has no known ending. These can be read: " + endings + ".");
}

namespace {

// The sampled stacks of the host, and those that launched kernels: of Python and at level lines.
std::vector<std::pair<std::string, HostStacks>> stacks_of_run(const RunData& run) {
  std::vector<std::pair<std::string, HostStacks>> stacks;
  if (HostStacks host = host_stacks(run.trace); !host.empty()) stacks.emplace_back("host", std::move(host));
  if (has_launch_stacks(run.trace)) {
    stacks.emplace_back(used_gpu(run.trace) ? "kernels by launching stack" : "ops by stack", launch_stacks(run.trace, TimeRange{-kAlways, kAlways}));
  }
  if (stacks.empty()) throw Failure("The run has no stacks: record a Python program at level modules or above.");
  return stacks;
}

void write_text(const std::string& path, const std::string& text) {
  SyncedFile file(path);
  file.write(text);
  file.close();
}

void export_to(const RunData& run, const std::string& path) {
  if (path.ends_with(".speedscope.json")) return write_text(path, speedscope_json(stacks_of_run(run)));
  if (path.ends_with(".collapsed")) return write_text(path, collapsed_text(stacks_of_run(run).front().second));
  if (path.ends_with(".json") || path.ends_with(".json.gz")) return export_chrome(run, path);
  if (path.ends_with(".wsrun")) return export_run_file(run, path);
  throw Failure(path + " has no known ending: .wsrun, .json, .json.gz, .speedscope.json and .collapsed can be written.");
}

}  // namespace

void export_run(const RunData& run, const std::string& path, const std::optional<FoundFile>& found) {
  if (path.ends_with(".wsrun")) check_run_file(path);
  write_whole_file(path, [&](const std::string& part) { export_to(run, part); }, found);
}

void finish_run_file(RunFileWriter& writer, const RunData& run) {
  add_rows(writer, run);
  writer.set_summary(run.summary);
  writer.finish();
}

std::vector<std::string> convert(const std::vector<std::string>& from, const std::string& to) {
  const std::vector<std::string> files = with_files_of_folders(from);
  for (const std::string& source : files) {
    std::error_code ignored;
    if (std::filesystem::equivalent(source, to, ignored))
      throw Failure("The result would replace its source, " + source + ".");
  }
  if (to.ends_with(".wsrun")) check_run_file(to);  // before the work
  RunData run = import_ranks(files);
  if (files.size() > 1) keep_rank_notes(run);
  export_run(run, to);
  return run.problems;
}

}  // namespace ws::prof
