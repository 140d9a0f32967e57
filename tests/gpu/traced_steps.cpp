// What tracing costs a real training step: MNIST, 784-128-10, batches of 64, untraced, at each level and under bare
// CUPTI with the same kinds, and what is left of the cost when tracing has stopped. Ratios are of neighbours in time;
// the fastest ratio is the fastest traced round to the fastest untraced one, which other users of the host touch least.
//   traced_steps OUT.json [ROUNDS [WAY]]   WAY: a part of the name of those to measure, "graph of 1"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "engine/devices/devices.h"
#include "engine/passes/compile.h"
#include "engine/executor/executor.h"
#include "profiling/base/clock.h"
#include "profiling/collectors/collector.h"
#include "profiling/cupti/gpu_source.h"
#include "tests/gpu/bare_cupti.h"
#include "tests/support/one_step.h"

namespace ws {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kSeconds = 0.25;

struct Way {
  const char* name;
  Launch launch;
  int64_t graph_steps;
  Fusion fusion;
  SyncPolicy sync;
};
constexpr Way kWays[] = {
    {"graph of 100 steps", Launch::Graph, 100, Fusion::Epilogue, SyncPolicy::OnRead},
    {"graph of 1 step", Launch::Graph, 1, Fusion::Epilogue, SyncPolicy::OnRead},
    {"eager, fused", Launch::Eager, 1, Fusion::Epilogue, SyncPolicy::OnRead},
    {"eager, not fused", Launch::Eager, 1, Fusion::Off, SyncPolicy::OnRead},
};

// Whole epochs of MNIST over and over, without a new shuffle.
class Loop {
 public:
  Loop(const Way& way, const data::Dataset& data) {
    spec_.exec.device = Device::Cuda;
    spec_.exec.launch = way.launch, spec_.exec.graph_steps = way.graph_steps;
    spec_.exec.fusion = way.fusion, spec_.exec.sync = way.sync;
    spec_.exec.allocator = way.launch == Launch::Graph ? Allocator::Arena : Allocator::Caching;
    spec_.model.hidden = {128};
    spec_.train.batch = 64, spec_.train.optimizer = Optimizer::Sgd;
    executor_ = make_executor(spec_);
    const Model model = make_model(spec_.model, data.features, data.outputs);
    executor_->load(model, data, spec_);
    executor_->set_state(test::initial_state(model, spec_));
    const CompiledPlan compiled = compile(spec_, model, spec_.train.batch);
    std::vector<uint32_t> order(static_cast<size_t>(data.train.rows));
    std::iota(order.begin(), order.end(), 0u);
    std::swap(order.front(), order.back());
    executor_->begin_epoch(order);
    executor_->bind(compiled.plan);
    rates_.assign(900, 1e-3f);
    run(1000);
  }

  double run(int64_t least) {  // µs a step
    const int64_t begin = prof::steady_ns();
    int64_t done = 0;
    for (; done < least; done += 900) {
      executor_->run(step_, 0, rates_);
      step_ += 900;
      executor_->results(results_, false);
    }
    results_.clear();
    executor_->results(results_, true);
    return static_cast<double>(prof::steady_ns() - begin) * 1e-3 / static_cast<double>(done);
  }
  double measure() { return run(static_cast<int64_t>(kSeconds * 1e6 / run(1800))); }

 private:
  RunSpec spec_;
  std::unique_ptr<Executor> executor_;
  std::vector<float> rates_;
  std::vector<StepResult> results_;
  int64_t step_ = 0;
};

struct Traced {
  double us = 0;
  uint64_t kernels = 0, lost = 0;
};

double under_bare_cupti(const Way& way, const data::Dataset& data, const char* kinds) {
  prof::testing::bare_start(prof::testing::bare_kinds(kinds));
  const double us = Loop(way, data).measure();
  prof::testing::bare_stop();
  return us;
}

Traced traced(const Way& way, const data::Dataset& data, prof::CollectorOptions options) {
  options.gpu = prof::cupti_gpu_source();
  Traced result;
  prof::Collector collector;
  collector.start(options);
  const auto take = [&] {
    for (prof::TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) {
      for (const auto& track : batch.tracks)
        result.kernels += track.kind == prof::TrackKind::Stream ? track.spans.size() : 0;
    }
  };
  std::jthread reader([&](const std::stop_token& end) {
    while (!end.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(33));
      take();
    }
  });
  {
    Loop loop(way, data);
    result.us = loop.measure();
  }
  reader.request_stop();
  reader.join();
  collector.stop();
  take();
  const prof::Losses lost = collector.status().losses;
  result.lost = lost.dropped_records + lost.invalid_records + lost.unjoined_kernels;
  return result;
}

