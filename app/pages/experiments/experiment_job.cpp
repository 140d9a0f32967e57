#include "app/pages/experiments/experiment_job.h"

#include "engine/devices/devices.h"

namespace ws::app {
void ExperimentJob::start(const ExperimentSpec& spec, const QString& folder) {
  if (running()) return;
  folder_ = folder;
  struct Forward final : ExperimentSink {
    Forward(ExperimentJob* whole, const Job::Side& its_side) : job(whole), side(its_side) {}
    void begins(const Trial& trial, int repeat, int done, int of) override {
      side.tell([job = job, label = QString::fromStdString(trial.label), repeat, done, of] {
        emit job->began(label, repeat, done, of);
      });
    }
    void ended(const TrialRun&) override {
      side.tell([job = job] { emit job->trained(); });
    }
    ExperimentJob* job;
    const Job::Side& side;
  };
  const auto work = [this, spec, path = folder.toStdString()](const Job::Side& side) {
    Forward sink(this, side);
    if (!run_experiment(spec, path, *side.cancelled(), sink).complete && gpu_lost())
      throw Failure("A fault on the GPU ended a training. Run the experiment again and it goes on with the next one.");
  };
  job_.start(work, [this](const QString& problem) { emit ended(problem); });
}

}  // namespace ws::app
