#include "app/workspace/training_session.h"

#include <QDir>
#include <QFileInfo>
#include <QPointer>
#include <QThread>
#include <QUuid>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/core/remote/fetch_file.h"
#include "app/core/remote/job_request.h"
#include "app/workspace/remote_training.h"
#include "datasets/dataset.h"
#include "engine/devices/devices.h"
#include "engine/train/checkpoint.h"

namespace ws::app {
namespace {

// Keeps the last data set in memory, so that training again on the same rows starts at once.
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

constexpr int kSlowTicksPerSecond = 20;
constexpr size_t kMostKeptBytes = 64u << 20;

size_t bytes_of(const TrainState& state) {
  size_t bytes = 0;
  for (const auto& values : state.parameters) bytes += values.size() * sizeof(float);
  return bytes;
}

// Saves the weights beside the run file. The Weights page can read them long after the run.
void keep_weights(const RunSpec& spec, Executor& executor, const std::string& path) {
  Checkpoint kept{spec, executor.state(), 0, 0, 0, 0, 0};
  if (bytes_of(kept.state) > kMostKeptBytes) return;
  for (auto& moments : kept.state.moments) moments.clear();  // for display only, not to resume
  save_checkpoint(kept, path);
}

bool is_last(const EpochResult& epoch, const TrainSpec& train) {
  return epoch.epoch >= train.epochs ||
         (train.target_accuracy > 0 && epoch.test && epoch.test->accuracy >= train.target_accuracy);
}

// Workers of runs that were left. Their threads still use them and cannot be stopped, so
// they live until the process ends.
std::vector<void*>& left_workers() {
  static auto* const left = new std::vector<void*>;
  return *left;
}

prof::CollectorOptions trace_options(prof::TraceLevel level, const TraceExtras& extras) {
  prof::CollectorOptions trace;
  trace.level = level;
  trace.untraced_share = 0.03;
  trace.hardware_counters = extras.counters;
  if (extras.xray) trace.xray = prof::xray_steps(prof::kUsualXraySteps);
  trace.node_window = extras.node_window, trace.node_every = extras.node_every;
  return trace;
}

RecorderOptions options_for(const Run& run, prof::TraceLevel level, const TraceExtras& extras) {
  RecorderOptions options;
  options.path = run.path.toStdString();
  options.title = run.title.toStdString();
  options.may_go_unkept = true;
  options.trace = trace_options(level, extras);
  return options;
}

// Trains on a thread of this program.
class LocalTraining final : public TrainingWorker {
 public:
  LocalTraining(const Run& run, RecorderOptions options)
      : spec_(run.spec),
        run_path_(run.path),
        weights_(weights_path(run.path).toStdString()),
        recorded_(run.spec, keepingWeights(std::move(options))) {}
  ~LocalTraining() override {
    if (!thread_) return;
    recorded_.control().stop();
    thread_->wait();
  }

  void start() {
    thread_.reset(QThread::create([this] {
      try {
        if (const auto why = why_invalid(spec_, device_info().cuda)) throw Failure(why->text);
        recorded_.run(*cache().get(spec_.data));
      } catch (const std::exception& problem) {
        failure_ = problem.what();
      }
    }));
    thread_->setObjectName("training");
    thread_->start();
    if (!thread_->isRunning() && !thread_->isFinished()) throw Failure("No further thread could be started. End other "
                                                                       "programs first.");
  }

  void pause() override { recorded_.control().pause(); }
  void resume() override { recorded_.control().resume(); }
  void stepOnce() override { recorded_.control().step_once(); }
  void stop() override {
    recorded_.control().ask([this](Executor& executor) { keepWeights(executor); });
    recorded_.control().stop();
  }
  void change(const std::string& key, const std::string& value) override { recorded_.control().change(key, value); }
  void setTraceLevel(prof::TraceLevel level) override { recorded_.set_trace_level(level); }
  RunUpdate take() override {
    RunUpdate update = recorded_.take();
    const std::lock_guard lock(mutex_);
    for (RunMessage& message : std::exchange(unsaved_, {})) update.messages.push_back(std::move(message));
    return update;
  }
  bool over() override { return thread_->isFinished(); }
  bool wait(int most_ms) override { return thread_->wait(most_ms); }
  std::string failure() const override { return failure_; }
  prof::CollectorStatus traceStatus() const override { return recorded_.trace_status(); }
  TrainControl* control() override { return &recorded_.control(); }

