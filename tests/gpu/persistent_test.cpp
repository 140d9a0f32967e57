// One kernel for many steps ends where the CPU interpreter in float64 ends, and where the other launch modes end.
#include <cuda_runtime_api.h>

#include "engine/cuda/executor/persistent_executor.h"
#include "engine/devices/devices.h"
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

Training persistent_training(std::vector<int64_t> hidden, int64_t batch, data::Dataset data) {
  if (slow_gpu()) cuda::PersistentExecutor::seconds_to_wait = 60;  // compute-sanitizer runs
  Training t;
  t.spec.exec.device = Device::Cuda;
  t.spec.exec.launch = Launch::Persistent;
  t.spec.model.hidden = std::move(hidden);
  t.spec.train.optimizer = Optimizer::Sgd;
  t.spec.train.lr = 0.05;
  t.batch = batch;
  t.data = std::move(data);
  return t;
}

double largest_loss_error(const Outcome& got, const Outcome& want) {
  if (got.results.size() != want.results.size() || got.results.empty()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < want.results.size(); ++i) {
    const double error = std::abs(double{got.results[i].loss} - double{want.results[i].loss});
    const double relative = error / std::max(1e-3, std::abs(double{want.results[i].loss}));
    worst = relative <= worst ? worst : relative;
  }
  return worst;
}

data::Dataset images(int64_t rows) {
  data::DataSpec spec;
  spec.name = "mnist";
  spec.limit = rows;
  return data::load(spec);
}

// 200 steps of real images, whole batches and one that is not whole.
void expect_images_as_oracle(int64_t batch, Optimizer optimizer, std::initializer_list<Precision> precisions,
                             std::vector<int64_t> hidden = {128}) {
  std::string name = "784";
  for (const int64_t units : hidden) name += "-" + std::to_string(units);
  Training t = persistent_training(std::move(hidden), batch, images(100 * batch - 40));
  t.epochs = 2;
  t.spec.train.optimizer = optimizer;
  // At these rates a relu that rounding turns on or off does not change the losses that follow.
  t.spec.train.lr = optimizer == Optimizer::Adam ? 1e-4 : optimizer == Optimizer::Momentum ? 1e-3 : 1e-2;
  const Outcome want = train_on_oracle(t);
  for (const Precision precision : precisions) {
    t.spec.exec.precision = precision;
    const Outcome got = train_on_gpu(t);
    const double error = largest_loss_error(got, want), apart = distance(got, want, t);
    Training other = t;
    other.spec.exec.launch = Launch::Graph;
    const double in_graphs = largest_loss_error(train_on_gpu(other), want);
    std::printf("%s-10 b%lld %s %s: loss %.2e, weights %.2e from float64; in graphs loss %.2e\n", name.c_str(),
                static_cast<long long>(batch), std::string(to_string(optimizer)).c_str(),
                std::string(to_string(precision)).c_str(), error, apart, in_graphs);
    // Rounding adds up over deep networks: there the other launch mode says what the precision can reach.
    const double allowed = precision == Precision::Fp32 ? 1e-5 : precision == Precision::Bf16 ? 2e-2 : 5e-4;
    EXPECT_LT(error, std::max(allowed, 1.5 * in_graphs));
    ASSERT_EQ(got.results.size(), want.results.size());
    for (size_t i = 0; i < got.results.size(); ++i)
      EXPECT_NEAR(got.results[i].accuracy, want.results[i].accuracy, precision == Precision::Fp32 ? 0.016 : 0.07);
  }
}

