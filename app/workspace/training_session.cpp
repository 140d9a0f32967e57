#include "app/workspace/training_session.h"

#include <QDir>
#include <QThread>
#include <QUuid>

#include "datasets/dataset.h"
#include "engine/devices/devices.h"
#include "engine/train/checkpoint.h"

namespace ws::app {
namespace {

// The last data set stays in memory: training again on the same rows starts at once.
class DataCache {
 public:
  std::shared_ptr<const data::Dataset> get(const data::DataSpec& spec) {
    if (!data_ || !(spec == spec_)) data_ = std::make_shared<const data::Dataset>(data::load(spec)), spec_ = spec;
    return data_;
  }

 private:
  data::DataSpec spec_;
  std::shared_ptr<const data::Dataset> data_;
};

DataCache& cache() {
  static DataCache instance;  // used by one worker at a time
  return instance;
}

constexpr size_t kMostKeptBytes = 64u << 20;

size_t bytes_of(const TrainState& state) {
  size_t bytes = 0;
  for (const auto& values : state.parameters) bytes += values.size() * sizeof(float);
  return bytes;
}

// What the network has learned, beside its run file: the Weights page reads it when the run is long over.
void keep_weights(const RunSpec& spec, Executor& executor, const std::string& path) {
  Checkpoint kept{spec, executor.state(), 0, 0, 0, 0, 0};
  if (bytes_of(kept.state) > kMostKeptBytes) return;
  for (auto& moments : kept.state.moments) moments.clear();  // for looking at, not for going on
  try {
    save_checkpoint(kept, path);
  } catch (const Failure&) {  // a full disk: the run file says so
  }
}

bool is_last(const EpochResult& epoch, const TrainSpec& train) {
  return epoch.epoch >= train.epochs ||
         (train.target_accuracy > 0 && epoch.test && epoch.test->accuracy >= train.target_accuracy);
}

// Of runs that were left: their threads still use them, and nobody can end those. They stay until the process ends.
std::vector<void*>& left_workers() {
  static auto* const left = new std::vector<void*>;
  return *left;
}

RecorderOptions options_for(const Run& run, prof::TraceLevel level, const TraceExtras& extras) {
  RecorderOptions options;
  options.path = run.path.toStdString();
  options.title = run.title.toStdString();
  options.may_go_unkept = true;
  options.trace.level = level;
  options.trace.untraced_share = 0.03;
  options.trace.hardware_counters = extras.counters;
  options.trace.node_window = extras.node_window, options.trace.node_every = extras.node_every;
  options.at_epoch = [spec = run.spec, path = weights_path(run.path).toStdString()](const EpochResult& epoch,
                                                                                    Executor& executor) {
    if (is_last(epoch, spec.train)) keep_weights(spec, executor, path);
  };
  return options;
}

}  // namespace

struct TrainingSession::Worker {
  std::unique_ptr<TracedTraining> recorded;
  std::unique_ptr<QThread> thread;
  std::string failure;  // written by the thread, read once it has ended
};

TrainingSession::TrainingSession(const QString& folder, QObject* parent) : QObject(parent), folder_(folder) {
  timer_.setInterval(33);
  connect(&timer_, &QTimer::timeout, this, &TrainingSession::poll);
}

TrainingSession::~TrainingSession() {
  if (!worker_) return;
  worker_->recorded->control().stop();
  worker_->thread->wait();
}

void TrainingSession::fail(const QString& sentence) {
  problem_ = sentence;
  emit failed(sentence);
}

void TrainingSession::setCuda(bool cuda) {
  cuda_ = cuda;
  nameDevice();
}

// Known once the machine has been looked at, which may be after the start.
void TrainingSession::nameDevice() {
  if (run_ && worker_ && cuda_ && run_->device.isEmpty() && (wants_cuda(run_->spec) || !*cuda_))
    run_->device = QString::fromStdString(device_info().name);
}

Run* TrainingSession::start(const StartRequest& request) {
  if (busy()) {
    fail(tr("Stop the training first (Run › Stop)."));
    return nullptr;
  }
  if (!held_.isEmpty()) {
    fail(held_);
    return nullptr;
  }
  if (const auto why = cuda_ ? why_invalid(request.spec, *cuda_) : std::nullopt) {
    fail(QString::fromStdString(*why));
    return nullptr;
  }
  problem_.clear();
  QDir().mkpath(folder_);
  auto* run = new Run(this);
  run->created = QDateTime::currentDateTime();
  run->id = QUuid::createUuid().toString(QUuid::WithoutBraces).left(8);
  run->spec = request.spec;
  run->named = !request.title.isEmpty();
  run->title = run->named ? request.title : title_after(request.spec, last_ ? &*last_ : nullptr);
  last_ = request.spec;
  run->path = QDir(folder_).filePath(run->created.toString("yyyyMMdd-HHmmss-") + run->id + ".wsrun");
  worker_ = std::make_unique<Worker>();
  Worker* worker = worker_.get();
  try {
    worker->recorded = std::make_unique<TracedTraining>(request.spec, options_for(*run, request.trace, extras_));
  } catch (const std::exception& problem) {
    worker_.reset();
    delete run;
    fail(QString::fromUtf8(problem.what()));
    return nullptr;
  }
  run_ = run;
  nameDevice();
  paused_ = request.paused;
  if (paused_) worker->recorded->control().pause();
  worker->thread.reset(QThread::create([worker, spec = request.spec] {
    try {
      if (const auto why = why_invalid(spec, device_info().cuda)) throw Failure(*why);
      worker->recorded->run(*cache().get(spec.data));
    } catch (const std::exception& problem) {
      worker->failure = problem.what();
    }
  }));
  worker->thread->setObjectName("training");
  worker->thread->start();
  timer_.start();
  emit started(run);
  emit stateChanged();
  return run;
}

void TrainingSession::startAll(std::vector<StartRequest> requests) {
  if (requests.empty()) return;
  queue_.assign(requests.begin() + 1, requests.end());
  if (!start(requests.front())) queue_.clear();
}

void TrainingSession::readTraceStatus() {
  const prof::CollectorStatus status = worker_->recorded->trace_status();
  run_->counters_refused = status.counters_refused;
  run_->counters_note = QString::fromStdString(status.counters);  // also of a run that was over before it was looked at
  if (!status.running && status.records == 0) return;
  run_->trace_note = QString::fromStdString(status.sentence);
  run_->tracing_cost = status.tracing_cost;
}

void TrainingSession::poll() {
  if (!worker_) return;
  const bool over = worker_->thread->isFinished();
  readTraceStatus();
  run_->apply(worker_->recorded->take());
  if (over) finish();
}

void TrainingSession::finish() {
  timer_.stop();
  worker_->thread->wait();
  run_->apply(worker_->recorded->take());
  const std::string failure = worker_->failure;
  if (!run_->summary) {
    Summary summary;
    summary.status = RunStatus::Failed;
    summary.message = failure.empty() ? "The run ended without a result." : failure;
    summary.spec = run_->spec;
    run_->summary = summary;
    run_->announce();
  }
  worker_.reset();
  paused_ = false;
  const Summary& summary = *run_->summary;
  if (summary.status == RunStatus::Failed) queue_.clear(), fail(QString::fromStdString(summary.message));
  emit ended(run_);
  if (!queue_.empty()) {
    const StartRequest next = queue_.front();
    queue_.pop_front();
    start(next);
  }
  emit stateChanged();
}

void TrainingSession::pause() {
  if (!worker_ || paused_) return;
  worker_->recorded->control().pause();
  paused_ = true;
  emit stateChanged();
}

void TrainingSession::resume() {
  if (!worker_ || !paused_) return;
  worker_->recorded->control().resume();
  paused_ = false;
  emit stateChanged();
}

void TrainingSession::stepOnce() {
  if (worker_ && paused_) worker_->recorded->control().step_once();
}

void TrainingSession::stop() {
  queue_.clear();
  if (!worker_) return;
  worker_->recorded->control().ask(
      [spec = run_->spec, path = weights_path(run_->path).toStdString()](Executor& e) { keep_weights(spec, e, path); });
  worker_->recorded->control().stop();
}

bool TrainingSession::stopAndWait(int milliseconds) {
  stop();
  if (!worker_) return true;
  if (!worker_->thread->wait(milliseconds)) return false;
  finish();
  return true;
}

void TrainingSession::leave() {
  if (!worker_) return;
  timer_.stop();
  queue_.clear();
  left_workers().push_back(worker_.release());
  paused_ = false;
  run_->unfinished = true;
  Summary summary;
  summary.status = RunStatus::Stopped;
  summary.message = "The window was closed before the run could end; what was written is shown.";
  summary.spec = run_->spec;
  if (!run_->summary) run_->summary = summary;
  emit ended(run_);
  emit stateChanged();
}

bool TrainingSession::leftBehind() { return !left_workers().empty(); }

void TrainingSession::change(const QString& key, const QString& value) {
  if (!worker_) return;
  try {
    worker_->recorded->control().change(key.toStdString(), value.toStdString());
  } catch (const Failure& problem) {
    fail(QString::fromUtf8(problem.what()));
  }
}

void TrainingSession::setTraceLevel(prof::TraceLevel level) {
  if (worker_) worker_->recorded->set_trace_level(level);
}

TrainControl* TrainingSession::control() { return worker_ ? &worker_->recorded->control() : nullptr; }

}  // namespace ws::app
