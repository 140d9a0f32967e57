// Crops, mirror images and normalising of pictures: against a plain padded copy, and as ops of the plan. The CUDA kernel
// runs the same header.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "datasets/split.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/passes/compile.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

constexpr uint64_t kSeed = 9;
constexpr Window kPictures{40, 5, 7, 3};  // n, height, width, channels
constexpr int64_t kPictureSize = 5 * 7 * 3;

template <class Real>
std::vector<Real> some_pictures() {
  std::vector<Real> x;
  for (int64_t i = 0; i < kPictures.n * kPictureSize; ++i) x.push_back(static_cast<Real>(data::uniform_at(1, 2, static_cast<uint64_t>(i))));
  return x;
}

template <class Real>
std::vector<Real> prepared(const Preparation& how, std::vector<Real> x, int64_t step = 3) {
  std::vector<Real> y(x.size());
  cpu::prepare<Real>(how, kPictures, kSeed, step, {x.data(), kPictures.n, kPictureSize}, {y.data(), kPictures.n, kPictureSize});
  return y;
}

Preparation everything() {
  Preparation how;
  how.crop = 2, how.flip = how.normalise = true;
  how.scale = {{0.5f, 0.25f, 0.75f}, {2, 3, 0.5f}};
  return how;
}

// Pads a copy with zeros, cuts a part out of it, mirrors that and scales it: four loops that share nothing with the header.
std::vector<double> by_hand(const Preparation& how, const std::vector<double>& x, int64_t step) {
  const int64_t high = kPictures.h + 2 * how.crop, wide = kPictures.w + 2 * how.crop;
  std::vector<double> y;
  for (int64_t row = 0; row < kPictures.n; ++row) {
    std::vector<std::vector<std::array<double, 3>>> padded(
        static_cast<size_t>(high), std::vector<std::array<double, 3>>(static_cast<size_t>(wide), {0, 0, 0}));
    for (int64_t i = 0; i < kPictureSize; ++i)
      padded[static_cast<size_t>(i / 21 + how.crop)][static_cast<size_t>(i / 3 % 7 + how.crop)][static_cast<size_t>(i % 3)] =
          x[static_cast<size_t>(row * kPictureSize + i)];
    const PicturePlace place = place_of(how, kSeed, step, row);
    for (int64_t v = 0; v < kPictures.h; ++v) {
      auto line = padded[static_cast<size_t>(v + place.down + how.crop)];
      line.erase(line.begin(), line.begin() + place.across + how.crop);
      line.resize(7);
      if (place.mirrored) std::ranges::reverse(line);
      for (const auto& pixel : line)
        for (size_t c = 0; c < 3; ++c)
          y.push_back((pixel[c] - static_cast<double>(how.scale.mean[c])) * static_cast<double>(how.scale.factor[c]));
    }
  }
  return y;
}

TEST(Preparation, IsAPaddedCopyCutMirroredAndScaled) {
  const Preparation how = everything();
  EXPECT_EQ(prepared(how, some_pictures<double>()), by_hand(how, some_pictures<double>(), 3));
  const std::vector<double> want = by_hand(how, some_pictures<double>(), 4);
  const std::vector<float> got = prepared(how, some_pictures<float>(), 4);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(static_cast<double>(got[i]), want[i], 2e-7);
}