TEST(Persistent, ImagesInFp32) {
  NEEDS_GPU();
  expect_images_as_oracle(64, Optimizer::Sgd, {Precision::Fp32});
}
TEST(Persistent, ImagesInTf32) {
  NEEDS_GPU();
  expect_images_as_oracle(64, Optimizer::Sgd, {Precision::Tf32});
}
TEST(Persistent, ImagesInSixteenBits) {
  NEEDS_GPU();
  expect_images_as_oracle(64, Optimizer::Sgd, {Precision::Fp16, Precision::Bf16});
}
TEST(Persistent, ImagesWithMomentum) {
  NEEDS_GPU();
  expect_images_as_oracle(64, Optimizer::Momentum, {Precision::Fp32, Precision::Tf32, Precision::Fp16});
}
TEST(Persistent, ImagesWithAdam) {
  NEEDS_GPU();
  expect_images_as_oracle(64, Optimizer::Adam, {Precision::Tf32, Precision::Fp16});
}
// Expects as many skipped steps as in a CUDA graph: each halves the scale and leaves the weights as they are.
void expect_skipped_steps(Training t, int64_t skipped) {
  t.spec.exec.precision = Precision::Fp16;
  const Outcome got = train_on_gpu(t);
  Training other = t;
  other.spec.exec.launch = Launch::Graph;
  const Outcome want = train_on_gpu(other);
  std::printf("loss scale %g, in graphs %g; weights %.2e apart\n", got.state.loss_scale, want.state.loss_scale,
              distance(got, want, t));
  EXPECT_EQ(got.state.loss_scale, std::ldexp(65536., -static_cast<int>(skipped)));
  EXPECT_EQ(want.state.loss_scale, got.state.loss_scale);
  EXPECT_LT(distance(got, want, t), 0.02);
}
TEST(Persistent, StepsThatOverflowAreSkipped) {
  NEEDS_GPU();
  // One row is so large that its hidden units overflow: the outputs' gradients are NaN.
  Training t = persistent_training({128}, 64, random_data(640, 784, 10, true));
  for (int64_t i = 0; i < 784; ++i) t.data.train.x[static_cast<size_t>(200 * 784 + i)] = i % 2 ? 6e4f : 3e4f;
  t.epochs = 2;
  expect_skipped_steps(t, 2);
  // Large weights of the output layer and few rows: only gradients of hidden units overflow.
  Training large = persistent_training({128}, 2, random_data(40, 784, 10, true));
  large.spec.model.init = Init::Normal;
  large.spec.train.lr = 1e-6;
  expect_skipped_steps(large, 2);
}

TEST(Persistent, ImagesInLargerBatches) {
  NEEDS_GPU();
  expect_images_as_oracle(128, Optimizer::Sgd, {Precision::Tf32, Precision::Fp16});
}

TEST(Persistent, ImagesInAGrid) {
  NEEDS_GPU();
  expect_images_as_oracle(32, Optimizer::Momentum, {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16},
                          {160, 160});
  expect_images_as_oracle(64, Optimizer::Sgd, {Precision::Tf32}, {400, 400});
  expect_images_as_oracle(64, Optimizer::Sgd, {Precision::Tf32}, {784, 784, 784, 784});
}

TEST(Persistent, ImagesInCopiesOfLayers) {
  NEEDS_GPU();
  expect_images_as_oracle(32, Optimizer::Sgd, {Precision::Fp16, Precision::Bf16}, {128, 128, 128});
  expect_images_as_oracle(64, Optimizer::Momentum, {Precision::Fp16}, {64, 100});
}

TEST(Persistent, ImagesInSeveralClusters) {
  NEEDS_GPU();
  expect_images_as_oracle(512, Optimizer::Sgd, {Precision::Tf32});
  expect_images_as_oracle(200, Optimizer::Momentum, {Precision::Tf32, Precision::Bf16});
}

