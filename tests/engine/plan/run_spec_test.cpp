#include "engine/plan/run_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/failure_text.h"

namespace ws {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(std::string_view text) { return test::failure_text([&] { parse_spec(text); }); }

// Run files and checkpoints of before have it.
TEST(RunSpec, AChoiceThatIsGoneIsNoError) {
  EXPECT_EQ(parse_spec(R"({"exec": {"streams": 2, "launch": "graph"}})").exec.launch, Launch::Graph);
  EXPECT_THROW(parse_spec(R"({"exec": {"rivers": 2}})"), SpecError);
  RunSpec spec;
  EXPECT_THROW(set_field(spec, "exec.streams", "2"), SpecError);
}

TEST(RunSpec, EveryFieldSurvivesJson) {
  RunSpec spec;
  spec.name = "mine";
  spec.data.name = "csv";
  spec.data.path = "a b.csv";
  spec.model.hidden = {3, 5, 7};
  spec.model.activation = Activation::Gelu;
  spec.train.lr = 0.125;
  spec.train.optimizer = Optimizer::Adam;
  spec.exec.allocator = Allocator::StreamOrdered;
  spec.exec.precision = Precision::Bf16;
  EXPECT_EQ(spec_from_json(to_json(spec)), spec);
}

TEST(RunSpec, TableCoversEveryMember) {
  // A choice without a row in the table would be lost on its way through JSON: change each field and look for it.
  for (const Field& f : fields()) {
    RunSpec spec;
    nlohmann::json other;
    switch (f.kind) {
      case FieldKind::Choice:
        other =
            std::string(f.values.back().name == field_text(spec, f.key) ? f.values.front().name : f.values.back().name);
        break;
      case FieldKind::Flag:
        other = !f.get(spec).get<bool>();
        break;
      case FieldKind::Text:
        other = "other";
        break;
      case FieldKind::IntegerList:
        other = {9, 8};
        break;
      case FieldKind::Integer:
        other = f.get(spec).get<int64_t>() == 2 ? 3 : 2;
        break;
      case FieldKind::Number:
        other = f.get(spec).get<double>() == 0.5 ? 0.25 : 0.5;
        break;
    }
    set_field(spec, f.key, other);
    const auto changes = diff(RunSpec{}, spec);
    ASSERT_EQ(changes.size(), 1u) << f.key;
    EXPECT_EQ(changes[0].key, f.key);
    EXPECT_EQ(spec_from_json(to_json(spec)), spec) << f.key;
  }
}

TEST(RunSpec, RefusalsNameTheKey) {
  EXPECT_EQ(refusal(R"({"train":{"lr":"fast"}})"), R"(train.lr: expected a number > 0 and at most 1e+06, got "fast")");
  EXPECT_THAT(refusal(R"({"train":{"lr":0}})"), StartsWith("train.lr: expected a number > 0"));
  EXPECT_THAT(refusal(R"({"train":{"speed":1}})"), StartsWith("train.speed: "));
  EXPECT_THAT(refusal(R"({"trains":{}})"), StartsWith("trains: "));
  EXPECT_THAT(refusal(R"({"exec":{"allocator":"magic"}})"), HasSubstr("one of direct, stream-ordered, caching, arena"));
  EXPECT_THAT(refusal(R"({"model":{"hidden":[128,0]}})"), StartsWith("model.hidden: "));
  EXPECT_THAT(refusal(R"({"model":{"hidden":128}})"), StartsWith("model.hidden: "));
  EXPECT_THAT(refusal(R"({"train":{"epochs":2.5}})"), StartsWith("train.epochs: expected a whole number"));
  EXPECT_THAT(refusal(R"({"train":{"batch":-1}})"), StartsWith("train.batch: "));
  EXPECT_THAT(refusal(R"({"train":[]})"), StartsWith("train: expected an object"));
  EXPECT_THAT(refusal(R"({"train":{"lr":NaN}})"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"train":{"lr":1e999}})"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("nested too deep"));
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
}

TEST(RunSpec, FormsThatTheNetworkDoesNotHaveAreRefused) {
  RunSpec spec;
  EXPECT_EQ(why_not(spec, "exec.attention", "plain", true)->text,
            "plain: this network has no attention; choose fused, or a network with blocks.");
  EXPECT_EQ(why_not(spec, "exec.layout", "nchw", true)->text, "nchw: this network has no convolution or pool; choose nhwc.");
  spec.model.layers = "2 x (conv 3x3 4 | relu) | linear";
  EXPECT_EQ(why_not(spec, "exec.attention", "plain", true)->key, "exec.attention");
  EXPECT_FALSE(why_not(spec, "exec.layout", "nchw", true));
  spec.model.layers = "embed 8 | residual(attention heads 2) | linear";
  EXPECT_FALSE(why_not(spec, "exec.attention", "plain", true));
  EXPECT_EQ(why_not(spec, "exec.layout", "nchw", true)->key, "exec.layout");
}

TEST(RunSpec, AllGpusIsAWordForZero) {
  RunSpec spec;
  set_field(spec, "exec.gpus", "3");
  set_field(spec, "exec.gpus", "all");
  EXPECT_EQ(spec.exec.gpus, 0);
  EXPECT_EQ(parse_spec(R"({"exec":{"gpus":"all"}})").exec.gpus, 0);
  EXPECT_THAT(refusal(R"({"exec":{"gpus":"many"}})"), StartsWith("exec.gpus: expected a whole number from 0 to 64, or all, got"));
  EXPECT_THROW(set_field(spec, "train.epochs", "all"), SpecError);
}

TEST(RunSpec, OverridesByText) {
  RunSpec spec;
  set_field(spec, "exec.allocator", "caching");
  set_field(spec, "model.hidden", "16,32");
  set_field(spec, "train.shuffle", "false");
  set_field(spec, "train.lr", "1e-3");
  EXPECT_EQ(spec.exec.allocator, Allocator::Caching);
  EXPECT_EQ(spec.model.hidden, (std::vector<int64_t>{16, 32}));
  EXPECT_FALSE(spec.train.shuffle);
  EXPECT_DOUBLE_EQ(spec.train.lr, 1e-3);
  EXPECT_EQ(field_text(spec, "model.hidden"), "16,32");
  EXPECT_THROW(set_field(spec, "exec.allocators", "x"), SpecError);
}

TEST(RunSpec, ANearMissIsOffered) {
  const auto said = [](const char* key) -> std::string {
    try {
      field(key);
      return "";
    } catch (const SpecError& problem) {
      return problem.what();
    }
  };
  EXPECT_EQ(said("train.rate"), "train.rate: there is no such setting. Did you mean train.lr?");
  EXPECT_EQ(said("data.set"), "data.set: there is no such setting. Did you mean data.name?") << "the window says data set";
  EXPECT_EQ(said("exec.allocators"), "exec.allocators: there is no such setting. Did you mean exec.allocator?");
  EXPECT_EQ(said("model.epochs"), "model.epochs: there is no such setting. Did you mean train.epochs?");
  EXPECT_EQ(said("alocator"), "alocator: there is no such setting. Did you mean exec.allocator?");
  EXPECT_EQ(said("exec.colour"), "exec.colour: there is no such setting");
}

TEST(RunSpec, ConflictsBeginWithTheValue) {
  RunSpec spec;
  EXPECT_FALSE(why_invalid(spec, true));
  EXPECT_FALSE(why_invalid(spec, false));
  spec.exec.launch = Launch::Graph;
  EXPECT_FALSE(why_invalid(spec, true));
  EXPECT_THAT(why_invalid(spec, false)->text, StartsWith("graph: "));
  EXPECT_EQ(why_not(spec, "exec.allocator", "direct", true)->text, "direct: a graph cannot capture cudaMalloc.");
  EXPECT_THAT(why_not(spec, "exec.sync", "every-op", true)->text, StartsWith("every-op: "));
  EXPECT_FALSE(why_not(spec, "exec.allocator", "caching", true));
  EXPECT_FALSE(why_not(RunSpec{}, "exec.launch", "persistent", true));
  EXPECT_THAT(why_not(RunSpec{}, "exec.launch", "persistent", false)->text, StartsWith("persistent: "));
  spec.exec.launch = Launch::Persistent;
  EXPECT_THAT(why_not(spec, "exec.allocator", "caching", true)->text, StartsWith("caching: "));
  EXPECT_THAT(why_not(spec, "exec.sync", "every-step", true)->text, StartsWith("every-step: "));
  EXPECT_THAT(why_not(spec, "exec.loader", "pinned", true)->text, StartsWith("pinned: "));
  for (const char* allocator : {"direct", "caching", "arena"}) {
    set_field(spec, "exec.launch", "auto");
    EXPECT_FALSE(why_not(spec, "exec.allocator", allocator, true)) << allocator;
    EXPECT_FALSE(why_not(spec, "exec.allocator", allocator, false)) << allocator;
  }
}

// A sentence that begins with the value that was tried is about that field, or about the file that this data set needs.
TEST(RunSpec, ARefusalNamesTheFieldOfItsValue) {
  size_t refused = 0;
  for (const Launch launch : {Launch::Eager, Launch::Graph, Launch::Persistent})
    for (const bool cuda : {false, true}) {
      RunSpec spec;
      spec.exec.launch = launch;
      if (why_invalid(spec, cuda)) continue;
      for (const Field& tried : fields())
        for (const FieldValue& value : tried.values) {
          const auto why = why_not(spec, tried.key, value.name, cuda);
          if (!why) continue;
          ++refused;
          EXPECT_EQ(field(why->key).key, why->key);
          const bool about_it = why->text.starts_with(std::string(value.name) + ": ");
          EXPECT_TRUE(!about_it || why->key == tried.key || why->key == "data.path") << why->text;
        }
    }
  EXPECT_GT(refused, 10u);
}

TEST(RunSpec, WithoutGpuFallsBackAndReportsIt) {
  RunSpec spec;
  spec.exec.launch = Launch::Graph;
  spec.exec.allocator = Allocator::StreamOrdered;
  std::vector<std::string> notes;
  const RunSpec fitted = fit_to_machine(spec, false, notes);
  EXPECT_FALSE(why_invalid(fitted, false));
  EXPECT_EQ(notes.size(), 2u);
  notes.clear();
  EXPECT_EQ(fit_to_machine(spec, true, notes), spec);
  EXPECT_TRUE(notes.empty());
}

TEST(RunSpec, ShippedPresetsAreValid) {
  ASSERT_FALSE(presets().empty());
  for (const Preset& preset : presets()) {
    const RunSpec spec = load_spec(preset.name);
    EXPECT_EQ(spec.name, preset.name);
    EXPECT_FALSE(preset.text.empty()) << preset.name;
    EXPECT_FALSE(why_invalid(spec, true)) << preset.name << ": " << why_invalid(spec, true).value_or(Refusal()).text;
  }
}

}  // namespace
}  // namespace ws
