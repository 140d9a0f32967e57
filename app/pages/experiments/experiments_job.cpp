#include "app/pages/experiments/experiments_job.h"

#include <QMetaObject>

#include "engine/devices/devices.h"

namespace ws::app {
namespace {

class Forward final : public ExperimentSink {
 public:
  explicit Forward(ExperimentJob* job) : job_(job) {}
  void begins(const Trial& trial, int repeat, int done, int of) override {
    const auto tell = [job = job_, label = QString::fromStdString(trial.label), repeat, done, of] {
      emit job->began(label, repeat, done, of);
    };
    QMetaObject::invokeMethod(job_, tell, Qt::QueuedConnection);
  }
  void ended(const TrialRun&) override {
    QMetaObject::invokeMethod(
        job_, [job = job_] { emit job->trained(); }, Qt::QueuedConnection);
  }

 private:
  ExperimentJob* job_;
};

}  // namespace

void ExperimentJob::start(const ExperimentSpec& spec, const QString& folder) {
  if (running_) return;
  thread_ = {};
  cancel_ = false;
  running_ = true;
  folder_ = folder;
  thread_ = std::jthread([this, spec, path = folder.toStdString()] {
    QString problem;
    try {
      Forward sink(this);
      if (!run_experiment(spec, path, cancel_, sink).complete && gpu_lost())
        problem = tr("A fault on the GPU ended a training. Run the experiment again and it goes on with the next one.");
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    QMetaObject::invokeMethod(
        this,
        [this, problem] {
          running_ = false;
          emit ended(problem);
        },
        Qt::QueuedConnection);
  });
}

}  // namespace ws::app