// 200 steps over all rows at once.
void expect_whole_set_as_oracle(int64_t rows, Optimizer optimizer, std::initializer_list<Precision> precisions) {
  Training t = persistent_training({128}, rows, images(rows));
  t.batch = t.data.train.rows;
  t.steps_an_epoch = 200;
  t.spec.train.optimizer = optimizer;
  t.spec.train.lr = optimizer == Optimizer::Adam ? 1e-4 : optimizer == Optimizer::Momentum ? 1e-2 : 0.1;
  const Outcome want = train_on_oracle(t);
  for (const Precision precision : precisions) {
    t.spec.exec.precision = precision;
    const Outcome got = train_on_gpu(t);
    const double error = largest_loss_error(got, want);
    Training other = t;
    other.spec.exec.launch = Launch::Graph;
    const double in_graphs = largest_loss_error(train_on_gpu(other), want);
    std::printf("784-128-10 all %lld rows %s %s: loss %.2e, weights %.2e from float64; in graphs loss %.2e\n",
                static_cast<long long>(rows), std::string(to_string(optimizer)).c_str(),
                std::string(to_string(precision)).c_str(), error, distance(got, want, t), in_graphs);
    EXPECT_LT(error, std::max(precision == Precision::Bf16 ? 2e-2 : 2e-3, 1.5 * in_graphs));
    ASSERT_EQ(got.results.size(), want.results.size());
    for (size_t i = 0; i < got.results.size(); ++i)
      EXPECT_NEAR(got.results[i].accuracy, want.results[i].accuracy, 0.01);
  }
}
TEST(Persistent, ImagesInAFlow) {
  NEEDS_GPU();
  expect_whole_set_as_oracle(3000, Optimizer::Sgd, {Precision::Tf32, Precision::Bf16});
  expect_whole_set_as_oracle(1001, Optimizer::Momentum, {Precision::Tf32});
  expect_whole_set_as_oracle(2049, Optimizer::Adam, {Precision::Tf32, Precision::Bf16});
}

constexpr Activation kActivations[] = {Activation::None, Activation::Relu, Activation::Sigmoid, Activation::Tanh,
                                       Activation::Gelu};
constexpr Optimizer kOptimizers[] = {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam};
constexpr LossKind kLosses[] = {LossKind::CrossEntropy, LossKind::MeanSquared};

void expect_as_oracle(const Training& t) {
  SCOPED_TRACE(std::string(to_string(t.spec.model.activation)) + " " + std::string(to_string(t.spec.train.optimizer)) +
               " " + std::string(to_string(t.spec.model.loss)) + " " + std::string(to_string(t.spec.exec.precision)) +
               " batch " + std::to_string(t.batch));
  const Outcome want = train_on_oracle(t), got = train_on_gpu(t);
  const double allowed = tolerance(t.spec.exec.precision), apart = distance(got, want, t);
  // The first steps of adam divide a gradient by its own size: what rounding adds to a small one counts in full.
  double weights_allowed = t.spec.train.optimizer == Optimizer::Adam ? 4 * allowed : allowed;
  if (!(apart < weights_allowed)) {
    // Rounding turned a relu on or off: then it does so in the other launch mode, too.
    Training other = t;
    other.spec.exec.launch = Launch::Graph;
    weights_allowed = std::max(weights_allowed, 1.5 * distance(train_on_gpu(other), want, t));
  }
  EXPECT_LT(apart, weights_allowed);
  expect_same_losses(got, want, allowed);
}

// Every activation, optimizer and loss, the precisions in turn. Each combination is compiled: `every` of more than 1
// leaves out all but every so-manieth. `all_rows`: the batch is the whole data set.
void expect_every_choice(std::vector<int64_t> hidden, int64_t features, int64_t outputs, int64_t batch,
                         std::initializer_list<Precision> precisions, int every = 1, bool all_rows = false) {
  Combinations combinations;
  int number = 0;
  for (const Activation activation : kActivations)
    for (const Optimizer optimizer : kOptimizers)
      for (const LossKind loss : kLosses) {
        const Precision precision = precisions.begin()[static_cast<size_t>(number++) % precisions.size()];
        if ((number - 1) % every != 0 || combinations.leave_out()) continue;
        Training t = persistent_training(
            hidden, batch,
            random_data(all_rows ? batch : 3 * batch + batch / 2, features, outputs, loss == LossKind::CrossEntropy));
        if (all_rows) t.steps_an_epoch = 4;
        t.spec.model.activation = activation;
        t.spec.model.loss = loss;
        t.spec.train.optimizer = optimizer;
        t.spec.train.weight_decay = number % 2 ? 0.01 : 0;
        t.spec.model.bias = number % 7 != 0;
        t.spec.exec.precision = precision;
        if (optimizer == Optimizer::Adam) t.spec.train.lr = 1e-3;
        expect_as_oracle(t);
      }
}

