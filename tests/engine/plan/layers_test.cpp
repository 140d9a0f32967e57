#include "engine/plan/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/passes/compile.h"

namespace ws {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const LayerShape kDigits = LayerShape::picture(28, 28, 1);

Model model_of(const std::string& layers, LayerShape input, int64_t outputs = 10) {
  ModelSpec spec;
  spec.layers = layers;
  return make_model(spec, input, outputs);
}

struct Mistake {
  std::string sentence, place;
};

Mistake mistake(const std::string& layers, LayerShape input = kDigits, int64_t outputs = 10) {
  try {
    resolve(parse_layers(layers), input, outputs);
  } catch (const LayersError& error) {
    return {error.what(), layers.substr(error.at, error.length)};
  }
  return {"", ""};
}

TEST(Layers, ANetworkOfPicturesHasTheShapesAndParametersOfItsLayers) {
  const Model model = model_of("conv 3x3 16 | relu | maxpool 2 | conv 3x3 32 | relu | maxpool 2 | linear 10", kDigits);
  EXPECT_EQ(model.parameter_count(), 20490);
  std::vector<std::string> shapes;
  for (const NetworkLayer& l : model.layers) shapes.push_back(text_of(l.out));
  EXPECT_THAT(shapes, ElementsAre("28 × 28 × 16", "28 × 28 × 16", "14 × 14 × 16", "14 × 14 × 32", "14 × 14 × 32", "7 × 7 × 32", "10"));
  EXPECT_THAT(model.layer_names, ElementsAre("conv1", "pool2", "conv3", "pool4", "fc5"));
}

TEST(Layers, ATransformerHasTheParametersOfItsBlocks) {
  const Model model = model_of("embed 128 | 4 x block(heads 4) | layernorm | linear", LayerShape::symbols(128), 96);
  EXPECT_EQ(model.parameter_count(), 834400);  // 28 672 + 4 · 198 272 + 256 + 12 384
  EXPECT_EQ(model.parameters_of(0), 28672);
  EXPECT_EQ(model.predictions, 128);
  EXPECT_EQ(std::ranges::count(model.layer_parts, "block 4"), 5);
}

TEST(Layers, EveryLayerIsWrittenAsItWasRead) {
  for (const std::string text :
       {"linear", "linear 12", "linear x4", "linear 8 bias off", "conv 3x3 16", "conv 5x5 8 stride 2 padding 1",
        "conv 4x2 3 padding 1", "maxpool 2", "maxpool 3 stride 2 padding 1", "avgpool 2", "avgpool global", "batchnorm", "layernorm",
        "relu", "gelu", "dropout 0.1", "embed 128", "embed 64 positions off", "attention heads 4", "attention heads 4 bias off",
        "4 x block(heads 4, dropout 0.2)", "block(heads 2, bias off)", "residual(conv 3x3 8 | relu)", "2 x (conv 3x3 8 | relu)"})
    EXPECT_EQ(text_of(parse_layers(text)[0]), text);
  EXPECT_EQ(text_of(parse_layers(" 4 ×  block( heads 4 ) ")[0]), "4 x block(heads 4)");
  EXPECT_EQ(text_of(parse_layers("avgpool")[0]), "avgpool global");
}

TEST(Layers, MistakesHaveOneSentenceAtTheirPlace) {
  const LayerShape text = LayerShape::symbols(32);
  EXPECT_THAT(mistake("maxpool 2 | maxpool 2 | maxpool 2 | linear").sentence,
              HasSubstr("maxpool 2 of a 7 × 7 picture leaves a row: add padding 1, or choose a window that divides 7"));
  EXPECT_EQ(mistake("convolve 3x3 4 | linear").place, "convolve");
  EXPECT_THAT(mistake("convolve 3x3 4 | linear").sentence, HasSubstr("there is no such layer; there are linear, conv"));
  EXPECT_EQ(mistake("conv 3x3 4 | relu 5 | linear").place, "5");
  EXPECT_THAT(mistake("conv 3x3 | linear").sentence, HasSubstr("say how many channels"));
  EXPECT_EQ(mistake("conv 3x3 many | linear").place, "many");
  EXPECT_EQ(mistake("conv 3x3 4 | | linear").place, "|");
  EXPECT_THAT(mistake("residual(relu | linear").sentence, HasSubstr("not closed"));
  EXPECT_EQ(mistake("residual(relu) ) | linear").place, ")");
  EXPECT_THAT(mistake("residual(conv 3x3 4) | linear").sentence, HasSubstr("turn 28 × 28 × 1 into 28 × 28 × 4"));
  EXPECT_EQ(mistake("residual(conv 3x3 4) | linear").place, "residual(conv 3x3 4)");
  EXPECT_THAT(mistake("relu | maxpool 2").sentence, HasSubstr("end it with linear"));
  EXPECT_THAT(mistake("linear 7").sentence, HasSubstr("gives 7 outputs and the data set asks for 10"));
  EXPECT_THAT(mistake("conv 3x3 4 | linear", 4).sentence, HasSubstr("needs pictures, and gets rows of 4 numbers"));
  EXPECT_THAT(mistake("linear", text).sentence, HasSubstr("begin with embed"));
  EXPECT_THAT(mistake("embed 96 | attention heads 5 | linear", text).sentence,
              HasSubstr("5 heads do not divide the width 96: choose 4 or 6"));
  EXPECT_THAT(mistake("embed 96 | batchnorm | linear", text).sentence, HasSubstr("choose layernorm"));
  EXPECT_THAT(mistake("attention heads 2 | linear", kDigits).sentence, HasSubstr("needs text behind embed"));
  EXPECT_THAT(mistake("conv 40x40 4 padding 0 | linear").sentence, HasSubstr("larger than the picture"));
  EXPECT_THAT(mistake("dropout 1 | linear").sentence, HasSubstr("a share from 0 to 0.95"));
  EXPECT_THAT(mistake(std::string(200, '(')).sentence, HasSubstr("nested too deeply"));
  EXPECT_THAT(mistake("200 x (200 x relu) | linear").sentence, HasSubstr("more than 4096 layers"));
  EXPECT_THAT(mistake("").sentence, HasSubstr("a layer is missing"));
}

TEST(Layers, JsonTakesTheLineOrAListOfIt) {
  const RunSpec line = parse_spec(R"({"model": {"layers": "conv 3x3 4 | relu | linear"}})");
  const RunSpec list = parse_spec(R"({"model": {"layers": ["conv 3x3 4", "relu", "linear"]}})");
  EXPECT_EQ(line, list);
  EXPECT_EQ(spec_from_json(to_json(list)), list);
  EXPECT_THROW(parse_spec(R"({"model": {"layers": [1, 2]}})"), SpecError);
}

TEST(Layers, WhyInvalidNamesAMistakeAndWhatCannotRunIt) {
  RunSpec spec;
  spec.model.layers = "conv 3x3 | linear";
  EXPECT_THAT(why_invalid(spec, true).value_or(Refusal()).text, HasSubstr("network: conv: say how many channels"));
  spec.model.layers = "conv 3x3 4 | linear";
  EXPECT_EQ(why_invalid(spec, true), std::nullopt);
  spec.exec.launch = Launch::Persistent;
  EXPECT_THAT(why_invalid(spec, true).value_or(Refusal()).text, HasSubstr("persistent: one kernel trains the networks of hidden layers"));
}

Plan picture_plan(Fusion fusion) {
  RunSpec spec;
  spec.model.layers = "conv 3x3 8 | batchnorm | relu | maxpool 2 | conv 3x3 8 | relu | linear 32 | relu | linear";
  spec.exec.fusion = fusion;
  return compile(spec, make_model(spec.model, kDigits, 10), 16).plan;
}

TEST(Layers, FusionPutsBiasActivationAndNormTogether) {
  const auto has = [](const Plan& plan, OpKind kind, auto&& test) {
    return std::ranges::any_of(plan.ops, [&](const Op& op) { return op.kind == kind && test(op); });
  };
  const Plan plan = picture_plan(Fusion::Epilogue);
  EXPECT_TRUE(has(plan, OpKind::Conv, [](const Op& op) { return op.epilogue == Epilogue::BiasActivate; }));
  EXPECT_TRUE(has(plan, OpKind::Conv, [](const Op& op) { return op.epilogue == Epilogue::Bias; }));
  EXPECT_TRUE(has(plan, OpKind::ConvWeightGrad, [](const Op& op) { return op.epilogue == Epilogue::BiasGrad && op.out.size() == 2; }));
  EXPECT_TRUE(has(plan, OpKind::BatchNorm, [](const Op& op) { return op.activation == Activation::Relu; }));
  EXPECT_TRUE(has(plan, OpKind::BatchNormGrad, [](const Op& op) { return op.activation == Activation::Relu && op.in.size() == 6; }));
  EXPECT_LT(plan.ops.size(), picture_plan(Fusion::Off).ops.size() - 10);
}

TEST(Layers, RanksAverageEveryTrainedGradientBeforeTheClip) {
  RunSpec spec;
  spec.model.layers = "conv 3x3 8 | batchnorm | relu | linear";
  spec.exec.gpus = 2;
  spec.train.clip = 1;
  for (const Comm comm : {Comm::Bucket, Comm::Layers}) {
    spec.exec.comm = comm;
    const Plan plan = compile(spec, make_model(spec.model, kDigits, 10), 16).plan;
    const auto at = [&](OpKind kind) { return std::ranges::find(plan.ops, kind, &Op::kind) - plan.ops.begin(); };
    size_t averaged = 0;
    for (const Op& op : plan.ops) averaged += op.kind == OpKind::AllReduce ? op.in.size() : 0;
    EXPECT_EQ(averaged, 6u);  // running statistics have no gradient
    EXPECT_LT(at(OpKind::AllReduce), at(OpKind::ClipGradients));
  }
}

}  // namespace
}  // namespace ws
