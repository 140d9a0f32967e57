// A training step on the CPU: the interpreter, by network and fusion level.
#include <benchmark/benchmark.h>

#include "engine/cpu/cpu_executor.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"

namespace {

using namespace ws;

// 8 batches of made-up rows in the shape of the preset's data.
data::Dataset rows_like(int64_t features, int64_t classes, int64_t rows) {
  data::Dataset data;
  data.name = "made up";
  data.features = features;
  data.outputs = classes;
  data.train.rows = rows;
  data.train.x.resize(static_cast<size_t>(rows * features));
  for (size_t i = 0; i < data.train.x.size(); ++i) data.train.x[i] = static_cast<float>(i * 2654435761u % 1000) / 1000;
  for (int64_t r = 0; r < rows; ++r) data.train.labels.push_back(static_cast<int32_t>(r % classes));
  return data;
}

void time_steps(benchmark::State& state, RunSpec spec, const data::Dataset& data, int64_t batch) {
  spec.exec.device = Device::Cpu;
  const Model model = make_model(spec.model, data);
  const auto plan = compile(spec, model, batch);
  auto executor = make_cpu_executor();
  executor->load(model, data, spec);
  executor->set_state(first_state(model, spec));
  executor->begin_epoch(epoch_order(spec.train, data.train.rows, 0));
  executor->bind(plan.plan);
  const std::vector<float> rates(8, 0.01f);
  std::vector<StepResult> results;
  int64_t done = 0;
  for (auto _ : state) {
    executor->run(done, 0, rates);
    done += 8;
    results.clear();
    executor->results(results, true);
  }
  state.SetItemsProcessed(done * batch);
  state.counters["time_per_step"] =
      benchmark::Counter(static_cast<double>(done), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void step(benchmark::State& state, std::vector<int64_t> hidden, int64_t features, int64_t classes, int64_t batch,
          Fusion fusion) {
  RunSpec spec;
  spec.exec.fusion = fusion;
  spec.model.hidden = std::move(hidden);
  time_steps(state, spec, rows_like(features, classes, 8 * batch), batch);
}

// The network of the preset "MNIST, convolutions".
void convolutions(benchmark::State& state, int64_t batch, Fusion fusion) {
  RunSpec spec;
  spec.exec.fusion = fusion;
  spec.model.layers = "conv 3x3 16 | relu | maxpool 2 | conv 3x3 32 | relu | maxpool 2 | linear";
  data::Dataset data = rows_like(784, 10, 8 * batch);
  data.image_width = data.image_height = 28;
  time_steps(state, spec, data, batch);
}

BENCHMARK_CAPTURE(step, mnist_unfused, {128}, 784, 10, 64, Fusion::Off)->UseRealTime();
BENCHMARK_CAPTURE(step, mnist_pointwise, {128}, 784, 10, 64, Fusion::Pointwise)->UseRealTime();
BENCHMARK_CAPTURE(step, mnist_epilogue, {128}, 784, 10, 64, Fusion::Epilogue)->UseRealTime();
BENCHMARK_CAPTURE(step, deep_epilogue, {784, 784, 784}, 784, 10, 128, Fusion::Epilogue)->UseRealTime();
BENCHMARK_CAPTURE(step, iris_epilogue, {5}, 4, 3, 16, Fusion::Epilogue)->UseRealTime();
BENCHMARK_CAPTURE(convolutions, digits_epilogue, 64, Fusion::Epilogue)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