TEST(Persistent, EveryChoiceInRows) {
  NEEDS_GPU();
  expect_every_choice({5}, 4, 3, 33, {Precision::Fp32, Precision::Tf32});
}
TEST(Persistent, EveryChoiceInABlock) {
  NEEDS_GPU();
  expect_every_choice({40, 24}, 27, 9, 35, {Precision::Fp32, Precision::Tf32},
                      5);  // of 30: each loss with each optimizer
}
TEST(Persistent, EveryChoiceInAClusterOfTf32) {
  NEEDS_GPU();
  expect_every_choice({120}, 60, 10, 64, {Precision::Tf32, Precision::Fp32, Precision::Tf32});
}
TEST(Persistent, EveryChoiceInAClusterOfHalves) {
  NEEDS_GPU();
  expect_every_choice({120}, 60, 10, 50, {Precision::Fp16, Precision::Bf16, Precision::Fp16});
}
TEST(Persistent, EveryChoiceInANarrowCluster) {
  NEEDS_GPU();
  expect_every_choice({50}, 300, 5, 100, {Precision::Tf32, Precision::Fp16, Precision::Fp32});
}

TEST(Persistent, EveryChoiceInCopiesOfLayers) {
  NEEDS_GPU();
  expect_every_choice({50, 120, 30}, 60, 10, 50, {Precision::Fp16, Precision::Bf16}, 3);
  expect_every_choice({100, 40}, 300, 5, 20, {Precision::Bf16, Precision::Fp16}, 4);
}
TEST(Persistent, EveryChoiceInSeveralClusters) {
  NEEDS_GPU();
  expect_every_choice({50}, 300, 5, 200, {Precision::Tf32, Precision::Bf16}, 4);
}

// Both losses in turn: a flow in tf32 computes cross-entropy only.
TEST(Persistent, EveryChoiceInAFlow) {
  NEEDS_GPU();
  expect_every_choice({120}, 60, 10, 700, {Precision::Tf32, Precision::Bf16}, 3, true);
  expect_every_choice({50}, 300, 16, 3001, {Precision::Tf32, Precision::Bf16}, 9, true);
}

TEST(Persistent, EveryChoiceInADeepGrid) {
  NEEDS_GPU();
  expect_every_choice({72, 200, 40}, 60, 10, 64, {Precision::Tf32, Precision::Fp16, Precision::Fp32, Precision::Bf16},
                      3);
}
TEST(Persistent, EveryChoiceInAWideGrid) {
  NEEDS_GPU();
  expect_every_choice({300}, 30, 21, 50, {Precision::Fp32, Precision::Tf32, Precision::Fp16}, 4);
}

TEST(Persistent, ALineInOneBlockAndInAll) {
  NEEDS_GPU();
  for (const int64_t rows : {50, 1000, 50000, 700001, 3000000}) {
    Training t = persistent_training({}, rows, random_data(rows, 1, 1, false));
    t.spec.model.kind = ModelKind::Linear;
    t.spec.model.loss = LossKind::MeanSquared;
    t.steps_an_epoch = 50;
    expect_as_oracle(t);
  }
}

TEST(Persistent, TwoRunsOfAFlowAreTheSameBits) {
  NEEDS_GPU();
  for (const Precision precision : {Precision::Tf32, Precision::Bf16}) {
    Training t = persistent_training({128}, 20000, random_data(20000, 784, 10, true));
    t.spec.exec.precision = precision;
    t.spec.train.optimizer = Optimizer::Momentum;
    t.spec.train.lr = 0.01;
    t.steps_an_epoch = 60;
    EXPECT_TRUE(same_bits(train_on_gpu(t), train_on_gpu(t))) << to_string(precision);
  }
}

