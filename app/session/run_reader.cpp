#include "app/session/run_reader.h"

#include <QFileInfo>
#include <cmath>

namespace ws::app {
namespace {

constexpr size_t kBlocksAtOnce = 1000;  // a million spans; the rest is read when looked at

RunStatus status_of(const std::string& text) {
  for (RunStatus status :
       {RunStatus::Finished, RunStatus::Stopped, RunStatus::Failed, RunStatus::TargetReached, RunStatus::TimeUp})
    if (to_string(status) == text) return status;
  return RunStatus::Stopped;  // "running": the program was killed
}

Summary summary_of(const prof::RunSummary& file, const RunSpec& spec) {
  Summary s;
  s.status = status_of(file.status);
  if (file.status == "running") s.message = "The program ended before the run did; what was written is shown.";
  s.steps = file.steps;
  s.wall_s = file.wall_s;
  s.us_per_step = file.us_per_step;
  s.final_train_loss = file.final_loss;
  s.test_accuracy = file.final_accuracy;
  s.peak_bytes = static_cast<int64_t>(file.peak_bytes);
  s.device = file.device;
  s.spec = spec;
  if (file.us_per_step > 0) s.samples_per_s = static_cast<double>(spec.train.batch) * 1e6 / file.us_per_step;
  return s;
}

void read_curves(prof::RunFileReader& reader, RunDetails& d) {
  for (const prof::Evaluation& e : reader.evaluations()) {
    d.evals.push_back({static_cast<double>(e.step), e.wall_s, e.epoch, e.test_loss, e.test_accuracy});
    if (e.epoch > 0) d.steps_per_epoch = static_cast<double>(e.step) / e.epoch;
  }
  for (const prof::Metric& m : reader.metrics()) {
    const auto step = static_cast<double>(m.step);
    d.steps.push_back({step, m.wall_s, d.steps_per_epoch > 0 ? step / d.steps_per_epoch : 0, static_cast<float>(m.loss),
                       static_cast<float>(m.accuracy)});
  }
  for (const prof::ChangeMark& mark : reader.marks()) d.changes.push_back({mark.step, mark.text, {}, {}});
}

void read_windows(prof::RunFileReader& reader, RunDetails& d) {
  const auto windows = reader.step_windows();
  for (const prof::StepWindow& w : windows) {
    if (w.steps <= 0 || w.end <= w.begin) continue;
    const auto steps = static_cast<double>(w.steps);
    d.meters.push_back({static_cast<double>(w.first_step + w.steps), static_cast<double>(w.end) * 1e-9,
                        static_cast<double>(w.allocations) / steps, static_cast<double>(w.frees) / steps, 0, 0, 0});
  }
  if (windows.empty() || windows.back().steps <= 0) {
    d.split = split_of(d.trace);
    return;
  }
  const prof::StepWindow& last = windows.back();
  d.split = split_from(last.times, last.end - last.begin, last.steps);
}

}  // namespace

void read_summary(Run& run, const QString& path) {
  const prof::RunSummary file = prof::read_run_summary(path.toStdString());
  run.path = QFileInfo(path).absoluteFilePath();
  run.id = QFileInfo(path).completeBaseName();
  run.title = QString::fromStdString(file.name);
  run.device = QString::fromStdString(file.device);
  run.note = QString::fromStdString(file.notes);
  run.created = QDateTime::fromString(QString::fromStdString(file.created), Qt::ISODate).toLocalTime();
  run.origin = file.origin == "run" ? RunOrigin::File : RunOrigin::Imported;
  run.overhead_share = file.overhead_share;
  run.loaded = false;
  if (run.origin == RunOrigin::File && !file.spec.empty()) run.spec = parse_spec(file.spec);
  run.summary = summary_of(file, run.spec);
  if (run.title.isEmpty()) run.title = short_title(run.spec);
}

std::unique_ptr<RunDetails> read_details(const QString& path) {
  auto d = std::make_unique<RunDetails>();
  d->reader = std::make_shared<prof::RunFileReader>(path.toStdString());
  read_curves(*d->reader, *d);
  d->trace = d->reader->trace();
  const prof::TimeNs end = d->trace.last_time();
  d->reader->fill(d->trace, d->trace.first_time(), end, kBlocksAtOnce);
  read_windows(*d->reader, *d);
  for (const std::string& problem : d->reader->problems()) d->log << QString::fromStdString(problem);
  return d;
}

void give_details(Run& run, RunDetails&& d) {
  run.steps = std::move(d.steps);
  run.evals = std::move(d.evals);
  run.meters = std::move(d.meters);
  run.changes = std::move(d.changes);
  run.trace = std::move(d.trace);
  run.split = std::move(d.split);
  run.log += d.log;
  run.reader = std::move(d.reader);
  run.setStepsPerEpoch(d.steps_per_epoch);
  run.loaded = true;
  run.announce();
}

}  // namespace ws::app
