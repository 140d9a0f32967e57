#include "app/network/weights_reader.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <utility>

#include "datasets/split.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/train/checkpoint.h"
#include "engine/train/trainer.h"

namespace ws::app {
namespace {

constexpr int kLookMs = 100, kAskMs = 150, kRestPerQuestion = 20;  // at most 1/20 of the training time
constexpr int64_t kRowsOfPictures = 1000;

}  // namespace

AskTrainer trainer_of(TrainingSession* session) {
  return [session](const Run& run, std::function<void(Executor&)> question) {
    TrainControl* control = session ? session->control() : nullptr;
    if (!control || session->run() != &run || !run.live()) return false;
    control->ask(std::move(question));
    return true;
  };
}

WeightsReader::WeightsReader(AskTrainer ask, QObject* parent) : QObject(parent), ask_(std::move(ask)) {
  timer_.setInterval(kLookMs);
  since_.start();
  connect(&timer_, &QTimer::timeout, this, &WeightsReader::ask);
}

void WeightsReader::setRun(Run* run) {
  if (run == run_ && run) return;
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  snapshot_.reset(), rows_.reset();
  reading_.drop();
  asked_ = asked_kept_ = failed_ = false;
  took_ms_ = 0;
  if (!run || run->origin == RunOrigin::Imported) return;
  if (watched_) loadRows();
  connect(run, &Run::ended, this, &WeightsReader::askKept);
}

void WeightsReader::setWatched(bool watched) {
  if (watched == watched_) return;
  watched_ = watched;
  if (!watched) return timer_.stop();
  timer_.start();
  if (run_ && run_->origin != RunOrigin::Imported && !rows_) loadRows();
  ask();
}

bool WeightsReader::reading() const {
  return run_ && !snapshot_ && !failed_ && run_->origin != RunOrigin::Imported &&
         (run_->live() || QFileInfo::exists(weights_path(run_->path)));
}

void WeightsReader::fail(const QString& problem) {
  failed_ = true;
  emit failed(problem);
}

// Pictures need few rows, but normalising takes the mean over all of them. Other sets are small and are loaded
// completely, so that their scaling matches the run.
void WeightsReader::loadRows() {
  if (reading_.running()) return;
  data::DataSpec spec = run_->spec.data;
  const int64_t rows = data::holds_pictures(spec.name) ? kRowsOfPictures : spec.limit;
  if (!spec.normalise) spec.limit = rows;
  const auto loaded = std::make_shared<std::shared_ptr<const data::Dataset>>();
  reading_.start(
      [loaded, spec, rows](const Job::Side&) {
        data::Dataset set = data::load(spec);
        data::keep_first(set, rows);
        *loaded = std::make_shared<const data::Dataset>(std::move(set));
      },
      [this, loaded](const QString& problem) {
        rows_ = *loaded;
        problem.isEmpty() ? ask() : fail(problem);
      });
}

QString WeightsReader::whyNothing() const {
  if (!run_) return tr("Click a run or press Train to see its weights, before and after training.");
  if (run_->origin == RunOrigin::Imported) return tr("A trace of another program holds no weights.");
  if (run_->live()) return tr("Reading the weights…");
  if (QFileInfo::exists(weights_path(run_->path))) return tr("Reading the weights that this run ended with…");
  return tr("No weights were saved with this run.\nPress Train: each training in this window saves its weights, up to 64 MiB.");
}

// Reads the weights that a finished run left beside its file. The CPU evaluates them, so any machine can do it.
void WeightsReader::askKept() {
  if (!watched_ || !rows_ || !run_ || !QFileInfo::exists(weights_path(run_->path))) return;
  if (std::exchange(asked_kept_, true)) return;
  const auto snapshot = std::make_shared<WeightsSnapshot>();
  const auto work = [snapshot, rows = rows_, spec = run_->spec,
                     path = weights_path(run_->path).toStdString()](const Job::Side&) {
    const Checkpoint kept = load_checkpoint(path);
    RunSpec on_cpu = spec;
    on_cpu.exec = ExecSpec{};
    on_cpu.exec.device = Device::Cpu;
    const auto executor = make_cpu_executor();
    executor->load(make_model(spec.model, *rows), *rows, on_cpu);
    executor->set_state(kept.state);
    *snapshot = probe_weights(*executor, *rows, on_cpu);
  };
  reading_.start(work, [this, snapshot](const QString& problem) { problem.isEmpty() ? take(snapshot) : fail(problem); });
}

void WeightsReader::ask() {
  if (!watched_ || !run_ || !rows_) return;
  if (!run_->live()) return askKept();
  const qint64 rest = std::max<qint64>(kAskMs, kRestPerQuestion * took_ms_);
  if (asked_ || (snapshot_ && since_.elapsed() < rest)) return;
  since_.start();
  asked_ = ask_(*run_, [reader = QPointer(this), run = run_, rows = rows_, spec = run_->spec](Executor& executor) {
    QElapsedTimer clock;
    clock.start();
    const auto snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(executor, *rows, spec));
    QMetaObject::invokeMethod(qApp, [reader, run, rows, snapshot, took = clock.elapsed()] {
      if (!reader || reader->run_ != run || reader->rows_ != rows) return;  // another run may have been shown meanwhile
      reader->asked_ = false;
      reader->took_ms_ = took;
      reader->take(snapshot);
    });
  });
}

void WeightsReader::take(std::shared_ptr<const WeightsSnapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  emit read(snapshot_, rows_);
}

}  // namespace ws::app
