#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "app/core/insights/insight_rules.h"
#include "engine/plan/model.h"

namespace ws::app {
namespace {

using prof::Meaning;
using ::testing::IsEmpty;

std::vector<std::string> rules(const RunFacts& facts) {
  std::vector<std::string> names;
  for (const Insight& i : insights(facts)) names.push_back(i.rule);
  return names;
}

const Insight& named(const std::vector<Insight>& all, const std::string& rule) {
  for (const Insight& i : all)
    if (i.rule == rule) return i;
  throw std::runtime_error("no insight " + rule);
}

RunFacts naive() {
  RunFacts f;
  f.gpu = true;
  f.spec.exec = {};
  f.spec.exec.allocator = Allocator::Direct;
  f.spec.exec.sync = SyncPolicy::EveryOp;
  f.spec.exec.fusion = Fusion::Off;
  f.step_us = 369.2;
  f.part_us[static_cast<size_t>(Meaning::Allocation)] = 195.5;
  f.part_us[static_cast<size_t>(Meaning::Sync)] = 43;
  f.part_us[static_cast<size_t>(Meaning::Launch)] = 67.6;
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 63.1;
  f.kernels_per_step = 20;
  f.allocator_calls_per_step = 34;
  f.classes = 10;
  f.first_loss = 2.3;
  f.last_loss = 0.3;
  return f;
}

TEST(Insights, NaiveStepShowsWhatItPaysFor) {
  RunFacts on_cpu = naive();
  on_cpu.gpu = false;
  EXPECT_EQ(named(insights(on_cpu), "allocator stalls").headline, "allocator calls take 195.5 µs of the median step") << "no GPU waits there";
  const RunFacts facts = naive();
  const auto all = insights(facts);
  EXPECT_THAT(rules(facts), testing::IsSupersetOf({"allocator stalls", "needless syncs", "launch-bound step"}));
  EXPECT_EQ(all[0].rule, "allocator stalls") << "the largest gain stands first";
  EXPECT_NEAR(all[0].predicted_us, 369.2 - 195.5, 1e-9);
  EXPECT_EQ(named(all, "launch-bound step").change.size(), 3u) << "what a graph excludes is changed along";
}

TEST(Insights, EveryChangeThatIsOfferedIsValid) {
  const RunFacts facts = naive();
  for (const Insight& insight : insights(facts)) {
    RunSpec spec = facts.spec;
    for (const auto& [key, value] : insight.change) set_field(spec, key, value);
    EXPECT_FALSE(why_invalid(spec, facts.gpu)) << insight.rule;
  }
}

TEST(Insights, SilentWhenThereIsNothingToSay) {
  RunFacts f;
  f.gpu = true;
  f.spec.exec.launch = Launch::Graph;
  f.spec.exec.precision = Precision::Tf32;
  f.step_us = 20;
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 16;
  f.part_us[static_cast<size_t>(Meaning::Launch)] = 4;
  f.kernels_per_step = 6;
  f.classes = 10;
  f.first_loss = 2.3;
  f.last_loss = 0.1;
  EXPECT_THAT(rules(f), IsEmpty());
}

TEST(Insights, ATinyBatchShowsTheLeastGain) {
  RunFacts f;
  f.gpu = true, f.classes = 10, f.first_loss = 2.3, f.last_loss = 0.1;
  f.spec.exec.launch = Launch::Graph, f.spec.train.batch = 64;
  f.step_us = 20, f.kernels_per_step = 6;
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 5;
  const Insight tiny = named(insights(f), "tiny batch");
  EXPECT_EQ(tiny.no_saving, "at least 2.29 times the samples per second");
  EXPECT_EQ(tiny.change[0].second, "256");
  f.kernels_per_step = 0.1;  // one kernel runs many steps: its waits are inside, and a larger batch may not fit
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("tiny batch")));
}

TEST(Insights, UnfusedChainsAreCountedFromThePlan) {
  RunFacts f = naive();
  const CompiledPlan plan = compile(f.spec, make_model(f.spec.model, 784, 10), 64);
  f.plan = &plan;
  EXPECT_THAT(rules(f), testing::Contains("unfused chains"));
  const Insight found = named(insights(f), "unfused chains");
  EXPECT_EQ(found.headline, "a step has 8 more ops than it needs");
  const RunFacts shown = facts_for(found, f);
  EXPECT_DOUBLE_EQ(shown.part(found.look_at), f.step_us - found.predicted_us) << "the bar shows what the card says that a step saves";
  EXPECT_DOUBLE_EQ(shown.step_us, f.step_us);
}