struct Level {
  const char* name;
  prof::CollectorOptions options;
  const char* bare;  // the same kinds of records without a collector
};
const std::vector<Level>& levels() {
  using prof::TraceLevel;
  static const std::vector<Level> all{
      {"steps", {.level = TraceLevel::Steps}, nullptr},
      {"graph", {.level = TraceLevel::Graph}, "bare-graph"},
      {"20 of 2000 steps by kernel", {.level = TraceLevel::Graph, .node_window = 20, .node_every = 2000}, nullptr},
      {"kernels", {.level = TraceLevel::Kernels}, "bare-joined"},
      {"full", {.level = TraceLevel::Full}, "bare-full"}};
  return all;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Samples {
  std::vector<double> untraced, us, ratio, after, bare_us, bare_ratio, over_bare;
  uint64_t kernels = 0, lost = 0;
};

// Untraced and traced in turn, so that a change of clocks falls on both.
void sample(const Way& way, const data::Dataset& data, const Level& level, Samples& samples) {
  const double before = Loop(way, data).measure();
  const Traced with = traced(way, data, level.options);
  const double after = Loop(way, data).measure();
  samples.untraced.insert(samples.untraced.end(), {before, after});
  samples.us.push_back(with.us);
  samples.ratio.push_back(with.us / std::midpoint(before, after));
  samples.after.push_back(after / before);
  samples.kernels += with.kernels, samples.lost += with.lost;
  if (!level.bare) return;
  const double bare = under_bare_cupti(way, data, level.bare);
  samples.bare_us.push_back(bare);
  samples.bare_ratio.push_back(bare / after);
  samples.over_bare.push_back(with.us / bare);
}

Json row_of(const Samples& samples) {
  const auto [low, high] = std::ranges::minmax(samples.ratio);
  Json row{{"us", median(samples.us)},
           {"ratio", median(samples.ratio)},
           {"low", low},
           {"high", high},
           {"fastest_ratio", std::ranges::min(samples.us) / std::ranges::min(samples.untraced)},
           {"after_ratio", median(samples.after)},
           {"kernels", samples.kernels},
           {"lost", samples.lost}};
  if (samples.bare_ratio.empty()) return row;
  row["bare_ratio"] = median(samples.bare_ratio);
  row["bare_fastest_ratio"] = std::ranges::min(samples.bare_us) / std::ranges::min(samples.untraced);
  row["over_bare"] = median(samples.over_bare);
  return row;
}

Json measure(const Way& way, const data::Dataset& data, int rounds) {
  std::map<std::string, Samples> samples;
  for (int round = 0; round < rounds; ++round)
    for (const Level& level : levels()) sample(way, data, level, samples[level.name]);
  std::vector<double> untraced;
  for (const auto& [name, taken] : samples)
    untraced.insert(untraced.end(), taken.untraced.begin(), taken.untraced.end());
  Json rows{{"untraced_us", median(untraced)}};
  for (const Level& level : levels()) {
    rows["levels"][level.name] = row_of(samples[level.name]);
    std::printf("%-20s %-28s %s\n", way.name, level.name, rows["levels"][level.name].dump().c_str());
  }
  return rows;
}

}  // namespace
}  // namespace ws

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::runtime_error("traced_steps OUT.json [ROUNDS [WAY]]");
    if (!ws::device_info().cuda) throw std::runtime_error(ws::device_info().why_not);
    const ws::data::Dataset data = ws::data::load(ws::data::DataSpec{});
    ws::Json out{{"gpu", ws::device_info().name}, {"network", "784-128-10, batch 64, fp32, SGD"}};
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
    const std::string_view wanted = argc > 3 ? argv[3] : "";
    for (const ws::Way& way : ws::kWays) {
      if (std::string_view(way.name).find(wanted) != std::string_view::npos)
        out["steps"][way.name] = ws::measure(way, data, rounds);
    }
    std::ofstream(argv[1]) << out.dump(1) << "\n";
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
