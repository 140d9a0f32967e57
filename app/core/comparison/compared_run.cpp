#include "app/core/comparison/compared_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/core/runs/change_marks.h"
#include "app/core/runs/data_shape.h"
#include "profiling/analysis/activity.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/analysis/waterfall.h"
#include "profiling/base/json_input.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

Traced traced_as(const ComparedRun& run, const prof::Trace& trace) {
  if (trace.span_count() == 0) return Traced::No;
  if (!run.sample.work.empty()) return Traced::Kernels;
  using enum prof::PartKind;
  const bool phases = std::ranges::any_of(prof::parts_of(run.sample.parts), [](const prof::BreakdownPart& part) {
    return part.id.kind == HostForward || part.id.kind == HostBackward || part.id.kind == HostOptimizer || part.id.kind == HostOther;
  });
  return phases && run.device.empty() ? Traced::Phases : Traced::StepsOnly;
}

// The longest part without a pause in tracing counts as one step.
void take_as_one_step(ComparedRun& run, const prof::Trace& trace) {
  const prof::Breakdown whole = prof::breakdown(trace);
  const prof::StepWindowNs part = prof::longest_traced(trace, {whole.begin, whole.end});
  prof::StepSample& sample = run.sample;
  prof::take_stretch(sample, trace, part, part.end - part.begin == whole.wall() ? whole.steps : 1);
  for (const prof::KernelRow& row : prof::work_table(trace, part.begin, part.end)) {
    prof::WorkUse& use = sample.work[row.kind == prof::SpanKind::GraphRun ? prof::kWholeGraphs : row.key];
    use.count += static_cast<double>(row.time.count), use.us += static_cast<double>(row.time.total) * 1e-3;
  }
  run.one_step = true;
}

// Takes the launch delay, and how much copying overlaps with kernels.
void take_gpu_figures(ComparedRun& run, const prof::Trace& trace) {
  if (run.sample.row.end <= run.sample.row.begin) return;
  const auto [late, activity, of] = prof::gpu_figures(trace, run.sample.row, run.sample.row_steps);
  if (late.count > 0) run.launch_delay_us = static_cast<double>(late.median) * 1e-3;
  if (activity.copies > 0 && activity.kernels > 0) run.hidden_copies = 100 * activity.hidden_copies();
}

std::vector<std::string> command_of(const prof::RunSummary& summary) {
  std::vector<std::string> words;
  const auto list = parse_json_or_null(summary.said(prof::kCommandKey));
  for (const auto& word : list)
    if (word.is_string()) words.push_back(word);
  return words;
}

}  // namespace

double ComparedRun::samples_per_s() const { return spec ? rows_of_a_step(*spec) * 1e6 / time.us.value : kUnknown; }

bool ComparedRun::machine_busy() const { return !imported && prof::varies_widely(time); }

double ComparedRun::busy_percent() const {
  if (!sample.traced() || sample.parts.wall() <= 0) return kUnknown;
  return 100.0 * sample.busy_share();
}

bool ComparedRun::has_accuracy() const { return !spec || spec->model.loss != LossKind::MeanSquared; }

void take_trace(ComparedRun& run, const prof::StepsOfRun& steps) {
  const prof::Trace& trace = steps.trace();
  run.sample = steps.sample();
  if (!run.sample.traced() && trace.span_count() > 0 && (run.imported || !run.spec)) take_as_one_step(run, trace);
  run.rank_of_steps = prof::rank_of_steps(trace);
  run.traced = traced_as(run, trace);
  if (run.sample.traced()) run.mean_step_us = run.sample.mean_step_us();
  run.lost_records = lost_records(trace.losses);
  take_gpu_figures(run, trace);
}

void take_ranks(ComparedRun& run, const prof::RankReport& report) {
  run.several_ranks = report.any();
  if (!report.any() || report.collectives.empty()) return;
  if (report.step_us > 0) run.mean_step_us = report.step_us;
  run.rank_wait_us = report.longest_wait_us, run.exposed_us = report.longest_exposed_us;
  if (const double rate = report.collectives.front().bus_gb_s; rate > 0) run.bus_gb_s = rate;
}

