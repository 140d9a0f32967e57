// A sink that remembers everything, for tests of the trainer.
#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "engine/train/train_control.h"
#include "engine/train/trainer.h"

namespace ws::test {

struct Recorder : TrainSink {
  void started(const RunSpec&, const Model&, const CompiledPlan&, const data::Dataset&, Executor& e) override {
    executor = &e;
  }
  void recompiled(const CompiledPlan& plan) override { plans.push_back(plan.plan.id); }
  void steps(std::span<const StepResult> results) override {
    std::lock_guard lock(mutex);
    for (const StepResult& r : results) {
      losses.push_back(r.loss);
      numbers.push_back(r.step);
      times.push_back(r.finished_s);
    }
    if (on_steps) on_steps();
  }
  void epoch(const EpochResult& e, Executor&) override { epochs.push_back(e); }
  void progress(const Progress& p) override { last = p; }
  void changed(const Change& c) override { changes.push_back(c); }
  void refused(const Change& c, const std::string& why) override { refusals.push_back(c.key + ": " + why); }
  void finished(const Summary&) override { ++endings; }

  size_t count() const {
    std::lock_guard lock(mutex);
    return losses.size();
  }

  mutable std::mutex mutex;
  Executor* executor = nullptr;
  std::function<void()> on_steps;  // called with the mutex held
  std::vector<float> losses;
  std::vector<int64_t> numbers;
  std::vector<double> times;
  std::vector<EpochResult> epochs;
  std::vector<Change> changes;
  std::vector<std::string> refusals, plans;
  Progress last;
  int endings = 0;
};

// A small network for random_data(…, 6 features, 3 classes).
inline RunSpec small_spec() {
  RunSpec spec;
  spec.exec.device = Device::Cpu;
  spec.model.hidden = {8};
  spec.train.batch = 16;
  spec.train.epochs = 3;
  spec.train.lr = 0.05;
  return spec;
}

struct Trained {
  Summary summary;
  std::vector<float> losses;
};

// Trains until the end, or stops once this many results have come.
inline Trained trained(const RunSpec& spec, const data::Dataset& data, const TrainOptions& options = {}, size_t stop_after = 0) {
  TrainControl control;
  Recorder sink;
  if (stop_after)
    sink.on_steps = [&] {
      if (sink.losses.size() >= stop_after) control.stop();
    };
  Trained out{train(spec, data, control, sink, options), {}};
  out.losses = sink.losses;
  return out;
}

}  // namespace ws::test
