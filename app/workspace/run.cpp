#include "app/workspace/run.h"

#include <QFileInfo>
#include <QSettings>
#include <QVariantMap>
#include <algorithm>

#include "app/core/runs/data_shape.h"
#include "app/core/runs/plan_times.h"
#include "app/workspace/run_loader.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/base/failure.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/recording/record_keys.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/track_names.h"

namespace ws::app {
namespace {

constexpr size_t kFetchBlocks = 64;
constexpr double kMeterPoints = 20'000;  // of the newest e-th of a run
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

int64_t Run::stepsMade() const {
  if (summary && summary->steps > 0) return summary->steps;
  int64_t made = progress ? progress->step : 0;
  const prof::Track* track = first_track(marks(), prof::TrackKind::Steps);
  if (track && !track->blocks.empty()) {
    const prof::SpanBlock& last = track->blocks.back();
    made = std::max(made, int64_t{last.resident() ? last.spans.back().step : last.head.step});
  }
  return made;
}

double Run::meanUs() const {
  if (summary && summary->us_per_step > 0) return summary->us_per_step;
  if (progress && progress->step > 0) return progress->elapsed_s * 1e6 / static_cast<double>(progress->step);
  return kUnknown;
}

double Run::samplesPerSecond() const { return hasChoices() ? rows_of_a_step(spec) * 1e6 / stepUs() : kUnknown; }

double Run::trainLoss() const {
  if (!steps.empty()) return static_cast<double>(steps.back().loss);
  return summary ? summary->final_train_loss : kUnknown;
}

prof::StepsOf Run::stepsOf() const {
  return origin == RunOrigin::Imported ? prof::StepsOf::Program : prof::StepsOf::Training;
}

bool Run::machineBusy() const { return stepsOf() == prof::StepsOf::Training && prof::varies_widely(step_time); }

std::span<const StepPoint> Run::countedSteps() const {
  return std::span(steps).first(live() && counted_steps_ > 0 ? std::min(counted_steps_, steps.size()) : steps.size());
}

bool Run::hasLoss() const {
  const auto finite = [](const auto& point) { return std::isfinite(point.loss); };
  return hasChoices() || std::isfinite(trainLoss()) || std::ranges::any_of(steps, finite) || std::ranges::any_of(evals, finite);
}

std::vector<LossCurve> Run::lossCurves() const {
  std::vector<LossCurve> curves;
  for (const prof::CounterTrack& counter : trace.counters()) {
    if (!is_loss_curve(counter.kind)) continue;
    const bool first = counter.kind == prof::CounterKind::LossName || counter.kind == prof::CounterKind::TestLossName;
    const bool test = counter.kind == prof::CounterKind::TestLoss || counter.kind == prof::CounterKind::TestLossName;
    curves.push_back({QString::fromStdString(counter.name), test, first ? nullptr : &counter});
  }
  return curves;
}

double Run::testLoss() const {
  if (!evals.empty()) return evals.back().loss;
  return summary ? summary->test_loss : kUnknown;
}

double Run::testAccuracy() const {
  if (hasChoices() && regression()) return kUnknown;
  if (!evals.empty()) return evals.back().accuracy;
  return summary ? summary->test_accuracy : kUnknown;
}

double Run::peakBytes() const {
  const int64_t bytes = summary ? summary->peak_bytes : progress ? progress->memory.peak : 0;
  return bytes > 0 ? static_cast<double>(bytes) : kUnknown;
}

double Run::driverCalls() const {
  if (origin == RunOrigin::Imported && (!summary || summary->calls.device_allocate == 0)) return kUnknown;
  const int64_t made = summary ? summary->steps : progress ? progress->started : 0;
  if (made == 0) return kUnknown;
  const AllocatorCalls& calls = summary ? summary->calls : progress->calls;
  return static_cast<double>(calls.device_allocate + calls.device_free) / static_cast<double>(made);
}

void Run::takeAccount(const prof::RunSummary& account) {
  // The account of a training is final, even if it has no step time.
  const bool of_training = origin == RunOrigin::Live && !account.created.empty();
  if (of_training || account.step_time.known()) step_time = account.step_time;
  // Until its details are read, the mean stands for the step time that is computed then.
  else if (!loaded && account.us_per_step > 0) step_time = prof::step_time({}, {}, account.us_per_step);
  for (const auto& [key, text] : account.extra)
    if (key.starts_with(prof::kSourceKey)) sources[key.substr(std::string_view(prof::kSourceKey).size())] = text;
  try {
    for (const own::KernelChoice& choice : own::kernel_choices(spec.exec.kernels))  // so that its choices can be used again
      if (const auto text = sources.find(choice.name()); text != sources.end()) own::keep_version(text->second);
  } catch (const Failure&) {  // the file names no kernel
  }
  if (account.tracing_cost.known()) tracing_cost = account.tracing_cost;
}

double Run::stepAt(prof::TimeNs time) const {
  if (const auto* span = prof::step_at(marks(), time); span && span->start <= time && span->step > 0) return span->step - 1.0;
  const double seconds = static_cast<double>(time) * 1e-9;
  auto it =
      std::lower_bound(steps.begin(), steps.end(), seconds, [](const StepPoint& p, double s) { return p.wall_s < s; });
  if (it == steps.end()) return steps.empty() ? 0 : steps.back().step;
  return it->step;
}

prof::TimeNs Run::timeOfStep(double step) const {
  if (const auto* span = prof::span_of_step(marks(), static_cast<int64_t>(std::max(0.0, step))))
    return span->start + static_cast<prof::TimeNs>(span->duration / 2);
  auto it = std::lower_bound(steps.begin(), steps.end(), step, [](const StepPoint& p, double s) { return p.step < s; });
  if (it == steps.end()) return steps.empty() ? 0 : static_cast<prof::TimeNs>(steps.back().wall_s * 1e9);
  return static_cast<prof::TimeNs>(it->wall_s * 1e9);
}

const EvalPoint* Run::bestEval() const {
  if (evals.empty()) return nullptr;
  const bool by_loss = regression();
  return &*std::min_element(evals.begin(), evals.end(), [by_loss](const EvalPoint& a, const EvalPoint& b) {
    return by_loss ? a.loss < b.loss : a.accuracy > b.accuracy;
  });
}

namespace {
QString folds_key(const Run& run) { return "folds/" + run.id; }
}  // namespace

std::map<std::string, bool>& Run::folds() {
  if (folds_) return *folds_;
  folds_.emplace();
  const QVariantMap kept = id.isEmpty() ? QVariantMap() : QSettings().value(folds_key(*this)).toMap();
  for (auto block = kept.begin(); block != kept.end(); ++block) (*folds_)[block.key().toStdString()] = block->toBool();
  return *folds_;
}

bool Run::folded(const std::string& block, bool at_first) {
  const auto found = folds().find(block);
  return found == folds().end() ? at_first : found->second;
}

std::map<std::string, std::string> Run::blocks() const {
  return plan ? blocks_of(plan->plan) : std::map<std::string, std::string>();
}

std::map<std::string, std::string> Run::foldedBlocks() {
  auto layers = blocks();
  std::erase_if(layers, [this](const auto& layer) { return !folded(layer.second); });
  return layers;
}

void Run::setFolded(const std::string& block, bool folded) {
  folds()[block] = folded;
  QVariantMap kept;
  for (const auto& [name, is_folded] : *folds_) kept[QString::fromStdString(name)] = is_folded;
  if (!id.isEmpty()) QSettings().setValue(folds_key(*this), kept);
  emit foldsChanged();
}

void Run::setTimeMarks(std::vector<TimeMark> marked) {
  if (time_marks == marked) return;
  time_marks = std::move(marked);
  if (path.isEmpty() || shipped || (origin != RunOrigin::Live && !QFileInfo::exists(path))) return;
  // Writing to a read-only file fails. The marks then last only as long as the window.
  keeping_marks_.start([path = path.toStdString(), text = marks_text(time_marks)](
                           const Job::Side&) { prof::keep_with_run(path, "time_marks", text); },
                       {});
}

void Run::applyProgress(const Progress& now) {
  if (now.epochs > 0 && now.steps > 0)
    steps_per_epoch_ = static_cast<double>(now.steps) / static_cast<double>(now.epochs);
  const auto started = static_cast<double>(now.started - metered_.started);
  // Points lie further apart the longer the run is, so that a run of days has a hundred thousand of them.
  const bool due = now.elapsed_s - metered_.elapsed_s >= now.elapsed_s / kMeterPoints;
  if (now.step > metered_.step && started > 0 && due) {
    const auto per_step = [&](int64_t after, int64_t earlier) {
      return static_cast<double>(after - earlier) / started;
    };
    meters.push_back({static_cast<double>(now.step), now.elapsed_s, per_step(now.calls.allocate, metered_.calls.allocate),
                      per_step(now.calls.free, metered_.calls.free), now.samples_per_s,
                      static_cast<double>(now.memory.used), static_cast<double>(now.memory.reserved)});
    metered_ = now;
  }
  progress = now;
}

void Run::apply(RunUpdate&& update) {
  if (update.plan) plan = std::move(update.plan), spec.exec.kernels = plan->plan.spec.exec.kernels;
  if (update.progress) applyProgress(*update.progress);
  applyChanges(update.changes);
  for (const StepResult& r : update.steps) {
    const auto step = static_cast<double>(r.step);
    if (r.step >= steady_since_) losses_.add({step, r.finished_s});
    steps.push_back({step, r.finished_s, steps_per_epoch_ > 0 ? step / steps_per_epoch_ : 0, r.loss, r.accuracy});
  }
  if (steps.size() > kMostSteps) thinSteps();
  for (const EpochResult& e : update.epochs)
    if (e.test)
      evals.push_back(
          {static_cast<double>(e.step), e.wall_s, static_cast<double>(e.epoch), e.test->loss, e.test->accuracy});
  for (const RunMessage& line : update.messages) log.push_back({QString::fromStdString(line.text), line.problem});
  if (update.file_moved) path.clear();  // nothing is read from that name, written there or deleted
  applyTrace(update);
  if (update.summary) {
    summary = std::move(update.summary);
    takeAccount(update.account);
    takeLastTest();
    rest();
  }
  emit changed();
  if (summary) emit ended();
}

// Once a run has ended, its file has the whole trace. Memory keeps less of it, the viewed range first.
void Run::rest() {
  constexpr size_t kEnded = 64u << 20;
  if (!trace.backed || !QFileInfo::exists(path)) return;
  history_bytes = std::min(history_bytes, kEnded);
  trace.evict(history_bytes, looked_begin_, looked_end_);
}

// Adds the test of a run that stopped in the middle of an epoch.
void Run::takeLastTest() {
  const auto step = static_cast<double>(summary->steps);
  if (!std::isfinite(summary->test_loss) || (!evals.empty() && evals.back().step >= step)) return;
  evals.push_back({step, summary->wall_s, steps_per_epoch_ > 0 ? step / steps_per_epoch_ : 0, summary->test_loss,
                   summary->test_accuracy});
}

void Run::takeChange(const Change& change) {
  changes.push_back(change);
  if (!change.to.empty()) set_field(spec, change.key, change.to);  // empty: from another program or version
}

void Run::applyChanges(const std::vector<Change>& made) {
  for (const Change& change : made) {
    takeChange(change);
    host_ahead_ |= change.key == "exec.launch" || change.key == "exec.sync";
    if (change.key.starts_with("exec.")) steady_since_ = change.step, losses_.clear();
    if (!named)
      title += tr(" · %1 from step %2").arg(QString::fromStdString(value_label({change.key, change.from, change.to})), count_text(change.step));
  }
}

// Keeps the lowest and the highest loss of every eight in the older half. Older losses are thinned more often. The
// first step is always kept, because it shows how the network was initialised.
void Run::thinSteps() {
  constexpr size_t kGroup = 8;
  const size_t half = steps.size() / 2 / kGroup * kGroup + 1;
  size_t kept = 1;
  for (size_t i = 1; i < half; i += kGroup) {
    const auto group = steps.begin() + static_cast<std::ptrdiff_t>(i);
    const auto [low, high] =
        std::minmax_element(group, group + kGroup, [](const StepPoint& a, const StepPoint& b) { return a.loss < b.loss; });
    const StepPoint first = low < high ? *low : *high, second = low < high ? *high : *low;
    steps[kept++] = first;
    if (low != high) steps[kept++] = second;
  }
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(kept), steps.begin() + static_cast<std::ptrdiff_t>(half));
  ++steps_thinned_, counted_steps_ = 0;
}

void Run::applyTrace(RunUpdate& update) {
  trace.backed = !path.isEmpty();
  for (prof::TraceBatch& batch : update.traces) {
    allocator_calls.take(batch.allocations);
    prof::append(trace, std::move(batch));
  }
  if (!update.traces.empty()) trace.evict(history_bytes, looked_begin_, looked_end_);
  if (host_ahead_ || host_runs_ahead(spec)) {
    gpu_steps_.update(trace, arrived());
    if (update.summary) gpu_steps_.finish(trace);
  }
  if ((summary || !split_due_.hasExpired()) && !update.summary) return;  // the figures of an ended run are stored
  const prof::TimeNs until = update.summary ? trace.last_time() : arrived();
  const prof::StepsOfRun of_run(marks(), trace, {.per_epoch = steps_per_epoch_, .since = steady_since_, .run_steps = update.summary ? update.summary->steps : 0});
  step_time = prof::step_time(of_run.sample({.until = until, .lengths_only = true}), losses_.seen(), meanUs(), stepsOf());
  const size_t most = update.summary ? prof::SampleRange::kOfAFinishedRun : prof::SampleRange::kOfALiveRun;
  if (trace.span_count() > 0) split = split_of(of_run, {.until = until, .most_spans = most}, step_time.us.value);
  counted_steps_ = steps.size();
  split_due_.setRemainingTime(300);
}

// Opens the file of a live run when it is first needed. The file may still be written.
prof::RunFileReader* Run::file() {
  if (unreadable_) return nullptr;
  if (reader) return reader.get();
  if (!written_ && !path.isEmpty()) written_ = std::make_shared<prof::RunFileReader>(path.toStdString());
  return written_.get();
}

bool Run::fetch(prof::TimeNs begin, prof::TimeNs end, size_t most) {
  size_t missing = 0, all = 0;
  for (const prof::Track& track : trace.tracks()) {
    missing += prof::spans_out_of_memory(track, begin, end);
    all += prof::spans_about(track, begin, end);
  }
  if (missing == 0 || all > most) return false;
  looked_begin_ = begin, looked_end_ = end;
  try {
    prof::RunFileReader* const from = file();
    if (!from || from->fill(trace, begin, end, kFetchBlocks) == 0) return false;
    trace.evict_spans(history_bytes, begin, end);
    return true;
  } catch (const std::exception& problem) {
    log.push_back({QString::fromUtf8(problem.what())});
    unreadable_ = true;  // report it only once
    return false;
  }
}

QString short_title(const RunSpec& spec) {
  const QString fusion =
      spec.exec.fusion == Fusion::Off ? QStringLiteral("unfused") : text(to_string(spec.exec.fusion));
  return text(to_string(spec.exec.launch)) + " · " + text(to_string(spec.exec.allocator)) + " · " + fusion;
}

QString changes_between(const RunSpec& before, const RunSpec& spec, size_t most) {
  return QString::fromStdString(changes_label(before, spec, most));
}

namespace {

// The arguments that only `command` has, each value with its option: "--compile --steps 30".
QString own_arguments(const QStringList& command, const QStringList& other) {
  QStringList words;
  for (qsizetype i = 0; i < command.size(); ++i) {
    if (other.contains(command[i])) continue;
    const bool value = i > 0 && !command[i].startsWith('-') && command[i - 1].startsWith('-');
    if (value && other.contains(command[i - 1])) words << command[i - 1];
    words << command[i];
  }
  return words.join(' ');
}

}  // namespace

Run* current_of(const std::vector<Run*>& shown) { return shown.empty() ? nullptr : shown[shown.size() > 1 ? 1 : 0]; }

QString title_among(const Run& run, const std::vector<const Run*>& runs) {
  constexpr qsizetype kMost = 2;
  QStringList values;
  for (const Run* other : runs) {
    if (!other || other == &run || other->title != run.title) continue;
    const QString arguments = own_arguments(run.command, other->command);
    if (!arguments.isEmpty() && !values.contains(arguments)) values << arguments;
    if (!other->hasChoices() || !run.hasChoices()) continue;
    for (const FieldChange& change : diff(other->spec, run.spec))
      if (const QString value = QString::fromStdString(value_label(change)); !values.contains(value)) values << value;
  }
  return values.isEmpty() ? run.title : run.title + QStringLiteral(" · ") + values.mid(0, kMost).join(QStringLiteral(", "));
}

QString spec_subtitle(const RunSpec& spec) {
  return QString::fromStdString(spec.data.name) + " · " + text(to_string(spec.model.init)) + " · " +
         text(to_string(spec.exec.precision));
}

QString run_caption(const Run& run) {
  QStringList parts{run.title};
  if (run.origin != RunOrigin::Imported)
    parts << QObject::tr("%1, batch %2, %3, %4")
                 .arg(QString::fromStdString(run.spec.data.name),
                      QString::fromStdString(field_text(run.spec, "train.batch")),
                      QString::fromStdString(field_text(run.spec, "exec.precision")), short_title(run.spec));
  if (!run.device.isEmpty()) parts << run.device;
  const QString letter = run.slot >= 0 ? run_letter(run.slot) + "  " : QString();
  return letter + parts.join(QStringLiteral(" · "));
}

QString weights_path(const QString& run_path) { return run_path + ".wsck"; }

}  // namespace ws::app
