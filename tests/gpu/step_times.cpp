// Times the ladder of execution choices and the networks of the race on this machine, and prints JSON.
//   step_times [OUT.json] [only: part of a case's name]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/devices/devices.h"
#include "engine/passes/compile.h"
#include "engine/executor/executor.h"
#include "tests/gpu/read_speed.h"
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

// Sets are loaded when the first case asks for them.
const data::Dataset& loaded(const data::DataSpec& spec) {
  static std::map<std::pair<std::string, int64_t>, data::Dataset> sets;
  const auto key = std::make_pair(spec.name, spec.points);
  if (!sets.contains(key)) sets[key] = data::load(spec);
  return sets[key];
}

// Steps of whole batches, epoch after epoch, without a new shuffle: what a step costs.
class Stopwatch {
 public:
  Stopwatch(Executor& executor, const Case& c) : executor_(executor), rows_(loaded(c.spec.data).train.rows) {
    batch_ = c.spec.train.batch ? std::min(c.spec.train.batch, rows_) : rows_;
    per_epoch_ = rows_ / batch_;
    chunk_ = batch_ == rows_ ? std::max<int64_t>(1, c.spec.exec.graph_steps) : per_epoch_;
    lrs_.assign(static_cast<size_t>(chunk_), 1e-3f);
  }
  int64_t batch() const { return batch_; }
  double run(int64_t least_steps) {
    const double begin = now();
    int64_t done = 0;
    while (done < least_steps) {
      executor_.run(step_, 0, lrs_);
      step_ += chunk_, done += chunk_;
      executor_.results(results_, false);
    }
    executor_.results(results_, true);
    if (!results_.empty() && results_.front().step == 0) first_loss_ = results_.front().loss;
    if (!results_.empty()) last_loss_ = results_.back().loss;
    results_.clear();
    return (now() - begin) * 1e6 / static_cast<double>(done);
  }
  float first_loss() const { return first_loss_; }
  float last_loss() const { return last_loss_; }

 private:
  Executor& executor_;
  int64_t rows_, batch_ = 0, per_epoch_ = 0, chunk_ = 0, step_ = 0;
  std::vector<float> lrs_;
  std::vector<StepResult> results_;
  float first_loss_ = 0, last_loss_ = 0;
};

// A line is a matter of reading its points: how that compares with reading and nothing else, measured here and now.
void add_bandwidth(Json& row, const Case& c) {
  const int64_t bytes = loaded(c.spec.data).train.rows * 2 * static_cast<int64_t>(sizeof(float));
  const double read = test::microseconds_to_read(bytes), own = row["us_per_step"];
  row["bytes_read"] = bytes;
  row["gb_per_s"] = 1e-3 * static_cast<double>(bytes) / own;
  row["plain_read_gb_per_s"] = 1e-3 * static_cast<double>(bytes) / read;
  row["share_of_plain_read"] = read / own;
  std::printf("%-44s %9.0f GB/s; a kernel that only reads them %.0f GB/s: %.0f %%\n", "", row["gb_per_s"].get<double>(),
              row["plain_read_gb_per_s"].get<double>(), 100 * read / own);
}