 private:
  RecorderOptions keepingWeights(RecorderOptions options) {
    options.at_epoch = [this](const EpochResult& epoch, Executor& executor) {
      if (is_last(epoch, spec_.train)) keepWeights(executor);
    };
    return options;
  }
  void keepWeights(Executor& executor) {
    if (recorded_.file_moved()) return;  // they would stand beside another run
    try {
      keep_weights(spec_, executor, weights_);
    } catch (const Failure& problem) {
      if (!QFileInfo::exists(run_path_)) return;  // the run is not stored either, and that was reported
      const std::lock_guard lock(mutex_);
      unsaved_ = {{std::string("The weights are not saved: ") + problem.what(), true}};
    }
  }

  const RunSpec spec_;
  const QString run_path_;
  const std::string weights_;
  TracedTraining recorded_;
  std::string failure_;  // written by the thread, read after it has ended
  std::mutex mutex_;
  std::vector<RunMessage> unsaved_;
  std::unique_ptr<QThread> thread_;
};

}  // namespace

TrainingSession::TrainingSession(const QString& folder, QObject* parent) : QObject(parent), folder_(folder) {
  timer_.setObjectName("poll");
  timer_.setParent(this);
  timer_.setInterval(33);
  connect(&timer_, &QTimer::timeout, this, &TrainingSession::poll);
  slow_steps_.setInterval(1000 / kSlowTicksPerSecond);
  connect(&slow_steps_, &QTimer::timeout, this, &TrainingSession::giveSlowSteps);
}

TrainingSession::~TrainingSession() = default;

void TrainingSession::fail(const QString& sentence) {
  problem_ = sentence;
  emit failed(sentence);
}

void TrainingSession::setCuda(bool cuda) {
  cuda_ = cuda;
  nameDevice();
}

// The device is known once the machine was probed, perhaps after the start.
void TrainingSession::nameDevice() {
  if (run_ && worker_ && !trains_on_ && cuda_ && run_->device.isEmpty() && (wants_cuda(run_->spec) || !*cuda_))
    run_->device = QString::fromStdString(device_info().name);
}

bool TrainingSession::mayStart(const RunSpec& spec) {
  if (busy()) {
    fail(tr("Stop the training first (Run › Stop)."));
    return false;
  }
  if (const QString why = held(); !why.isEmpty()) {
    fail(why);
    return false;
  }
  const auto why = cuda_ && !machine_ ? why_invalid(spec, *cuda_) : std::nullopt;
  if (why) {
    fail(QString::fromStdString(why->text));
    return false;
  }
  problem_.clear();
  return true;
}

Run* TrainingSession::makeRun(const StartRequest& request) {
  auto* run = new Run(this);
  run->created = QDateTime::currentDateTime();
  run->id = QUuid::createUuid().toString(QUuid::WithoutBraces).left(8);
  run->spec = request.spec;
  run->named = !request.title.isEmpty();
  run->title = run->named ? request.title : QString::fromStdString(run_name(request.spec));
  return run;
}

Run* TrainingSession::start(const StartRequest& request) {
  return mayStart(request.spec) ? begin(request, {}) : nullptr;
}

void TrainingSession::hold(const QObject* owner, const QString& why) {
  if (why.isEmpty())
    holds_.erase(owner);
  else
    holds_[owner] = {why, machine_.get()};
}

QString TrainingSession::held() const {
  for (const auto& [owner, hold] : holds_)
    if (hold.machine == machine_.get()) return hold.why;
  return {};
}

void TrainingSession::setMachine(std::shared_ptr<RemoteMachine> machine) {
  machine_ = std::move(machine);
  emit machineChanged();
}

Run* TrainingSession::attach(const RemoteJobInfo& training) {
  if (!machine_ || training.kind != "train" || !mayStart(training.spec)) return nullptr;
  return begin({training.spec, training.title}, training.name);
}

// `name`: of a job that already runs on the other machine; empty for a new one.
Run* TrainingSession::begin(const StartRequest& request, QString name) {
  QDir().mkpath(folder_);
  Run* run = makeRun(request);
  try {
    if (machine_) {
      const std::string there = name.isEmpty() ? RemoteRun::new_name(request.spec.name) : name.toStdString();
      const auto job = name.isEmpty() ? train_request(request.spec, run->title.toStdString(),
                                                      trace_options(request.trace, extras_), request.paused)
                                      : nlohmann::json();
      run->id = QString::fromStdString(there);
      run->device = machine_->device() + tr(" on %1").arg(machine_->place());
      worker_ = std::make_unique<RemoteTraining>(machine_->link(), there, job, request.spec);
      run->title += tr(" · on %1").arg(machine_->place());  // a run beside it may have the same choices here
    } else {
      run->path = QDir(folder_).filePath(run->created.toString("yyyyMMdd-HHmmss-") + run->id + ".wsrun");
      auto local = std::make_unique<LocalTraining>(*run, options_for(*run, request.trace, extras_));
      if (request.paused || speed_ != TrainSpeed::Full) local->pause();
      local->start();
      worker_ = std::move(local);
    }
  } catch (const std::exception& problem) {
    delete run;
    fail(QString::fromUtf8(problem.what()));
    return nullptr;
  }
  run_ = run;
  slow_rate_ = request.slow_rate;
  trains_on_ = machine_;
  nameDevice();
  paused_ = request.paused || (speed_ == TrainSpeed::Step && !trains_on_);
  pace();
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
  const prof::CollectorStatus status = worker_->traceStatus();
  run_->counters_refused = status.counters_refused;
  run_->xray_note = QString::fromStdString(status.xray);
  run_->counters_note = QString::fromStdString(status.counters);  // also for a run that ended before it was polled
  if (!status.running && status.records == 0) return;
  run_->trace_note = QString::fromStdString(status.sentence);
  run_->tracing_cost = status.tracing_cost;
}

void TrainingSession::poll() {
  pollBeside();
  if (!worker_) return;
  const bool over = worker_->over();
  readTraceStatus();
  RunUpdate update = worker_->take();
  // Another window may have paused or resumed it.
  if (const bool now = update.progress && update.progress->paused; trains_on_ && update.progress && now != paused_) {
    paused_ = now;
    emit stateChanged();
  }
  if (update.progress && slow()) update.progress->paused = false;  // only its worker is, between two steps
  run_->apply(std::move(update));
  if (over) finish();
}

std::string TrainingSession::applyEnd(Run& run, TrainingWorker& worker) {
  run.apply(worker.take());
  if (!run.summary) {
    Summary summary;
    summary.status = RunStatus::Failed;
    summary.message = worker.failure().empty() ? "The run ended without a result." : worker.failure();
    summary.spec = run.spec;
    run.summary = summary;
    run.announce();
  }
  const auto* there = dynamic_cast<RemoteTraining*>(&worker);
  return there && !there->files().empty() ? there->files().front() : std::string();
}

void TrainingSession::finish() {
  const std::string file = applyEnd(*run_, *worker_);
  worker_.reset();
  paused_ = false;
  slow_steps_.stop();
  if (!file.empty()) fetch(file, trains_on_, run_);
  trains_on_.reset();
  if (beside_.empty()) timer_.stop();
  const Summary& summary = *run_->summary;
  if (summary.status == RunStatus::Failed) queue_.clear(), fail(QString::fromStdString(summary.message));
  emit ended(run_);
  if (!queue_.empty()) {
    const StartRequest next = queue_.front();
    queue_.pop_front();
    in_series_ = true;
    start(next);
    in_series_ = false;
  }
  emit stateChanged();
}

void TrainingSession::pollBeside() {
  for (size_t i = 0; i < beside_.size();) {
    const bool over = beside_[i].worker->over();
    beside_[i].run->apply(beside_[i].worker->take());
    if (!over) {
      ++i;
      continue;
    }
    const Beside ended = std::move(beside_[i]);
    beside_.erase(beside_.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string file = applyEnd(*ended.run, *ended.worker);
    if (!file.empty()) fetch(file, ended.machine, ended.run);
    if (!anyBusy()) timer_.stop();
    if (ended.run->summary->status == RunStatus::Failed) fail(QString::fromStdString(ended.run->summary->message));
    emit this->ended(ended.run);
    emit stateChanged();
  }
}

void TrainingSession::putBeside() {
  if (!trains_on_) return;
  queue_.clear();
  beside_.push_back({std::move(worker_), std::exchange(trains_on_, nullptr), run_, std::exchange(paused_, false)});
  emit stateChanged();
}

void TrainingSession::bringForward(const QString& address) {
  const auto at = std::find_if(beside_.rbegin(), beside_.rend(), [&](const Beside& b) { return b.machine->address() == address; });
  if (busy() || at == beside_.rend()) return;
  worker_ = std::move(at->worker), trains_on_ = at->machine, run_ = at->run, paused_ = at->paused;
  beside_.erase(std::next(at).base());
  emit stateChanged();
}

std::vector<Run*> TrainingSession::beside() const {
  std::vector<Run*> runs;
  for (const Beside& one : beside_) runs.push_back(one.run);
  return runs;
}

QStringList TrainingSession::placesThere() const {
  QStringList places;
  if (trains_on_) places << trains_on_->place();
  for (const Beside& one : beside_) places << one.machine->place();
  places.removeDuplicates();
  return places;
}

void TrainingSession::stopAll() {
  for (const Beside& one : beside_) one.worker->stop();
  stop();
}

void TrainingSession::fetch(const std::string& file, const std::shared_ptr<RemoteMachine>& machine, Run* run) {
  const QString path = path_for_copy(folder_, run->id.toStdString() + ".wsrun");
  fetching_.start(
      [machine, file, path](const Job::Side& side) {
        fetch_file(machine->link(), {{"file", file}}, path.toStdString(),
                   [&side](uint64_t) { return !side.cancelled()->load(); });
      },
      [this, run = QPointer<Run>(run), path](const QString& problem) {
        if (!problem.isEmpty()) return fail(tr("The run file stays on the other machine: %1").arg(problem));
        emit arrived(run, path);
      });
}

void TrainingSession::markLeft(Run& run, const char* why) {
  run.unfinished = true;
  Summary summary;
  summary.status = RunStatus::Stopped;
  summary.message = why;
  summary.spec = run.spec;
  if (!run.summary) run.summary = summary;
}

void TrainingSession::detach() {
  if (!trains_on_) return;
  queue_.clear();
  worker_.reset();
  trains_on_.reset();
  paused_ = false;
  if (beside_.empty()) timer_.stop();
  markLeft(*run_, "It goes on there. The part that was seen is shown.");
  emit ended(run_);
  emit stateChanged();
}

void TrainingSession::detachAll() {
  detach();
  for (const Beside& one : std::exchange(beside_, {})) {
    markLeft(*one.run, "It goes on there. The part that was seen is shown.");
    emit ended(one.run);
  }
  if (!busy()) timer_.stop();
  emit stateChanged();
}

void TrainingSession::pause() {
  if (!worker_ || paused_) return;
  worker_->pause();
  paused_ = true;
  pace();
  emit stateChanged();
}

void TrainingSession::resume() {
  if (!worker_ || !paused_) return;
  paused_ = false;
  if (speed_ == TrainSpeed::Step) speed_ = TrainSpeed::Full;
  if (!slow()) worker_->resume();
  pace();
  emit stateChanged();
}

// The worker of a slow training is paused and gets one step at a time.
bool TrainingSession::slow() const { return worker_ && speed_ == TrainSpeed::Slow && !paused_ && !trains_on_; }

void TrainingSession::pace() {
  if (!slow()) return slow_steps_.stop();
  slow_clock_.start();
  slow_given_ = 0;
  slow_steps_.start();
}

// The time gives their number, also where the timer comes late. After a long stop of the window there is no burst.
void TrainingSession::giveSlowSteps() {
  const qint64 due = slow_clock_.elapsed() * slow_rate_ / 1000 - slow_given_, most = std::max(1, slow_rate_ / 2);
  for (qint64 step = 0; worker_ && step < std::min(due, most); ++step) worker_->stepOnce();
  slow_given_ += due;
}

void TrainingSession::setSpeed(TrainSpeed speed) {
  speed_ = speed;
  if (worker_ && !trains_on_) {
    paused_ = speed == TrainSpeed::Step;
    speed == TrainSpeed::Full ? worker_->resume() : worker_->pause();
  }
  pace();
  emit stateChanged();
}

void TrainingSession::stepOnce() {
  if (worker_ && paused_) worker_->stepOnce();
}

void TrainingSession::stop() {
  queue_.clear();
  if (!worker_) return;
  worker_->stop();
}

bool TrainingSession::stopAndWait(int milliseconds) {
  stop();
  if (!worker_) return true;
  if (!worker_->wait(milliseconds)) return false;
  finish();
  return true;
}

void TrainingSession::leave() {
  if (trains_on_ || !busy()) return detachAll();
  if (!worker_) return;
  timer_.stop();
  queue_.clear();
  left_workers().push_back(worker_.release());
  paused_ = false;
  markLeft(*run_, "The window was closed before the run ended. The written part is shown.");
  emit ended(run_);
  emit stateChanged();
}

bool TrainingSession::leftBehind() { return !left_workers().empty(); }

void TrainingSession::change(const QString& key, const QString& value) {
  if (!worker_) return;
  try {
    worker_->change(key.toStdString(), value.toStdString());
  } catch (const Failure& problem) {
    fail(QString::fromUtf8(problem.what()));
  }
}

void TrainingSession::setTraceLevel(prof::TraceLevel level) {
  if (worker_) worker_->setTraceLevel(level);
}

TrainControl* TrainingSession::control() { return worker_ ? worker_->control() : nullptr; }

}  // namespace ws::app
