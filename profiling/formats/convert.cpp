#include "profiling/formats/convert.h"

#include <filesystem>
#include <fstream>

#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/step_time.h"
#include "profiling/base/failure.h"
#include "profiling/formats/chrome_trace.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/formats/memory_snapshot.h"
#include "profiling/formats/nsys_sqlite.h"
#include "profiling/formats/nsys_tables.h"
#include "profiling/formats/perfetto_import.h"
#include "profiling/formats/scalars.h"
#include "profiling/base/whole_file.h"
#include "profiling/run_file/run_file.h"

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
  return run;
}

// Computes the step time once, for runs of other programs that do not store it.
RunSummary with_step_time(const RunData& run) {
  RunSummary summary = run.summary;
  if (!summary.step_time.known()) {
    const SampleRange range{.since = steady_since(run.marks), .lengths_only = true};
    summary.step_time = step_time(run, sample_steps(run.trace, steps_per_epoch(run.summary, run.evaluations), range));
  }
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

bool is_events_file(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.find("tfevents") != name.npos || std::filesystem::is_directory(path);
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

void export_stacks(const RunData& run, const std::string& path, const std::string& text) {
  if (host_stacks(run.trace).empty()) throw Failure("The run has no stacks of the host: it was not recorded from Python.");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Failure("Cannot write " + path + ": the disk may be full.");
}

void export_to(const RunData& run, const std::string& path) {
  if (is_events_file(path)) return export_tensorboard(run, path);
  if (path.ends_with(".speedscope.json"))
    return export_stacks(run, path, speedscope_json(host_stacks(run.trace), run.summary.name));
  if (path.ends_with(".collapsed")) return export_stacks(run, path, collapsed_text(host_stacks(run.trace)));
  if (path.ends_with(".json") || path.ends_with(".json.gz")) return export_chrome(run, path);
  if (path.ends_with(".scalars.csv")) return export_scalars_csv(run, path);
  if (path.ends_with(".csv")) return export_nsys_table(run, path, nsys_report_of(path));
  if (path.ends_with(".wsrun")) return export_run_file(run, path);
  if (path.ends_with(".sqlite") || path.ends_with(".db")) return export_nsys(run, path);
  throw Failure(path +
                " has no known ending: .wsrun, .json, .json.gz, .sqlite, .csv, .scalars.csv, .tfevents, "
                ".speedscope.json and .collapsed can be written.");
}

}  // namespace

void export_run(const RunData& run, const std::string& path) {
  if (std::filesystem::is_directory(path) && is_events_file(path)) return export_tensorboard(run, path);
  write_whole_file(path, [&](const std::string& part) { export_to(run, part); });
}

void finish_run_file(RunFileWriter& writer, const RunData& run) {
  add_rows(writer, run);
  writer.set_summary(run.summary);
  writer.finish();
}

std::vector<std::string> convert(const std::vector<std::string>& from, const std::string& to) {
  for (const std::string& source : from) {
    std::error_code ignored;
    if (std::filesystem::equivalent(source, to, ignored))
      throw Failure("The result would replace its source, " + source + ".");
  }
  const RunData run = import_ranks(from);
  export_run(run, to);
  return run.problems;
}

}  // namespace ws::prof