TEST(Insights, LossRules) {
  RunFacts f = naive();
  f.spec.model.init = Init::Normal;
  f.first_loss = 113;
  EXPECT_EQ(named(insights(f), "initial weights too large").change[0].second, "kaiming");
  f = naive();
  f.diverged = true;
  EXPECT_EQ(named(insights(f), "diverging loss").change[0].second, "0.0125");
  f = naive();
  f.spec.model.init = Init::Zeros;
  f.first_loss = f.last_loss = std::log(10.0);
  EXPECT_THAT(rules(f), testing::Contains("zero weights"));
}

TEST(Insights, LowOccupancyIsNoAdviceForAKernelThatTransfersGradients) {
  RunFacts f;
  f.gpu = true, f.step_us = 100, f.kernels_per_step = 10;
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 90;
  prof::KernelRow large;
  large.key = "all-reduce fc2", large.share = 0.5, large.meaning = Meaning::Communication;
  prof::KernelRow next;
  next.key = "output_layer_kernel", next.share = 0.4, next.meaning = Meaning::Loss;
  f.kernels = {large, next}, f.occupancy = {0.12, 0.9};
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("low occupancy")));
  f.occupancy[1] = 0.12;
  EXPECT_THAT(named(insights(f), "low occupancy").headline, testing::HasSubstr("output_layer_kernel"));
}

// The headline names a share, so its bar has the same.
TEST(Insights, TheBarsHaveTheShareOfTheHeadline) {
  RunFacts program;
  program.whole_trace = true, program.step_us = 500;
  program.part_us[static_cast<size_t>(Meaning::Idle)] = 495, program.part_us[static_cast<size_t>(Meaning::Matrix)] = 5;
  Insight waits{"waits for data", "the step waits for data: 77 % of a step"};
  waits.look_at = Meaning::Idle, waits.share = 0.77;
  const RunFacts shown = facts_for(waits, program);
  EXPECT_DOUBLE_EQ(shown.part(Meaning::Idle), 0.77 * 500);
  EXPECT_DOUBLE_EQ(shown.part(Meaning::Idle) + shown.part(Meaning::Other), 500);
  EXPECT_DOUBLE_EQ(shown.part(Meaning::Matrix), 0);
  waits.share = 0;
  EXPECT_DOUBLE_EQ(facts_for(waits, program).part(Meaning::Idle), 495);
}

TEST(Insights, NamesTheLayerThatTakesMostOfTheKernels) {
  RunFacts f;
  f.gpu = true, f.step_us = 100, f.kernels_per_step = 10;
  f.spec.model.layers = "conv 3x3 8 | relu | conv 3x3 64 | relu | conv 3x3 8 | relu | linear";
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 90;
  for (const auto& [name, share] : {std::pair{"(no layer)", 0.41}, {"conv2", 0.45}, {"conv1", 0.06}, {"conv3", 0.05}, {"fc4", 0.03}}) {
    prof::KernelRow row;
    row.key = name, row.share = share, row.meaning = Meaning::Matrix;
    f.layers.push_back(row);
  }
  EXPECT_EQ(named(insights(f), "one layer").headline, "layer conv2 takes 40 % of a step");
  f.layers[1].share = 0.3;
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("one layer")));
  f.layers[1].share = 0.45, f.layers.resize(4);
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("one layer"))) << "one of three layers is no surprise";
  f.layers.push_back(f.layers[3]), f.spec.model.layers.clear();
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("one layer")));
}

TEST(Insights, NamesTheBlockOfLayers) {
  RunFacts f;
  f.gpu = true, f.step_us = 100, f.kernels_per_step = 10;
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 90;
  f.spec.model.layers = "conv 3x3 4 | residual(conv 3x3 4 | relu) | residual(conv 3x3 4 | relu | conv 3x3 4) | linear";
  const CompiledPlan plan = compile(f.spec, make_model(f.spec.model, LayerShape::picture(8, 8, 1), 10), 4);
  f.plan = &plan;
  const auto shares = [&](std::initializer_list<std::pair<const char*, double>> of) {
    f.layers.clear();
    for (const auto& [name, share] : of) {
      prof::KernelRow row;
      row.key = name, row.share = share, row.meaning = Meaning::Matrix;
      f.layers.push_back(row);
    }
  };
  shares({{"conv2", 0.45}, {"conv1", 0.2}, {"conv3", 0.2}, {"conv4", 0.15}});
  EXPECT_EQ(named(insights(f), "one layer").headline, "layer conv2 of residual 1 takes 40 % of a step");
  shares({{"conv3", 0.3}, {"conv4", 0.3}, {"conv2", 0.2}, {"conv1", 0.2}});
  EXPECT_EQ(named(insights(f), "one block").headline, "residual 2 takes 54 % of a step");
  shares({{"conv2", 0.3}, {"conv1", 0.3}, {"conv3", 0.2}, {"conv4", 0.15}});
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("one block")));
}