Json measure(const Case& c) {
  const data::Dataset& data = loaded(c.spec.data);
  const auto executor = make_executor(c.spec);
  const Model model = make_model(c.spec.model, data.features, data.outputs);
  executor->load(model, data, c.spec);
  executor->set_state(test::initial_state(model, c.spec));
  Stopwatch watch(*executor, c);
  const CompiledPlan compiled = compile(c.spec, model, watch.batch());
  std::vector<uint32_t> order(static_cast<size_t>(data.train.rows));
  std::iota(order.begin(), order.end(), 0u);
  if (watch.batch() < data.train.rows) std::swap(order.front(), order.back());
  executor->begin_epoch(order);
  executor->bind(compiled.plan);
  watch.run(1);
  const double guess = watch.run(20);
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) times.push_back(watch.run(static_cast<int64_t>(kSecondsEach * 1e6 / guess) + 1));
  std::ranges::sort(times);
  const AllocatorCalls calls = executor->allocator_calls();
  Json row{{"case", c.name},
           {"us_per_step", times[kRepeats / 2]},
           {"fastest", times.front()},
           {"slowest", times.back()},
           {"ops", compiled.plan.ops.size()},
           {"peak_bytes", executor->memory().peak},
           {"first_loss", watch.first_loss()},
           {"last_loss", watch.last_loss()},
           {"device_allocations", calls.device_allocate},
           {"plan_allocations", calls.allocate}};
  std::printf("%-44s %9.2f us/step  (%.2f to %.2f)\n", c.name.c_str(), times[kRepeats / 2], times.front(),
              times.back());
  if (c.spec.model.kind == ModelKind::Linear && c.spec.exec.fusion == Fusion::Epilogue) add_bandwidth(row, c);
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
  spec.exec.launch = Launch::Graph;
  spec.exec.graph_steps = 100;
  return spec;
}

RunSpec iris() {
  RunSpec spec = network({5}, 0, Precision::Fp32);
  spec.data.name = "iris";
  return spec;
}

RunSpec line(int64_t points, Fusion fusion) {
  RunSpec spec = network({}, 0, Precision::Fp32);
  spec.data.name = "line";
  spec.data.points = points, spec.data.validation = 0;
  spec.model.kind = ModelKind::Linear;
  spec.model.loss = LossKind::MeanSquared;
  spec.exec.fusion = fusion;
  return spec;
}

// Each rung changes one thing.
void add_ladder(std::vector<Case>& cases, const std::string& name, RunSpec spec) {
  const auto rung = [&](const char* what) { cases.push_back({"ladder " + name + ": " + what, spec}); };
  spec.exec = ExecSpec{};
  spec.exec.device = Device::Cuda;
  spec.exec.allocator = Allocator::Direct;
  spec.exec.sync = SyncPolicy::EveryOp;
  spec.exec.fusion = Fusion::Off;
  rung("direct");
  spec.exec.allocator = Allocator::Caching;
  rung("+ pool");
  spec.exec.sync = SyncPolicy::OnRead;
  rung("+ no sync");
  spec.exec.fusion = Fusion::Epilogue;
  rung("+ fused");
  spec.exec.launch = Launch::Graph;
  spec.exec.graph_steps = 100;
  spec.exec.allocator = Allocator::Arena;
  rung("+ graph");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases{{"iris 4-5-3 full fp32", iris()}};
  for (const int64_t batch : {64, 128, 512, 0})
    cases.push_back({"mnist 784-128-10 b" + std::to_string(batch) + " tf32", network({128}, batch, Precision::Tf32)});
  for (const Precision p : {Precision::Fp32, Precision::Bf16, Precision::Fp16})
    cases.push_back({"mnist 784-128-10 b64 " + std::string(to_string(p)), network({128}, 64, p)});
  RunSpec deep = network({784, 784, 784, 784}, 64, Precision::Tf32);
  deep.model.bias = false;
  cases.push_back({"mnist 784x5-10 b64 tf32", deep});
  for (const Precision p : {Precision::Fp16, Precision::Tf32})
    for (const int64_t w : {16, 128, 1024, 4096})
      cases.push_back({"mnist 784-w-w-w-10 b32 " + std::string(to_string(p)) + " w" + std::to_string(w),
                       network({w, w, w}, 32, p)});
  for (const Fusion fusion : {Fusion::Epilogue, Fusion::Off}) {
    cases.push_back({"line 50k " + std::string(to_string(fusion)), line(50'000, fusion)});
    cases.push_back({"line 5M " + std::string(to_string(fusion)), line(5'000'000, fusion)});
  }
  cases.push_back({"line 50M epilogue", line(50'000'000, Fusion::Epilogue)});
  add_ladder(cases, "mnist b64", network({128}, 64, Precision::Fp32));
  add_ladder(cases, "iris", iris());
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
      std::printf("%-44s %s\n", c.name.c_str(), problem.what());
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