TEST(Persistent, TwoRunsAreTheSameBits) {
  NEEDS_GPU();
  // In one cluster, in several, with copies of layers (in 16 bits), and on all multiprocessors.
  const std::pair<std::vector<int64_t>, int64_t> networks[] = {
      {{128}, 64}, {{128}, 200}, {{64, 64}, 64}, {{600, 600}, 64}};
  for (const Precision precision : kPrecisions)
    for (const auto& [hidden, batch] : networks) {
      if (batch > 128 && (precision == Precision::Fp32 || precision == Precision::Fp16)) continue;  // in no cluster
      Training t = persistent_training(hidden, batch, random_data(2000, 784, 10, true));
      t.spec.exec.precision = precision;
      t.spec.train.optimizer = Optimizer::Momentum;
      t.spec.train.lr = 0.001;
      t.epochs = 3;
      EXPECT_TRUE(same_bits(train_on_gpu(t), train_on_gpu(t))) << to_string(precision);
    }
}

// A training that was saved and continues in another process ends with the same bits.
TEST(Persistent, ARestartEndsWithTheSameBits) {
  NEEDS_GPU();
  const std::tuple<std::vector<int64_t>, Precision, int64_t> cases[] = {
      {{160, 160}, Precision::Tf32, 64}, {{160, 160}, Precision::Bf16, 64}, {{160, 160}, Precision::Fp16, 64},
      {{128}, Precision::Tf32, 64},      {{128}, Precision::Tf32, 200},     {{64, 64}, Precision::Fp16, 64},
      {{128}, Precision::Tf32, 3000}};
  for (const auto& [hidden, precision, batch] : cases) {
    const int64_t rows = batch > 512 ? batch : batch * 60;  // in a flow the batch is the whole set
    SCOPED_TRACE(std::string(to_string(precision)) + " " + std::to_string(hidden.front()) + " " +
                 std::to_string(batch));
    Training t = persistent_training(hidden, batch, random_data(rows, 784, 10, true));
    t.spec.exec.precision = precision;
    t.spec.train.optimizer = Optimizer::Momentum;
    t.spec.train.lr = 0.005;
    const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
    const std::vector<float> rates(60, static_cast<float>(t.spec.train.lr));
    const auto run = [&, all = rows, rows = batch](const TrainState& from, int64_t step) {
      const auto executor = cuda::make_cuda_executor(device_info().name);
      executor->load(model, t.data, t.spec);
      executor->set_state(from);
      executor->begin_epoch(shuffled(all, 1));
      executor->bind(compile(t.spec, model, rows).plan);
      std::vector<TrainState> states;
      for (const int64_t end : {20, 60})
        if (step < end) {
          executor->run(step, all > rows ? step * rows : 0,
                        std::span(rates).subspan(static_cast<size_t>(step), static_cast<size_t>(end - step)));
          states.push_back(executor->state());
          step = end;
        }
      return states;
    };
    const std::vector<TrainState> whole = run(initial_state(model, t.spec), 0);
    const std::vector<TrainState> continued = run(whole.front(), 20);
    EXPECT_TRUE(whole.back().parameters == continued.back().parameters);
    EXPECT_FALSE(whole.front().parameters == continued.back().parameters);
  }
}