prof::StepsOfRun steps_of(const prof::RunData& data, const ComparedRun& run) {
  prof::StepFacts facts{.per_epoch = prof::steps_per_epoch(data.summary, data.evaluations), .since = prof::steady_since(data.marks), .clock_error = prof::clock_error_ns(data.summary), .run_steps = data.summary.steps};
  if (const RunSpec* ours = run.imported ? nullptr : run.choices()) facts.host_ahead = host_runs_ahead(*ours);
  return prof::StepsOfRun::of(data.trace, facts);
}

ComparedRun compared_run(const prof::RunData& data) { return compared_run(data, prof::rank_report(data)); }

ComparedRun compared_run(const prof::RunData& data, const prof::RankReport& ranks) {
  const prof::RunSummary& s = data.summary;
  ComparedRun run;
  run.name = s.name, run.device = s.device, run.steps = s.steps;
  run.spec = spec_of(s);
  if (run.spec) run.spec = with_changes(*run.spec, data.marks);
  run.imported = s.origin != "run";
  run.program = program_of(command_of(s));
  run.python_level = s.said(prof::kPythonLevelKey);
  run.whole_run_us = s.us_per_step;
  run.wall_s = s.wall_s > 0 ? s.wall_s : ComparedRun::kUnknown;
  if (const uint64_t peak = prof::peak_memory(data); peak > 0) run.peak_bytes = static_cast<double>(peak);
  run.driver_calls = prof::driver_calls_per_step(s);
  run.tracing_cost = s.tracing_cost;
  if (!data.metrics.empty()) run.first_loss = data.metrics.front().loss;
  run.evaluations = data.evaluations;
  take_trace(run, steps_of(data, run));
  run.stalls = prof::stalls_of_run(data.trace);
  run.time = prof::step_time(data, run.sample);
  prof::scale_median(run.sample, run.time.us.value);
  take_ranks(run, ranks);
  return run;
}

std::string program_of(const std::vector<std::string>& command) {
  const auto file_name = [](const std::string& path) { return path.substr(path.find_last_of('/') + 1); };
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size()) return command[i + 1];
    if (command[i].ends_with(".py")) return file_name(command[i]);
  }
  return command.empty() ? "" : file_name(command[0]);
}

std::string steps_text(const std::vector<NamedRun>& runs) {
  const auto rank_of = [](const ComparedRun& run) {
    return run.several_ranks && run.rank_of_steps >= 0 ? "rank " + std::to_string(run.rank_of_steps) : "";
  };
  std::vector<NamedRun> sampled;
  for (const NamedRun& one : runs)
    if (one.run->sample.traced()) sampled.push_back(one);
  if (sampled.empty()) return "";
  if (runs.size() == 1) {
    if (runs[0].run->one_step) return "Of the whole trace";
    const std::string rank = rank_of(*runs[0].run);
    return "Median of " + prof::which_steps(runs[0].run->sample.which) + (rank.empty() ? "" : " of " + rank);
  }
  std::string text;
  for (const auto& [name, run] : sampled) {
    const std::string rank = rank_of(*run);
    text += (text.empty() ? "Medians of " : ", ") +
            (run->one_step ? "the whole trace" : prof::which_steps(run->sample.which)) + " of " + name + (rank.empty() ? "" : " (" + rank + ")");
  }
  return text;
}

std::optional<RunSpec> spec_of(const prof::RunSummary& file) {
  if (file.origin != "run" && !file.origin.starts_with("PyTorch")) return std::nullopt;
  const auto object = parse_json_or_null(file.spec);
  if (!object.is_object()) return std::nullopt;
  try {
    return spec_from_json(object);
  } catch (const Failure&) {  // from a newer version
    return std::nullopt;
  }
}

std::string lost_records(const prof::Losses& losses) {
  const std::string wrong = prof::losses_text(losses);
  if (losses.dropped_records == 0) return wrong;
  return std::to_string(losses.dropped_records) + " dropped" + (wrong.empty() ? "" : ", " + wrong);
}

}  // namespace ws::app
