// What the programs that time training steps share: a network with its executor, the stopwatch, the report.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "engine/devices/devices.h"
#include "engine/executor/executor.h"
#include "engine/passes/compile.h"
#include "tests/support/one_step.h"

namespace ws::test {

using Json = nlohmann::ordered_json;
inline constexpr int kRepeats = 5;

struct Case {
  std::string name;
  RunSpec spec;
};

// Sets are loaded when the first case asks for them.
inline const data::Dataset& loaded(const data::DataSpec& spec) {
  static std::map<std::pair<std::string, int64_t>, data::Dataset> sets;
  const auto key = std::make_pair(spec.name, spec.points);
  if (!sets.contains(key)) sets[key] = data::load(spec);
  return sets[key];
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A training that is bound and warm. Steps of whole batches, epoch after epoch, without a new shuffle: what a step costs.
class TimedCase {
 public:
  // `whole_set_chunk`: steps a call where a batch is the whole set.
  TimedCase(const RunSpec& spec, int64_t whole_set_chunk) : TimedCase(spec, whole_set_chunk, loaded(spec.data)) {}
  TimedCase(const RunSpec& spec, int64_t whole_set_chunk, const data::Dataset& data) : data_(data) {
    const int64_t rows = data_.train.rows, batch = spec.train.batch ? std::min(spec.train.batch, rows) : rows;
    const Model model = make_model(spec.model, data_);
    executor_ = make_executor(spec);
    executor_->load(model, data_, spec);
    executor_->set_state(initial_state(model, spec));
    std::vector<uint32_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), 0u);
    if (batch < rows) std::swap(order.front(), order.back());
    executor_->begin_epoch(order);
    plan_ = compile(spec, model, batch).plan;
    const double begin = now();
    executor_->bind(plan_);
    bind_seconds_ = now() - begin;
    chunk_ = batch == rows ? whole_set_chunk : rows / batch;
    lrs_.assign(static_cast<size_t>(chunk_), 1e-3f);
    run(1);
    guess_us_ = run(20);
  }

  // µs a step, over about 30 ms.
  double measure(double seconds = 0.03) {
    times_.push_back(run(static_cast<int64_t>(seconds * 1e6 / guess_us_) + 1));
    return times_.back();
  }
  void forget() { times_.clear(); }
  Json times() {
    std::ranges::sort(times_);
    return {{"us_per_step", times_[times_.size() / 2]}, {"fastest", times_.front()}, {"slowest", times_.back()}};
  }
  Executor& executor() { return *executor_; }
  const Plan& plan() const { return plan_; }
  double bind_seconds() const { return bind_seconds_; }
  float first_loss() const { return first_loss_; }
  float last_loss() const { return last_loss_; }

 private:
  // µs a step.
  double run(int64_t least_steps) {
    const double begin = now();
    int64_t done = 0;
    while (done < least_steps) {
      executor_->run(step_, 0, lrs_);
      step_ += chunk_, done += chunk_;
      executor_->results(results_, false);
    }
    executor_->results(results_, true);
    if (!results_.empty() && results_.front().step == 0) first_loss_ = results_.front().loss;
    if (!results_.empty()) last_loss_ = results_.back().loss;
    results_.clear();
    return (now() - begin) * 1e6 / static_cast<double>(done);
  }

  const data::Dataset& data_;
  std::unique_ptr<Executor> executor_;
  Plan plan_;
  int64_t chunk_ = 0, step_ = 0;
  std::vector<float> lrs_;
  std::vector<StepResult> results_;
  std::vector<double> times_;
  double bind_seconds_ = 0, guess_us_ = 1;
  float first_loss_ = 0, last_loss_ = 0;
};

// Plain SGD on the GPU, a hundred steps a graph where graphs are launched.
inline RunSpec network(std::vector<int64_t> hidden, int64_t batch, Precision precision) {
  RunSpec spec;
  spec.exec.device = Device::Cuda;
  spec.model.hidden = std::move(hidden);
  spec.train.batch = batch;
  spec.train.optimizer = Optimizer::Sgd;
  spec.exec.precision = precision;
  spec.exec.launch = Launch::Graph;
  spec.exec.graph_steps = 100;
  return spec;
}

inline RunSpec iris() {
  RunSpec spec = network({5}, 0, Precision::Fp32);
  spec.data.name = "iris";
  return spec;
}

inline RunSpec line(int64_t points) {
  RunSpec spec = network({}, 0, Precision::Fp32);
  spec.data.name = "line";
  spec.data.points = points, spec.data.validation = 0;
  spec.model.kind = ModelKind::Linear;
  spec.model.loss = LossKind::MeanSquared;
  return spec;
}

// The program: [OUT.json] [only: part of a case's name]. A case that fails is reported in its place.
template <class Measure>
int time_cases(int argc, char** argv, std::vector<Case> (*all_cases)(), Measure measure) try {
  const std::string out = argc > 1 ? argv[1] : "", only = argc > 2 ? argv[2] : "";
  const DeviceInfo& device = device_info();
  if (!device.cuda) {
    std::printf("%s\n", device.why_not.c_str());
    return 0;
  }
  Json report{{"gpu", device.name}, {"driver", device.driver}, {"cuda", device.runtime}, {"repeats", kRepeats}};
  for (const Case& c : all_cases()) {
    if (c.name.find(only) == std::string::npos) continue;
    try {
      report["cases"].push_back(measure(c));
    } catch (const std::exception& problem) {
      std::printf("%-44s %s\n", c.name.c_str(), problem.what());
      report["cases"].push_back({{"case", c.name}, {"failed", problem.what()}});
    }
    std::fflush(stdout);
  }
  if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}

}  // namespace ws::test
