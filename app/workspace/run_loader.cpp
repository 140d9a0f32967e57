#include "app/workspace/run_loader.h"

#include <QFileInfo>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/core/runs/change_marks.h"
#include "app/core/runs/data_shape.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/pace.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/waterfall.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/base/stop_when.h"
#include "profiling/recording/record_keys.h"

namespace ws::app {
namespace {

RunStatus status_of(const std::string& text) {
  for (RunStatus status :
       {RunStatus::Finished, RunStatus::Stopped, RunStatus::Failed, RunStatus::TargetReached, RunStatus::TimeUp})
    if (to_string(status) == text) return status;
  return RunStatus::Stopped;  // "running": the program was killed
}

// True for our own choices. Choices of another program's trace have no meaning here, but PyTorch got ours.
bool has_choices(const prof::RunSummary& file) {
  return !file.spec.empty() && (file.origin == "run" || file.origin.starts_with("PyTorch"));
}

Summary summary_of(const prof::RunSummary& file, const RunSpec& spec, bool elsewhere) {
  Summary s;
  s.status = status_of(file.status);
  if (file.status == "running")
    s.message = elsewhere ? "Trains in another window. The part written so far is shown."
                          : "The program ended before the run. The written part is shown.";
  if (const std::string message = file.said("message"); !message.empty()) s.message = message;
  s.steps = file.steps;
  s.wall_s = file.wall_s;
  s.us_per_step = file.us_per_step;
  s.final_train_loss = file.train_loss;
  s.test_loss = file.test_loss;
  s.test_accuracy = file.final_accuracy;
  s.peak_bytes = static_cast<int64_t>(file.peak_bytes);
  s.device = file.device;
  s.spec = spec;
  if (const double calls = prof::driver_calls_per_step(file); calls > 0)
    s.calls.device_allocate = std::llround(calls * static_cast<double>(file.steps));
  return s;
}

void read_curves(prof::RunFileReader& reader, RunDetails& d) {
  const auto evaluations = reader.evaluations();
  d.steps_per_epoch = prof::steps_per_epoch(reader.summary(), evaluations), d.run_steps = reader.summary().steps;
  for (const prof::Evaluation& e : evaluations)
    d.evals.push_back({static_cast<double>(e.step), e.wall_s, e.epoch, e.test_loss, e.test_accuracy});
  for (const prof::Metric& m : reader.metrics()) {
    const auto step = static_cast<double>(m.step);
    d.steps.push_back({step, m.wall_s, d.steps_per_epoch > 0 ? step / d.steps_per_epoch : 0, static_cast<float>(m.loss),
                       static_cast<float>(m.accuracy)});
  }
  const auto marks = reader.marks();
  d.steady_since = prof::steady_since(marks);
  for (const prof::ChangeMark& mark : marks)
    d.changes.push_back(change_of(mark).value_or(Change{mark.step, mark.text, {}, {}}));
}

prof::StepsOfRun steps_of(const RunDetails& d) {
  return {d.gpu_steps.empty() ? d.trace : d.gpu_steps.trace(), d.trace, {.per_epoch = d.steps_per_epoch, .since = d.steady_since, .run_steps = d.run_steps}};
}

// Takes the maximum memory between two meter points, from the recorded allocations.
void add_memory(RunDetails& d) {
  prof::MemoryCurves curves;
  curves.update(d.trace);
  const prof::Trace& marks = steps_of(d).marks();
  const auto time_of = [&](const MeterPoint& meter) {  // the trace clock began before the clock of the losses
    const prof::Span* step = nearest_step(marks, static_cast<int64_t>(meter.step));
    return step ? step->end() : static_cast<prof::TimeNs>(meter.wall_s * 1e9);
  };
  for (const auto& [track, value] :
       {std::pair{&curves.used(), &MeterPoint::used}, std::pair{&curves.reserved(), &MeterPoint::reserved}}) {
    auto point = track->points.begin();
    double held = 0;
    for (MeterPoint& meter : d.meters) {
      double most = held;
      const prof::TimeNs end = time_of(meter);
      for (; point != track->points.end() && point->time <= end; ++point)
        held = point->value, most = std::max(most, held);
      meter.*value = most;
    }
  }
}

void read_windows(prof::RunFileReader& reader, RunDetails& d) {
  const auto windows = reader.step_windows();
  for (const prof::StepWindow& w : windows) {
    if (w.steps <= 0 || w.end <= w.begin) continue;
    const auto steps = static_cast<double>(w.steps);
    d.meters.push_back({static_cast<double>(w.first_step + w.steps), static_cast<double>(w.end) * 1e-9,
                        static_cast<double>(w.allocations) / steps, static_cast<double>(w.frees) / steps, 0, 0, 0});
  }
  d.split = split_of(steps_of(d), {.until = d.trace.last_time()}, d.step_time.us.value);
  if (d.split.steps > 0 || windows.empty() || windows.back().steps <= 0) return;
  const prof::StepWindow& last = windows.back();
  d.split = split_from(last.times, last.end - last.begin, last.steps);
}

// Reads the stored step time. A run of an older version, or of another program, has none: compute it.
void read_step_time(prof::RunFileReader& reader, RunDetails& d) {
  prof::RunData run;
  run.summary = reader.summary();
  if (!run.summary.step_time.known()) run.metrics = reader.metrics(), run.marks = reader.marks();
  const prof::StepFacts facts{.per_epoch = d.steps_per_epoch, .since = d.steady_since, .run_steps = d.run_steps};
  const prof::StepsOfRun steps = d.gpu_steps.empty() ? prof::StepsOfRun::of(d.trace, facts) : steps_of(d);
  d.step_time = prof::step_time(run, steps.sample({.lengths_only = true}));
}

constexpr int kLastLetter = 18277;  // "ZZZ"
constexpr size_t kFewWindows = 12;

// Computes samples per second from the windows of the trace. If there are too few for a curve, it uses the times of
// the losses and the known allocations.
void add_throughput(const prof::RunSummary& file, RunDetails& d) {
  const auto batch = static_cast<double>(has_choices(file) ? parse_spec(file.spec).train.batch : 0);
  if (d.meters.size() >= kFewWindows || d.steps.size() < kFewWindows) {
    double step = 0, wall = 0;
    for (MeterPoint& m : d.meters) {
      if (m.wall_s > wall) m.samples_per_s = batch * (m.step - step) / (m.wall_s - wall);
      step = m.step, wall = m.wall_s;
    }
    return;
  }
  const double each = file.allocator_calls_per_step / 2;  // what a step allocates, it also frees
  const MeterPoint known = d.meters.empty() ? MeterPoint{0, 0, each, each, 0, 0, 0} : d.meters.back();
  d.meters.clear();
  const StepPoint &first = d.steps.front(), &last = d.steps.back();
  const double stride = (last.step - first.step) / 100,
               mean_s = (last.wall_s - first.wall_s) / std::max(1.0, last.step - first.step);
  const auto pace = [&d](size_t i) { return prof::Pace{d.steps[i].step, d.steps[i].wall_s}; };
  std::optional<prof::Pace> before;
  for (size_t i = 0; i < d.steps.size(); ++i) {
    const prof::Pace now = pace(i);
    if (before && (now.step - before->step < stride || now.wall_s <= before->wall_s)) continue;
    // If losses arrived together, the last one shows the progress of the run.
    if (i + 1 < d.steps.size() && prof::seen_together(now, pace(i + 1), mean_s)) continue;
    if (before)
      d.meters.push_back({now.step, now.wall_s, known.allocate, known.free,
                          batch * (now.step - before->step) / (now.wall_s - before->wall_s), 0, 0});
    before = now;
  }
}

// Uses the spans in memory. For a very long run they begin where its history in memory begins.
void read_choices(const prof::RunSummary& file, RunDetails& d) {
  if (file.origin != "run" || file.spec.empty()) return;
  const RunSpec spec = parse_spec(file.spec);
  if (host_runs_ahead(spec)) d.gpu_steps.finish(d.trace);
  d.plan = plan_before_loading(spec);
}

}  // namespace

std::string marks_text(const std::vector<TimeMark>& marks) {
  nlohmann::json list = nlohmann::json::array();
  for (const TimeMark& mark : marks) list.push_back({{"ns", mark.time}, {"note", mark.note.toStdString()}});
  return list.dump();
}

std::vector<TimeMark> marks_from(const std::string& text) {
  std::vector<TimeMark> marks;
  const auto list = parse_json_or_null(text);
  if (!list.is_array()) return marks;
  for (const auto& entry : list)
    if (entry.is_object() && entry.contains("ns") && entry["ns"].is_number_integer())
      marks.push_back({entry["ns"].get<prof::TimeNs>(), entry.contains("note") && entry["note"].is_string()
                                                            ? QString::fromStdString(entry["note"].get<std::string>())
                                                            : QString()});
  return marks;
}

QStringList command_of(const prof::RunSummary& summary) {
  const auto said = summary.extra.find(prof::kCommandKey);
  const auto list = parse_json_or_null(said == summary.extra.end() ? std::string() : said->second);
  QStringList words;
  if (list.is_array())
    for (const auto& word : list)
      if (word.is_string()) words << QString::fromStdString(word.get<std::string>());
  return words;
}

void read_summary(Run& run, const QString& path) {
  const prof::RunSummary file = prof::read_run_summary(path.toStdString());
  run.path = QFileInfo(path).absoluteFilePath();
  run.id = QFileInfo(path).completeBaseName();
  run.title = QString::fromStdString(file.name);
  run.device = QString::fromStdString(file.device);
  run.note = QString::fromStdString(file.notes);
  run.created = QDateTime::fromString(QString::fromStdString(file.created), Qt::ISODate).toLocalTime();
  run.tags.clear();
  for (const std::string& tag : file.tags) run.tags << QString::fromStdString(tag);
  run.shipped = is_shipped(run.path);
  run.elsewhere = file.status == "running" && !owner_of(path.toStdString()).empty();
  run.unfinished = file.status == "running" && !run.elsewhere;
  run.origin = file.origin == "run" ? RunOrigin::File : RunOrigin::Imported;
  run.lab = file.origin == "lab";
  run.command = command_of(file);
  run.record_level = QString::fromStdString(file.said(prof::kPythonLevelKey));
  run.record_folder = QString::fromStdString(file.said(prof::kFolderKey));
  run.loaded = false;
  run.takeAccount(file);
  if (const auto letter = file.extra.find("letter"); letter != file.extra.end() && run.letter < 0)
    run.letter = std::clamp(std::atoi(letter->second.c_str()), 0, kLastLetter);
  if (const std::string said = file.said("counters"); !said.empty()) run.counters_note = QString::fromStdString(said);
  run.counters_refused = file.extra.contains("counters_refused");
  run.xray_note = QString::fromStdString(file.said(prof::kXrayKey));
  if (const auto marks = file.extra.find("time_marks"); marks != file.extra.end())
    run.time_marks = marks_from(marks->second);
  if (has_choices(file)) run.spec = parse_spec(file.spec);
  run.summary = summary_of(file, run.spec, run.elsewhere);
  if (run.title.isEmpty()) run.title = QString::fromStdString(run_name(run.spec));
}

std::unique_ptr<RunDetails> read_details(const QString& path) {
  auto d = std::make_unique<RunDetails>();
  d->reader = std::make_shared<prof::RunFileReader>(path.toStdString());
  read_curves(*d->reader, *d);
  d->trace = d->reader->newest_trace();
  end_if_stopped();
  read_choices(d->reader->summary(), *d);
  end_if_stopped();
  read_step_time(*d->reader, *d);
  end_if_stopped();
  read_windows(*d->reader, *d);
  end_if_stopped();
  add_throughput(d->reader->summary(), *d);
  add_memory(*d);
  d->allocator_calls.take(d->reader->allocations());
  for (const std::string& problem : d->reader->problems()) d->log.push_back({QString::fromStdString(problem)});
  return d;
}

void give_details(Run& run, RunDetails&& d) {
  run.steps = std::move(d.steps);
  run.evals = std::move(d.evals);
  run.meters = std::move(d.meters);
  run.changes.clear();
  for (const Change& change : d.changes) run.takeChange(change);
  if (d.plan) run.plan = std::move(d.plan);
  run.trace = std::move(d.trace);
  run.takeGpuSteps(std::move(d.gpu_steps));
  run.split = std::move(d.split);
  run.allocator_calls = std::move(d.allocator_calls);
  run.log.insert(run.log.end(), d.log.begin(), d.log.end());
  run.reader = std::move(d.reader);
  run.setStepsPerEpoch(d.steps_per_epoch);
  run.setSteadySince(d.steady_since);
  run.step_time = d.step_time;
  run.loaded = true;
  run.announce();
}

}  // namespace ws::app