// Small enough for compute-sanitizer.
void expect_a_few_steps_as_oracle(std::vector<int64_t> hidden, Precision precision, int64_t batch = 64) {
  Training t = persistent_training(std::move(hidden), batch, random_data(2 * batch, 60, 10, true));
  t.spec.exec.precision = precision;
  t.spec.train.optimizer = Optimizer::Momentum;
  expect_as_oracle(t);
}
TEST(Persistent, AFewStepsInFewBlocks) {
  NEEDS_GPU();
  expect_a_few_steps_as_oracle({5}, Precision::Fp32);
  expect_a_few_steps_as_oracle({40, 24}, Precision::Tf32);
  expect_a_few_steps_as_oracle({120}, Precision::Tf32);
  expect_a_few_steps_as_oracle({120}, Precision::Fp16);
  expect_a_few_steps_as_oracle({50, 120}, Precision::Bf16);
}
TEST(Persistent, AFewStepsInSeveralClusters) {
  NEEDS_GPU();
  expect_a_few_steps_as_oracle({120}, Precision::Tf32, 200);
}
TEST(Persistent, AFewStepsInAFlow) {
  NEEDS_GPU();
  Training t = persistent_training({120}, 700, random_data(700, 60, 10, true));
  t.steps_an_epoch = 3;
  t.spec.exec.precision = Precision::Tf32;
  t.spec.train.optimizer = Optimizer::Adam;
  t.spec.train.lr = 1e-3;
  expect_as_oracle(t);
}
TEST(Persistent, AFewStepsInAGrid) {
  NEEDS_GPU();
  expect_a_few_steps_as_oracle({72, 200, 40}, Precision::Tf32);
  // More than 64 units and values in a block's tile, and moments that do not fit on the chip.
  expect_a_few_steps_as_oracle({1000, 900}, Precision::Tf32);
  expect_a_few_steps_as_oracle({784, 784, 784, 784}, Precision::Tf32);
  expect_a_few_steps_as_oracle({72, 200}, Precision::Fp16);
  expect_a_few_steps_as_oracle({72, 200}, Precision::Bf16);
}

// An executor that changes its launch mode goes on where it was, with the optimizer's state.
TEST(Persistent, ModesChangeInMidRun) {
  NEEDS_GPU();
  for (const std::vector<int64_t>& hidden :
       {std::vector<int64_t>{128}, std::vector<int64_t>{16, 16}, std::vector<int64_t>{160, 160}}) {
    Training t = persistent_training(hidden, 64, random_data(640, 100, 10, true));
    t.spec.train.optimizer = Optimizer::Adam;
    t.spec.train.lr = 1e-3;
    Training graph = t;
    graph.spec.exec.launch = Launch::Graph;
    graph.epochs = 3;
    const Outcome want = train_on_gpu(graph);
    const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
    const auto executor = cuda::make_cuda_executor(device_info().name);
    executor->load(model, t.data, t.spec);
    executor->set_state(initial_state(model, t.spec));
    Outcome got;
    const Launch modes[] = {Launch::Persistent, Launch::Eager, Launch::Persistent};
    int64_t step = 0;
    for (unsigned epoch = 0; epoch < 3; ++epoch) {
      RunSpec spec = t.spec;
      spec.exec.launch = modes[epoch];
      executor->begin_epoch(shuffled(640, t.order_seed + epoch));
      executor->bind(compile(spec, model, 64).plan);
      const auto lr = static_cast<float>(t.spec.train.lr);
      std::vector<float> rates;
      for (int64_t i = 0; i < 10; ++i) rates.push_back(lr * (1.f - 0.05f * static_cast<float>((step + i) % 7)));
      executor->run(step, 0, std::span(rates).first(4));
      executor->run(step + 4, 4 * 64, std::span(rates).subspan(4));
      step += 10;
      EXPECT_EQ(executor->evaluate(Part::Test).rows, 640);
    }
    executor->results(got.results, true);
    got.state = executor->state();
    EXPECT_LT(distance(got, want, t), tolerance(Precision::Fp32));
    expect_same_losses(got, want, tolerance(Precision::Fp32));
  }
}

