// Looking into a network: what its layers give, what a head attends to, and how it continues a text.
#include "engine/cpu/inspector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <numeric>

#include "engine/cpu/cpu_executor.h"
#include "engine/train/trainer.h"
#include "tests/engine/train/train_support.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

const auto kGoOn = [] { return true; };

RunSpec inspected_spec(const char* layers) {
  RunSpec spec = test::small_spec();
  spec.model.layers = layers;
  spec.model.init = Init::Xavier;
  return spec;
}

struct Inspected {
  Inspected(const char* layers, data::Dataset of, uint64_t seed = 3)
      : spec(inspected_spec(layers)), data(std::move(of)), model(make_model(spec.model, data)),
        inspector(spec, data) {
    spec.train.seed = seed;
    state = first_state(model, spec);
    inspector.set_parameters(state.parameters);
  }
  std::span<const float> row(int64_t i) const {
    return std::span(data.test.x).subspan(static_cast<size_t>(i * data.features), static_cast<size_t>(data.features));
  }
  std::vector<float> predicted(int64_t i) const {
    const auto executor = make_cpu_executor();
    executor->load(model, data, spec);
    executor->set_state(state);
    return executor->predict(row(i), 1);
  }

  RunSpec spec;
  data::Dataset data;
  Model model;
  TrainState state;
  Inspector inspector;
};

constexpr const char* kPictureNet =
    "conv 3x3 4 | batchnorm | relu | maxpool 2 | residual(conv 3x3 4 | relu | dropout 0.5) | avgpool | linear";
constexpr const char* kTextNet = "embed 8 | 2 x block(heads 2, dropout 0.1) | layernorm | linear";

TEST(Inspector, KeepsWhatEveryLayerOfAPictureGives) {
  Inspected net(kPictureNet, test::random_pictures(6, 8, 3, 5));
  const Inspection made = net.inspector.inspect(net.row(2));
  ASSERT_EQ(made.outputs.size(), net.model.layers.size());
  for (size_t i = 0; i < made.outputs.size(); ++i)
    EXPECT_EQ(static_cast<int64_t>(made.outputs[i].size()), net.model.layers[i].out.elements()) << net.model.layers[i].name;
  EXPECT_EQ(made.outputs.back(), net.predicted(2));
  EXPECT_THAT(made.outputs[2], testing::Each(testing::Ge(0.0f)));  // relu
  const auto join = std::ranges::find(net.model.layers, LayerKind::Join, [](const NetworkLayer& l) { return l.layer.kind; });
  const auto at = static_cast<size_t>(join - net.model.layers.begin());
  for (size_t v = 0; v < made.outputs[at].size(); ++v)
    EXPECT_FLOAT_EQ(made.outputs[at][v], made.outputs[at - 1][v] + made.outputs[3][v]);
}

TEST(Inspector, TakesNewWeights) {
  Inspected net(kPictureNet, test::random_pictures(6, 8, 3, 5));
  const auto before = net.inspector.inspect(net.row(0)).outputs;
  for (auto& values : net.state.parameters)
    for (float& v : values) v *= 1.25f;
  net.inspector.set_parameters(net.state.parameters);
  const auto after = net.inspector.inspect(net.row(0)).outputs;
  EXPECT_NE(before, after);
  EXPECT_EQ(after.back(), net.predicted(0));
}

TEST(Inspector, AHeadSharesOutWhatCameBefore) {
  Inspected net(kTextNet, test::random_text(4, 48, 7));
  const Inspection made = net.inspector.inspect(net.row(1));
  EXPECT_EQ(made.outputs.back(), net.predicted(1));
  int maps = 0;
  for (size_t i = 0; i < made.attention.size(); ++i) {
    const bool attends = made.model->layers[i].layer.kind == LayerKind::Attention;
    ASSERT_EQ(made.attention[i].size(), attends ? 2u * 48 * 48 : 0u);
    maps += attends;
    for (size_t row = 0; row < made.attention[i].size() / 48; ++row) {
      const auto shares = std::span(made.attention[i]).subspan(row * 48, 48);
      EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-5);
      EXPECT_THAT(std::vector<float>(shares.begin() + static_cast<std::ptrdiff_t>(row % 48) + 1, shares.end()), testing::Each(0.0f));
    }
  }
  EXPECT_EQ(maps, 2);
}