TEST(Preparation, ACropOfAKnownPlaceMovesThePicture) {
  Preparation how;
  how.crop = 2;
  const std::vector<float> x{1, 2, 3, 4, 5, 6};  // 2 rows, 3 columns
  const auto moved = [&](PicturePlace place) {
    std::vector<float> y;
    for (int64_t i = 0; i < 6; ++i)
      y.push_back(prepared_value<float>(how, place, 2, 3, 1, i / 3, i % 3, 0, [&](int64_t at) { return x[static_cast<size_t>(at)]; }));
    return y;
  };
  EXPECT_EQ(moved({0, 0, false}), x);
  EXPECT_EQ(moved({1, 0, false}), (std::vector<float>{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(moved({0, -2, false}), (std::vector<float>{0, 0, 1, 0, 0, 4}));
  EXPECT_EQ(moved({0, 0, true}), (std::vector<float>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(moved({-1, 1, true}), (std::vector<float>{0, 0, 0, 0, 3, 2}));
}

TEST(Preparation, MirroringTwiceGivesThePictureBack) {
  Preparation how;
  how.flip = true;
  const std::vector<float> x = some_pictures<float>(), once = prepared(how, x);
  EXPECT_NE(once, x);
  EXPECT_EQ(prepared(how, once), x);
}

TEST(Preparation, EveryPlaceOccursAndHalfOfThePicturesAreMirrored) {
  const Preparation how = everything();
  std::set<std::pair<int, int>> places;
  int mirrored = 0;
  constexpr int kMany = 4000;
  for (int64_t row = 0; row < kMany; ++row) {
    const PicturePlace place = place_of(how, kSeed, 17, row);
    ASSERT_LE(std::max(std::abs(place.down), std::abs(place.across)), how.crop);
    places.insert({place.down, place.across});
    mirrored += place.mirrored;
  }
  EXPECT_EQ(places.size(), 25u);
  EXPECT_NEAR(mirrored, kMany / 2, 4 * std::sqrt(kMany) / 2);  // four standard deviations
}

TEST(Preparation, DependsOnSeedStepAndTheRowOfTheWholeStep) {
  Preparation how = everything();
  const std::vector<float> x = some_pictures<float>(), first = prepared(how, x, 3);
  EXPECT_EQ(prepared(how, x, 3), first);
  EXPECT_NE(prepared(how, x, 4), first);
  how.first_row = 10;  // of a second rank
  for (int64_t row = 0; row < 5; ++row) {
    const PicturePlace of_rank = place_of(how, kSeed, 3, row), of_one = place_of(everything(), kSeed, 3, row + 10);
    EXPECT_TRUE(of_rank.down == of_one.down && of_rank.across == of_one.across && of_rank.mirrored == of_one.mirrored);
  }
}

TEST(Preparation, ThreeOpsMakeTheBitsOfOne) {
  Preparation crop, flip, normalise = everything();
  crop.crop = 2, flip.flip = true, normalise.crop = 0, normalise.flip = false;
  EXPECT_EQ(prepared(normalise, prepared(flip, prepared(crop, some_pictures<float>()))), prepared(everything(), some_pictures<float>()));
}

data::Dataset pictures_to_normalise() {
  data::Dataset data = test::random_pictures(24, 8, 3, 4);
  for (size_t i = 0; i < data.train.x.size(); ++i) data.train.x[i] = 3 * data.train.x[i] + static_cast<float>(i % 3);
  data::measure_channels(data);
  return data;
}

TEST(Preparation, NormalisedChannelsHaveMeanZeroAndDeviationOne) {
  const data::Dataset data = pictures_to_normalise();
  Preparation how;
  how.normalise = true, how.scale = make_model({}, data).pixels;
  std::vector<float> x = data.train.x, y(x.size());
  cpu::prepare<float>(how, {24, 8, 8, 3}, kSeed, 0, {x.data(), 24, 192}, {y.data(), 24, 192});
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (size_t i = c; i < y.size(); i += 3) sum += static_cast<double>(y[i]), squares += std::pow(static_cast<double>(y[i]), 2);
    const double n = static_cast<double>(y.size()) / 3;
    EXPECT_NEAR(sum / n, 0, 1e-6);
    EXPECT_NEAR(std::sqrt(squares / n), 1, 1e-6);
  }
}

TEST(Preparation, AChannelOfOneValueBecomesZero) {
  data::Dataset data = test::random_pictures(4, 3, 3, 2);
  for (size_t i = 1; i < data.train.x.size(); i += 3) data.train.x[i] = 0.7f;
  data::measure_channels(data);
  EXPECT_EQ(make_model({}, data).pixels.factor[1], 0);
}

TEST(Preparation, LoadingMeasuresTheChannelsOfTheTrainingPartOnRequest) {
  data::DataSpec spec;
  spec.name = "shapes", spec.points = 60;
  EXPECT_TRUE(data::load(spec).channel_mean.empty());
  spec.normalise = true;
  const data::Dataset data = data::load(spec);
  ASSERT_EQ(data.channel_mean.size(), 3u);
  double sum = 0;
  for (size_t i = 2; i < data.train.x.size(); i += 3) sum += static_cast<double>(data.train.x[i]);
  EXPECT_NEAR(static_cast<double>(data.channel_mean[2]), sum / static_cast<double>(data.train.x.size() / 3), 1e-6);
}

RunSpec prepared_spec(const char* layers = "conv 3x3 4 | relu | maxpool 2 | linear") {
  RunSpec spec;
  spec.data.name = "shapes", spec.data.crop = 2, spec.data.flip = spec.data.normalise = true;
  spec.model.layers = layers;
  return spec;
}

std::vector<const Op*> preparations(const Plan& plan) {
  std::vector<const Op*> found;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::Prepare) found.push_back(&op);
  return found;
}

TEST(PreparationPlan, HasThreeOpsWithoutFusionAndOneWithIt) {
  const data::Dataset data = pictures_to_normalise();
  RunSpec spec = prepared_spec();
  const Model model = make_model(spec.model, data);
  const int64_t batch_bytes = 6 * 192 * 4;
  spec.exec.fusion = Fusion::Off;
  const Plan plain = compile(spec, model, 6).plan;
  const auto ops = preparations(plain);
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(describe(plain, *ops[0]), "cropped = crop(x)");
  EXPECT_EQ(describe(plain, *ops[1]), "flipped = flip(cropped)");
  EXPECT_EQ(describe(plain, *ops[2]), "normalised = normalise(flipped)");
  for (const Op* op : ops) {
    EXPECT_EQ(bytes(plain, *op), 2 * batch_bytes);
    EXPECT_EQ(op->phase, Phase::Input);
  }
  EXPECT_EQ(flops(plain, *ops[0]), 0);
  EXPECT_EQ(flops(plain, *ops[2]), 2 * 6 * 192);
  for (const Fusion fusion : {Fusion::Pointwise, Fusion::Epilogue}) {
    spec.exec.fusion = fusion;
    const Plan fused = compile(spec, model, 6).plan;
    const auto one = preparations(fused);
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(describe(fused, *one[0]), "normalised = normalise(flip(crop(x)))");
    EXPECT_EQ(one[0]->name, "crop flip normalise");
    EXPECT_EQ(one[0]->note, "from rule crop + flip + normalise");
    EXPECT_EQ(bytes(fused, *one[0]), 2 * batch_bytes);
    EXPECT_EQ(one[0]->preparation.scale, model.pixels);
  }
}

TEST(PreparationPlan, AnEvaluationOnlyNormalises) {
  const data::Dataset data = pictures_to_normalise();
  RunSpec spec = prepared_spec();
  const Plan plan = compile_evaluation(spec, make_model(spec.model, data), 6).plan;
  const auto ops = preparations(plan);
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_TRUE(ops[0]->preparation.normalise && !ops[0]->preparation.is_random());
  spec.data.normalise = false;
  EXPECT_TRUE(preparations(compile_evaluation(spec, make_model(spec.model, data), 6).plan).empty());
}

TEST(PreparationPlan, ARankBeginsAtItsRowOfTheStep) {
  RunSpec spec = prepared_spec();
  spec.exec.gpus = 3;
  const Model model = make_model(spec.model, pictures_to_normalise());
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(preparations(compile(spec, model, 10, rank).plan)[0]->preparation.first_row, rows_of_rank(10, rank, 3).first);
}

TEST(PreparationPlan, AnotherSeedCropOrScaleIsAnotherPlan) {
  const data::Dataset data = pictures_to_normalise();
  const RunSpec spec = prepared_spec();
  Model model = make_model(spec.model, data);
  std::set<std::string> ids{compile(spec, model, 6).plan.id};
  RunSpec other = spec;
  other.train.seed = 5;
  ids.insert(compile(other, model, 6).plan.id);
  other = spec, other.data.crop = 3;
  ids.insert(compile(other, model, 6).plan.id);
  other = spec, other.data.flip = false;
  ids.insert(compile(other, model, 6).plan.id);
  model.pixels.mean[0] += 1e-6f;
  ids.insert(compile(spec, model, 6).plan.id);
  EXPECT_EQ(ids.size(), 5u);
}

TEST(PreparationPlan, TestsSeeEveryPictureAsItIs) {
  const data::Dataset data = pictures_to_normalise();
  const auto loss = [&](const RunSpec& spec) {
    const Model model = make_model(spec.model, data);
    const auto executor = make_cpu_executor();
    executor->load(model, data, spec);
    executor->set_state(test::initial_state(model, spec));
    return executor->evaluate(Part::Test).loss;
  };
  const RunSpec spec = prepared_spec();
  RunSpec still = spec, raw = spec;
  still.data.crop = 0, still.data.flip = false;
  raw.data.normalise = false;
  EXPECT_EQ(loss(spec), loss(still));
  EXPECT_NE(loss(spec), loss(raw));
}

TEST(PreparationPlan, EachWrongUseHasOneSentence) {
  using testing::StartsWith;
  RunSpec spec = prepared_spec();
  EXPECT_FALSE(why_invalid(spec, true));
  EXPECT_FALSE(why_invalid(spec, false));
  EXPECT_EQ(why_not(spec, "data.crop", "32", false)->text,
            "crop: 32 pixels of padding leave nothing of a picture with a side of 32; choose at most 31.");
  EXPECT_FALSE(why_not(spec, "data.crop", "31", false));
  const auto without = [&](const char* key, const char* value) {
    RunSpec table;
    table.data.name = "iris";
    return why_not(table, key, value, false).value();
  };
  EXPECT_EQ(without("data.crop", "2"), (Refusal{"data.crop", "crop: iris has no pictures; choose 0."}));
  EXPECT_EQ(without("data.flip", "true"), (Refusal{"data.flip", "flip: iris has no pictures; switch it off."}));
  EXPECT_EQ(without("data.normalise", "true").key, "data.normalise");
  spec.data.name = "pictures", spec.data.path = "pets", spec.data.crop = 500;
  EXPECT_FALSE(why_invalid(spec, false)) << "their size is known once they are loaded";
  EXPECT_EQ(why_not_prepared(spec.data, LayerShape::picture(600, 400, 3))->key, "data.crop");
  RunSpec one_kernel;
  one_kernel.exec.launch = Launch::Persistent;
  EXPECT_FALSE(why_invalid(one_kernel, true));
  EXPECT_THAT(why_not(one_kernel, "data.crop", "2", true)->text, StartsWith("persistent: "));
  EXPECT_THAT(why_not(one_kernel, "data.normalise", "true", true)->text, StartsWith("persistent: "));
}

TEST(PreparationPlan, GoesThroughTheFieldTable) {
  RunSpec spec;
  set_field(spec, "data.crop", "4");
  set_field(spec, "data.flip", "true");
  set_field(spec, "data.normalise", "true");
  EXPECT_EQ(parse_spec(spec_text(spec)), spec);
  EXPECT_EQ(diff(RunSpec{}, spec).size(), 3u);
  EXPECT_THROW(set_field(spec, "data.crop", "-1"), SpecError);
}

}  // namespace
}  // namespace ws
