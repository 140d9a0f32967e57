#include "app/network/weights_reader.h"

#include <QFileInfo>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/cpu/cpu_executor.h"
#include "engine/train/checkpoint.h"
#include "engine/train/trainer.h"

namespace ws::app {
namespace {

constexpr int kLookMs = 100, kAskMs = 400, kRestPerQuestion = 20;  // at most a twentieth of the training's time
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

// What other threads hand over: the data set once, then a snapshot at a time.
struct WeightsReader::Loading {
  std::mutex mutex;
  std::shared_ptr<const data::Dataset> rows;
  std::shared_ptr<const WeightsSnapshot> snapshot;
  QString problem;
  bool asked = false, asked_kept = false;
  qint64 took_ms = 0;  // the last question
};

WeightsReader::WeightsReader(AskTrainer ask, QObject* parent) : QObject(parent), ask_(std::move(ask)) {
  loading_ = std::make_shared<Loading>();
  timer_.setInterval(kLookMs);
  since_.start();
  connect(&timer_, &QTimer::timeout, this, [this] {
    collect();
    this->ask();
  });
}

WeightsReader::~WeightsReader() = default;

void WeightsReader::setRun(Run* run) {
  if (run == run_ && run) return;
  if (run_) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  snapshot_.reset(), rows_.reset();
  loading_ = std::make_shared<Loading>();
  if (!run || run->origin == RunOrigin::Imported) return;
  if (watched_) loadRows();
  connect(run, &Run::ended, this, [this] { askKept(); });
}

void WeightsReader::setWatched(bool watched) {
  if (watched == watched_) return;
  watched_ = watched;
  if (!watched) return timer_.stop();
  timer_.start();
  if (run_ && run_->origin != RunOrigin::Imported && !rows_) loadRows();
  ask();
}

// Pictures need few rows; other sets are small and are loaded whole, so that their scaling is the run's.
void WeightsReader::loadRows() {
  data::DataSpec spec = run_->spec.data;
  if (spec.name == "mnist" || spec.name == "fashion-mnist" || spec.name == "idx") spec.limit = kRowsOfPictures;
  std::thread([loading = loading_, spec] {
    std::shared_ptr<const data::Dataset> loaded;
    QString problem;
    try {
      loaded = std::make_shared<const data::Dataset>(data::load(spec));
    } catch (const Failure& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    const std::lock_guard lock(loading->mutex);
    loading->rows = std::move(loaded), loading->problem = problem;
  }).detach();
}

QString WeightsReader::whyNothing() const {
  if (!run_) return tr("Tick a run, or press Train: its weights stand here, as the init made them and as they are.");
  if (run_->origin == RunOrigin::Imported) return tr("A trace of another program holds no weights.");
  if (run_->live()) return tr("Reading the weights…");
  if (QFileInfo::exists(weights_path(run_->path))) return tr("Reading the weights that this run ended with…");
  return tr("This run kept no weights. Warpscope keeps them beside the run file, as %1, for networks up to 64 MiB.")
      .arg(QFileInfo(weights_path(run_->path)).fileName());
}

// The weights that an ended run left beside its file, looked at by the CPU: any machine can.
void WeightsReader::askKept() {
  if (!watched_ || !rows_ || !run_ || !QFileInfo::exists(weights_path(run_->path))) return;
  {
    const std::lock_guard lock(loading_->mutex);
    if (std::exchange(loading_->asked_kept, true)) return;
  }
  std::thread([loading = loading_, rows = rows_, spec = run_->spec, path = weights_path(run_->path).toStdString()] {
    std::shared_ptr<const WeightsSnapshot> snapshot;
    QString problem;
    try {
      const Checkpoint kept = load_checkpoint(path);
      RunSpec on_cpu = spec;
      on_cpu.exec = ExecSpec{};
      on_cpu.exec.device = Device::Cpu;
      const auto executor = make_cpu_executor();
      executor->load(make_model(spec.model, rows->features, rows->outputs), *rows, on_cpu);
      executor->set_state(kept.state);
      snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(*executor, *rows, on_cpu));
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    const std::lock_guard lock(loading->mutex);
    loading->snapshot = std::move(snapshot), loading->problem = problem;  // once is enough
  }).detach();
}

void WeightsReader::ask() {
  if (!watched_ || !run_ || !rows_) return;
  if (!run_->live()) return askKept();
  {
    const std::lock_guard lock(loading_->mutex);
    const qint64 rest = std::max<qint64>(kAskMs, kRestPerQuestion * loading_->took_ms);
    if (loading_->asked || (snapshot_ && since_.elapsed() < rest)) return;
    loading_->asked = true;
    since_.start();
  }
  const bool taken = ask_(*run_, [loading = loading_, rows = rows_, spec = run_->spec](Executor& executor) {
    QElapsedTimer clock;
    clock.start();
    auto snapshot = std::make_shared<const WeightsSnapshot>(probe_weights(executor, *rows, spec));
    const std::lock_guard lock(loading->mutex);
    loading->snapshot = std::move(snapshot), loading->asked = false, loading->took_ms = clock.elapsed();
  });
  if (taken) return;
  const std::lock_guard lock(loading_->mutex);
  loading_->asked = false;
}

void WeightsReader::collect() {
  std::shared_ptr<const WeightsSnapshot> snapshot;
  QString problem;
  {
    const std::lock_guard lock(loading_->mutex);
    if (loading_->rows) rows_ = loading_->rows;
    snapshot = std::exchange(loading_->snapshot, nullptr);
    problem = std::exchange(loading_->problem, QString());
  }
  if (!problem.isEmpty()) emit failed(problem);
  if (!snapshot) return;
  snapshot_ = std::move(snapshot);
  emit read(snapshot_, rows_);
}

}  // namespace ws::app