// What stands behind a symbol must not change what the network makes of it.
TEST(Inspector, AShortTextIsTheBeginningOfALongOne) {
  Inspected net(kTextNet, test::random_text(4, 48, 7));
  const Inspection whole = net.inspector.inspect(net.row(1)), part = net.inspector.inspect(net.row(1).first(5));
  ASSERT_EQ(part.outputs.back().size(), 5u * 7);
  for (size_t i = 0; i < part.outputs.back().size(); ++i) EXPECT_NEAR(part.outputs.back()[i], whole.outputs.back()[i], 1e-5);
  const auto attends = static_cast<size_t>(
      std::ranges::find(whole.model->layers, LayerKind::Attention, [](const NetworkLayer& l) { return l.layer.kind; }) -
      whole.model->layers.begin());
  ASSERT_EQ(part.attention[attends].size(), 2u * 5 * 5);
  for (size_t head = 0; head < 2; ++head)
    for (size_t row = 0; row < 5; ++row)
      for (size_t col = 0; col < 5; ++col)
        EXPECT_NEAR(part.attention[attends][(head * 5 + row) * 5 + col], whole.attention[attends][(head * 48 + row) * 48 + col], 1e-5);
}

TEST(Inspector, WritesTheSameTextForTheSameSeed) {
  Inspected net(kTextNet, test::random_text(4, 48, 7));
  const std::vector<int32_t> prompt{1, 4, 2};
  const auto text = net.inspector.write(prompt, {60, 1.0, 5}, kGoOn);  // longer than the context
  EXPECT_EQ(text.size(), 60u);
  EXPECT_THAT(text, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(7))));
  EXPECT_EQ(net.inspector.write(prompt, {60, 1.0, 5}, kGoOn), text);
  EXPECT_NE(net.inspector.write(prompt, {60, 1.0, 6}, kGoOn), text);
  int left = 4;
  EXPECT_EQ(net.inspector.write(prompt, {60, 1.0, 5}, [&left] { return left-- > 0; }).size(), 4u);
}

TEST(Inspector, WithoutTemperatureTheLikeliestSymbolIsNext) {
  Inspected net(kTextNet, test::random_text(4, 48, 7));
  const std::vector<int32_t> prompt{1, 4, 2, 6};
  const auto scores = net.inspector.inspect(std::vector<float>(prompt.begin(), prompt.end())).outputs.back();
  const auto last = std::span(scores).last(7);
  const auto best = static_cast<int32_t>(std::ranges::max_element(last) - last.begin());
  EXPECT_EQ(net.inspector.write(prompt, {1, 0, 1}, kGoOn), std::vector<int32_t>{best});
  EXPECT_EQ(net.inspector.write(prompt, {1, 0, 2}, kGoOn), std::vector<int32_t>{best});
}

// A look copies the weights between two steps and does the rest on a thread of its own.
std::vector<float> losses_while_watched(const char* layers, const data::Dataset& data, bool watched) {
  RunSpec spec = inspected_spec(layers);
  spec.train.batch = 4;
  spec.train.epochs = 12;
  TrainControl control;
  test::Recorder sink;
  Inspector inspector(spec, data);
  std::vector<std::future<void>> looks;
  const std::vector<float> row(data.test.x.begin(), data.test.x.begin() + data.features);
  const auto look = [&](Executor& executor) {
    auto parameters = executor.state().parameters;
    if (!looks.empty()) looks.back().wait();
    looks.push_back(std::async(std::launch::async, [&inspector, &row, p = std::move(parameters), text = data.context > 0]() mutable {
      inspector.set_parameters(std::move(p));
      inspector.inspect(row);
      if (text) inspector.write({0, 1}, {8, 1, 1}, kGoOn);
    }));
  };
  if (watched) sink.on_steps = [&] { control.ask(look); };
  EXPECT_EQ(train(spec, data, control, sink).status, RunStatus::Finished);
  EXPECT_EQ(looks.size() > 3, watched);
  for (auto& each : looks) each.wait();
  return sink.losses;
}

TEST(Inspector, DoesNotChangeALossOfTheTraining) {
  const data::Dataset pictures = test::random_pictures(32, 12, 3, 5), text = test::random_text(32, 32, 7);
  EXPECT_EQ(losses_while_watched(kPictureNet, pictures, true), losses_while_watched(kPictureNet, pictures, false));
  EXPECT_EQ(losses_while_watched(kTextNet, text, true), losses_while_watched(kTextNet, text, false));
}

}  // namespace
}  // namespace ws