TEST(Insights, NamesWhatAnotherFormOfTheNetworkCosts) {
  const auto found = [](const char* layers, LayerShape input, const char* key, const char* value) {
    RunFacts f;
    f.gpu = true, f.step_us = 100;
    f.spec.model.layers = layers;
    set_field(f.spec, key, value);
    const CompiledPlan plan = compile(f.spec, make_model(f.spec.model, input, 10), 8);
    f.plan = &plan;
    return insights(f);
  };
  const char* text = "embed 16 | block(heads 4) | layernorm | linear";
  const Insight scores = named(found(text, LayerShape::symbols(64), "exec.attention", "plain"), "scores in memory");
  EXPECT_THAT(scores.headline, testing::HasSubstr("1.00 MiB")) << "two of 8 · 4 · 64 · 64 numbers";
  EXPECT_EQ(scores.change[0].second, "fused");
  EXPECT_TRUE(found(text, LayerShape::symbols(64), "exec.attention", "fused").empty());
  const char* pictures = "conv 3x3 8 | relu | conv 3x3 8 | relu | avgpool | linear";
  const Insight turned = named(found(pictures, LayerShape::picture(8, 8, 3), "exec.layout", "nchw"), "turned pictures");
  EXPECT_THAT(turned.headline, testing::AllOf(testing::StartsWith("ops that turn pictures"), testing::EndsWith(" % of the bytes of a step")));
  EXPECT_EQ(turned.change[0].second, "nhwc");
}

TEST(Insights, CommunicationThatNothingHides) {
  RunFacts f;
  f.gpu = true, f.step_us = 100;
  f.spec.exec.device = Device::Cuda, f.spec.exec.gpus = 2, f.spec.exec.precision = Precision::Tf32;
  f.part_us[static_cast<size_t>(Meaning::Communication)] = 25, f.part_us[static_cast<size_t>(Meaning::Matrix)] = 75;
  const auto only = [&] {
    std::vector<Insight> found = insights(f);
    std::erase_if(found, [](const Insight& i) { return i.rule != "exposed communication"; });
    return found;
  };
  ASSERT_EQ(only().size(), 1u);
  EXPECT_EQ(only()[0].headline, "communication that no computation hides takes 25.0 µs of the median step");
  using Change = std::pair<std::string, std::string>;
  EXPECT_THAT(only()[0].change, testing::ElementsAre(Change("exec.comm", "overlap")));
  f.spec.exec.comm = Comm::Overlap;
  ASSERT_EQ(only().size(), 1u);
  EXPECT_TRUE(only()[0].change.empty());
  f.part_us[static_cast<size_t>(Meaning::Communication)] = 5;
  EXPECT_TRUE(only().empty());
  f = {};  // an untraced run
  EXPECT_TRUE(only().empty());
}

TEST(Insights, TensorCoresAndTracing) {
  RunFacts f = naive();
  f.part_us[static_cast<size_t>(Meaning::Matrix)] = 300;
  f.tracing_cost = ws::Interval{0.4, 0.1};
  EXPECT_THAT(rules(f), testing::IsSupersetOf({"idle tensor cores", "tracing cost"}));
  EXPECT_THAT(named(insights(f), "tracing cost").more, testing::HasSubstr("about 263.7 µs"));
  EXPECT_EQ(named(insights(f), "idle tensor cores").edits, "matrix product /2");
  f.spec.exec.fusion = Fusion::Epilogue;
  const CompiledPlan plan = compile(f.spec, make_model(f.spec.model, 784, 10), 64);
  f.plan = &plan;
  EXPECT_EQ(named(insights(f), "idle tensor cores").edits, "op fc1 /2") << "not the kernel that also updates the weights";
  f.spec.exec.precision = Precision::Tf32;
  EXPECT_THAT(rules(f), testing::Not(testing::Contains("idle tensor cores")));
}

}  // namespace
}  // namespace ws::app