void expect_end_after_a_lost_message(std::vector<int64_t> hidden, Precision precision = Precision::Fp32,
                                     int64_t batch = 64, int64_t batches = 10) {
  Training t = persistent_training(std::move(hidden), batch, random_data(batches * batch, 784, 10, true));
  t.spec.exec.precision = precision;
  const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
  const auto executor = cuda::make_cuda_executor(device_info().name);
  executor->load(model, t.data, t.spec);
  executor->set_state(initial_state(model, t.spec));
  executor->begin_epoch(shuffled(batches * batch, 0));
  executor->bind(compile(t.spec, model, batch).plan);
  const TrainState before = executor->state();
  const std::vector<float> rates(10, 0.001f);
  std::vector<StepResult> results;
  cuda::PersistentExecutor::seconds_to_wait = 0.02;
  cuda::PersistentExecutor::lose_message_at = 3;
  executor->run(0, 0, rates);
  cuda::PersistentExecutor::lose_message_at = -1;
  cuda::PersistentExecutor::seconds_to_wait = 1;
  try {
    executor->results(results, true);
    ADD_FAILURE() << "the kernel did not end itself";
  } catch (const Failure& problem) {
    EXPECT_THAT(problem.what(), testing::HasSubstr("waited too long for "));
  }
  EXPECT_EQ(executor->state().parameters, before.parameters);
  executor->set_state(before);
  executor->run(0, 0, rates);  // the GPU is as it was
  results.clear();
  executor->results(results, true);
  EXPECT_EQ(results.size(), 10u);
}
TEST(Persistent, ALostMessageEndsTheClusterWithASentence) {
  NEEDS_GPU();
  expect_end_after_a_lost_message({128});
}
TEST(Persistent, ALostMessageEndsSeveralClustersWithASentence) {
  NEEDS_GPU();
  expect_end_after_a_lost_message({128}, Precision::Tf32, 512);
}
TEST(Persistent, ALostMessageEndsCopiesWithASentence) {
  NEEDS_GPU();
  expect_end_after_a_lost_message({128, 128}, Precision::Fp16);
}
TEST(Persistent, ALostMessageEndsTheFlowWithASentence) {
  NEEDS_GPU();
  expect_end_after_a_lost_message({128}, Precision::Tf32, 3000, 1);
}
TEST(Persistent, ALostMessageEndsTheGridWithASentence) {
  NEEDS_GPU();
  expect_end_after_a_lost_message({160, 160});
}

// The same bits as the launch mode that it stands for, and a note that names it.
TEST(Persistent, AutoIsTheFastestThatFits) {
  NEEDS_GPU();
  for (const Launch expected : {Launch::Persistent, Launch::Graph, Launch::Eager}) {
    SCOPED_TRACE(to_string(expected));
    const bool fits = expected != Launch::Graph;
    Training t = persistent_training(fits ? std::vector<int64_t>{20} : std::vector<int64_t>{4096, 4096}, 64,
                                     random_data(640, 30, 10, true));
    if (expected == Launch::Eager) t.spec.exec.allocator = Allocator::Direct;
    Training by_name = t;
    t.spec.exec.launch = Launch::Auto, by_name.spec.exec.launch = expected;
    EXPECT_TRUE(same_bits(train_on_gpu(t), train_on_gpu(by_name)));
    const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
    const auto executor = cuda::make_cuda_executor(device_info().name);
    executor->load(model, t.data, t.spec);
    executor->bind(compile(t.spec, model, 64).plan);
    const char* const note = expected == Launch::Persistent ? "in one kernel"
                             : expected == Launch::Graph    ? "auto runs graphs"
                                                            : "auto runs op by op";
    EXPECT_THAT(executor->notes().front(), testing::HasSubstr(note));
  }
}

TEST(Persistent, ReportsWhyANetworkDoesNotFit) {
  NEEDS_GPU();
  const Training t = persistent_training({4096, 4096}, 64, random_data(640, 784, 10, true));
  const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
  const auto executor = cuda::make_cuda_executor(device_info().name);
  executor->load(model, t.data, t.spec);
  executor->set_state(initial_state(model, t.spec));
  try {
    executor->bind(compile(t.spec, model, 64).plan);
    ADD_FAILURE() << "a network of two large layers was bound";
  } catch (const Failure& problem) {
    EXPECT_THAT(problem.what(), testing::StartsWith("persistent: "));
    EXPECT_THAT(problem.what(), testing::HasSubstr("KB of shared memory"));
  }
}

}  // namespace
}  // namespace ws::test
