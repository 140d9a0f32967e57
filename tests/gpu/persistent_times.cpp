// Times persistent kernels beside CUDA graphs on this machine, both in turn, and prints JSON.
//   persistent_times [OUT.json] [only: part of a case's name]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/devices/devices.h"
#include "engine/passes/compile.h"
#include "engine/executor/executor.h"
#include "tests/support/one_step.h"

namespace ws {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kRepeats = 5;
constexpr double kSecondsEach = 0.03;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Case {
  std::string name;
  RunSpec spec;
};

const data::Dataset& loaded(const data::DataSpec& spec) {
  static std::map<std::pair<std::string, int64_t>, data::Dataset> sets;
  const auto key = std::make_pair(spec.name, spec.points);
  if (!sets.contains(key)) sets[key] = data::load(spec);
  return sets[key];
}

// Whole batches, epoch after epoch, without a new shuffle: what a step costs.
class Side {
 public:
  Side(RunSpec spec, Launch launch) : spec_(std::move(spec)), data_(loaded(spec_.data)) {
    spec_.exec.launch = launch;
    const int64_t rows = data_.train.rows, batch = spec_.train.batch ? std::min(spec_.train.batch, rows) : rows;
    const Model model = make_model(spec_.model, data_.features, data_.outputs);
    executor_ = make_executor(spec_);
    executor_->load(model, data_, spec_);
    executor_->set_state(test::initial_state(model, spec_));
    std::vector<uint32_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), 0u);
    if (batch < rows) std::swap(order.front(), order.back());
    executor_->begin_epoch(order);
    const double begin = now();
    executor_->bind(compile(spec_, model, batch).plan);
    bind_seconds_ = now() - begin;
    chunk_ = batch == rows ? 1000 : rows / batch;
    lrs_.assign(static_cast<size_t>(chunk_), 1e-3f);
    run(1);
    guess_ = run(20);
  }
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
  void measure() { times_.push_back(run(static_cast<int64_t>(kSecondsEach * 1e6 / guess_) + 1)); }
  Json json() {
    std::ranges::sort(times_);
    Json out{{"us_per_step", times_[kRepeats / 2]}, {"fastest", times_.front()}, {"slowest", times_.back()},
             {"bind_seconds", bind_seconds_},       {"first_loss", first_loss_}, {"last_loss", last_loss_}};
    for (const std::string& note : executor_->notes())
      if (!note.empty() && spec_.exec.launch == Launch::Persistent) out["note"] = note;
    return out;
  }

 private:
  RunSpec spec_;
  const data::Dataset& data_;
  std::unique_ptr<Executor> executor_;
  int64_t chunk_ = 0, step_ = 0;
  std::vector<float> lrs_;
  std::vector<StepResult> results_;
  std::vector<double> times_;
  double bind_seconds_ = 0, guess_ = 1;
  float first_loss_ = 0, last_loss_ = 0;
};

Json measure(const Case& c) {
  Json row{{"case", c.name}};
  Side graph(c.spec, Launch::Graph), persistent(c.spec, Launch::Persistent);
  for (int i = 0; i < kRepeats; ++i) graph.measure(), persistent.measure();
  row["graph"] = graph.json(), row["persistent"] = persistent.json();
  const double a = row["graph"]["us_per_step"], b = row["persistent"]["us_per_step"];
  std::printf("%-36s graph %7.2f  persistent %6.2f (%.2f to %.2f) us/step, bind %.2f s; last loss %.5f %.5f\n",
              c.name.c_str(), a, b, row["persistent"]["fastest"].get<double>(),
              row["persistent"]["slowest"].get<double>(), row["persistent"]["bind_seconds"].get<double>(),
              row["graph"]["last_loss"].get<double>(), row["persistent"]["last_loss"].get<double>());
  std::fflush(stdout);
  return row;
}

RunSpec network(std::vector<int64_t> hidden, int64_t batch, Precision precision) {
  RunSpec spec;
  spec.exec.device = Device::Cuda;
  spec.model.hidden = std::move(hidden);
  spec.train.batch = batch;
  spec.train.optimizer = Optimizer::Sgd;
  spec.exec.precision = precision;
  spec.exec.graph_steps = 100;
  return spec;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  RunSpec iris = network({5}, 0, Precision::Fp32);
  iris.data.name = "iris";
  cases.push_back({"iris 4-5-3 full fp32", iris});
  for (const Precision p : {Precision::Tf32, Precision::Fp16, Precision::Bf16, Precision::Fp32})
    cases.push_back({"mnist 784-128-10 b64 " + std::string(to_string(p)), network({128}, 64, p)});
  for (const Precision p : {Precision::Tf32, Precision::Fp16})
    cases.push_back({"mnist 784-128-10 b128 " + std::string(to_string(p)), network({128}, 128, p)});
  for (const Optimizer o : {Optimizer::Momentum, Optimizer::Adam}) {
    RunSpec spec = network({128}, 64, Precision::Tf32);
    spec.train.optimizer = o;
    cases.push_back({"mnist 784-128-10 b64 tf32 " + std::string(to_string(o)), spec});
  }
  RunSpec smooth = network({128}, 64, Precision::Tf32);
  smooth.model.activation = Activation::Tanh;
  cases.push_back({"mnist 784-128-10 b64 tf32 tanh", smooth});
  RunSpec blobs = network({16, 16}, 64, Precision::Fp32);
  blobs.data.name = "blobs";
  cases.push_back({"blobs 2-16-16-3 b64 fp32", blobs});
  for (const int64_t points : {1000, 50'000}) {
    RunSpec line = network({}, 0, Precision::Fp32);
    line.data.name = "line";
    line.data.points = points, line.data.validation = 0;
    line.model.kind = ModelKind::Linear;
    line.model.loss = LossKind::MeanSquared;
    cases.push_back({"line " + std::to_string(points), line});
  }
  return cases;
}

int run(const std::string& out, const std::string& only) {
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
      std::printf("%-36s %s\n", c.name.c_str(), problem.what());
      report["cases"].push_back({{"case", c.name}, {"failed", problem.what()}});
    }
  }
  if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace ws

int main(int argc, char** argv) {
  try {
    return ws::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
