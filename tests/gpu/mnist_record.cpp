// How long MNIST takes to a test accuracy from random weights: trains with several seeds and prints JSON.
//   mnist_record [OUT.json] [goal=99] [KEY=VALUE...]      e.g. mnist_record record.json train.epochs=8 seeds=20
// To 98 % a multilayer perceptron trains in one kernel, with goal=99 a convolutional network in CUDA graphs.
//
// The time of a seed runs from the first order of its rows to the last loss on the host. Loading the data, compiling
// the kernels and one training before are not in it; the test afterwards is not, either.
#include <algorithm>

#include "engine/train/schedule.h"
#include "engine/train/trainer.h"
#include "tests/gpu/timed_case.h"

namespace ws::test {
namespace {

struct Training {
  double milliseconds = 0, accuracy = 0, last_loss = 0;
};

// One executor for all seeds: data and kernels are on the GPU.
class Record {
 public:
  explicit Record(const RunSpec& spec)
      : spec_(spec),
        data_(loaded(spec.data)),
        model_(make_model(spec.model, data_)),
        executor_(make_executor(spec)) {
    const int64_t left = data_.train.rows % spec.train.batch;
    whole_ = compile(spec, model_, spec.train.batch).plan;
    if (left) rest_ = compile(spec, model_, left).plan;
    executor_->load(model_, data_, spec);
    train(0);
  }

  Training train(uint64_t seed) {
    spec_.train.seed = seed;
    executor_->set_state(first_state(model_, spec_));
    const int64_t rows = data_.train.rows, batch = spec_.train.batch, steps = (rows + batch - 1) / batch;
    std::vector<StepResult> results;
    const double begin = now();
    for (int64_t epoch = 0; epoch < spec_.train.epochs; ++epoch) {
      executor_->begin_epoch(epoch_order(spec_.train, rows, epoch));
      run(whole_, epoch * steps, 0, rows / batch, steps);
      if (rows % batch) run(rest_, epoch * steps + steps - 1, rows / batch * batch, 1, steps);
      executor_->results(results, false);
    }
    executor_->results(results, true);
    Training out;
    out.milliseconds = (now() - begin) * 1e3;
    out.last_loss = results.back().loss;
    out.accuracy = executor_->evaluate(Part::Test).accuracy;
    return out;
  }
  int64_t steps() const {
    return spec_.train.epochs * ((data_.train.rows + spec_.train.batch - 1) / spec_.train.batch);
  }

 private:
  void run(const Plan& plan, int64_t step, int64_t row, int64_t count, int64_t steps_per_epoch) {
    executor_->bind(plan);
    std::vector<float> rates;
    for (int64_t i = 0; i < count; ++i)
      rates.push_back(static_cast<float>(learning_rate(spec_.train, step + i, steps_per_epoch)));
    executor_->run(step, row, rates);
  }

  RunSpec spec_;
  const data::Dataset& data_;
  Model model_;
  std::unique_ptr<Executor> executor_;
  Plan whole_, rest_;
};

RunSpec record_spec() {
  RunSpec spec = network({128}, 64, Precision::Tf32);
  spec.data.name = "mnist";
  spec.model.init = Init::Kaiming;
  spec.train.optimizer = Optimizer::Momentum;
  spec.train.lr = 0.1;
  spec.train.schedule = Schedule::Cosine;
  spec.train.epochs = 8;
  spec.exec.launch = Launch::Persistent;
  return spec;
}

RunSpec convolutions_spec() {
  RunSpec spec = record_spec();
  spec.model.layers =
      "conv 5x5 32 stride 2 | relu | conv 3x3 64 | relu | maxpool 2 | conv 4x4 64 padding 0 | relu | maxpool 2 | linear";
  spec.train.batch = 512, spec.train.epochs = 4;
  spec.train.optimizer = Optimizer::AdamW, spec.train.lr = 0.008;
  spec.train.schedule = Schedule::Linear, spec.train.warmup_steps = 50;
  spec.exec.launch = Launch::Graph, spec.exec.precision = Precision::Bf16, spec.exec.graph_steps = 39;
  return spec;
}

int measure(int argc, char** argv) {
  std::string out;
  int seeds = 20, goal = 98;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "goal=99") goal = 99;
  RunSpec spec = goal == 99 ? convolutions_spec() : record_spec();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos)
      out = argument;
    else if (argument.starts_with("seeds="))
      seeds = std::stoi(argument.substr(equals + 1));
    else if (argument.starts_with("goal="))
      continue;
    else
      set_field(spec, argument.substr(0, equals), argument.substr(equals + 1));
  }
  const DeviceInfo& device = device_info();
  if (!device.cuda) {
    std::printf("%s\n", device.why_not.c_str());
    return 0;
  }
  Record record(spec);
  std::vector<double> times, accuracies;
  Json report{{"how", "build/release/tests/gpu/mnist_record; loading, compiling and one training before excluded"},
              {"gpu", device.name},
              {"driver", device.driver},
              {"cuda", device.runtime},
              {"steps", record.steps()},
              {"spec", Json::parse(to_json(spec).dump())}};
  int reached = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Training t = record.train(static_cast<uint64_t>(seed));
    times.push_back(t.milliseconds), accuracies.push_back(t.accuracy);
    reached += t.accuracy >= goal / 100.0;
    report["seeds"].push_back(
        {{"seed", seed}, {"ms", t.milliseconds}, {"accuracy", t.accuracy}, {"last_loss", t.last_loss}});
    std::printf("seed %2d  %7.2f ms  %.2f %%\n", seed, t.milliseconds, 100 * t.accuracy);
  }
  std::ranges::sort(times), std::ranges::sort(accuracies);
  report["median_ms"] = times[times.size() / 2], report["slowest_ms"] = times.back();
  report["median_accuracy"] = accuracies[accuracies.size() / 2], report["lowest_accuracy"] = accuracies.front();
  report["reached_" + std::to_string(goal)] = reached;
  std::printf("%d of %d seeds reached %d %%; median %.2f ms and %.2f %%, lowest %.2f %%; %lld steps\n", reached, seeds, goal,
              times[times.size() / 2], 100 * accuracies[accuracies.size() / 2], 100 * accuracies.front(),
              static_cast<long long>(record.steps()));
  if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace ws::test

int main(int argc, char** argv) {
  try {
    return ws::test::measure(argc, argv);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
