#include "app/core/experiments/step_times.h"

#include <algorithm>
#include <chrono>

#include "engine/devices/devices.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"
#include "profiling/base/clock.h"

namespace ws::app {
namespace {

using Clock = std::chrono::steady_clock;

// An executor that runs complete batches, over and over the training rows.
class Treadmill {
 public:
  Treadmill(const RunSpec& spec, const data::Dataset& data) : spec_(spec), rows_(data.train.rows) {
    batch_ = spec.train.batch == 0 ? rows_ : std::min(spec.train.batch, rows_);
    const Model model = make_model(spec.model, data);
    plan_ = compile(spec, model, batch_);
    executor_ = make_executor(spec);
    executor_->load(model, data, spec);
    executor_->set_state(first_state(model, spec));
    executor_->begin_epoch(epoch_order(spec.train, rows_, 0));
    executor_->bind(plan_.plan);
  }

  // Returns the seconds for `steps` steps, including the wait for the device.
  double run(int64_t steps) {
    const auto begin = Clock::now();
    for (int64_t left = steps; left > 0;) {
      const int64_t whole = (rows_ - row_) / batch_;
      if (whole == 0) {
        row_ = 0;
        continue;
      }
      const int64_t count = std::min({left, whole, int64_t{256}});
      const std::vector<float> rates(static_cast<size_t>(count), static_cast<float>(spec_.train.lr));
      executor_->run(step_, row_, rates);
      step_ += count;
      row_ += count * batch_;
      left -= count;
    }
    results_.clear();
    executor_->results(results_, true);
    return prof::seconds_since(begin);
  }
  int64_t batch() const { return batch_; }
  std::string device() const { return executor_->device_name(); }

 private:
  RunSpec spec_;
  int64_t rows_, batch_ = 0, step_ = 0, row_ = 0;
  CompiledPlan plan_;
  std::unique_ptr<Executor> executor_;
  std::vector<StepResult> results_;
};

// Returns how many steps a stretch of about `seconds` needs, in whole graphs.
int64_t steps_for(Treadmill& mill, double seconds, int64_t unit) {
  int64_t steps = unit;
  mill.run(steps);  // the first loads kernels and captures graphs
  for (;;) {
    const double took = mill.run(steps);
    if (took > seconds / 4)
      return std::max(unit, static_cast<int64_t>(seconds / took * static_cast<double>(steps)) / unit * unit);
    steps *= 2;
  }
}

}  // namespace

StepTimes time_steps(const RunSpec& spec, const data::Dataset& data, double seconds) {
  Treadmill mill(spec, data);
  const int64_t steps = steps_for(mill, seconds, steps_at_once(spec));
  return {mill.run(steps) * 1e6 / static_cast<double>(steps), steps, mill.batch(), mill.device()};
}

}  // namespace ws::app
