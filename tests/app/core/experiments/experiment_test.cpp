#include "app/core/experiments/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "profiling/base/budget.h"
#include "tests/support/failure_text.h"

namespace ws::app {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json small_experiment() {
  return {{"name", "small"},
          {"spec",
           {{"data", {{"name", "iris"}}},
            {"model", {{"hidden", {5}}}},
            {"train", {{"epochs", 3}, {"batch", 16}}},
            {"exec", {{"device", "cpu"}}}}},
          {"axes", {{"exec.allocator", {"direct", "arena", "stream-ordered"}}, {"exec.fusion", {"off", "epilogue"}}}},
          {"repeats", 2}};
}

struct Count : ExperimentSink {
  void ended(const TrialRun& run) override {
    seen.emplace_back(run.trial, run.repeat);
    if (stop_after && static_cast<int>(seen.size()) == stop_after) *cancel = true;
  }
  std::vector<std::pair<int, int>> seen;
  int stop_after = 0;
  std::atomic<bool>* cancel = nullptr;
};

struct TemporaryFolder {
  TemporaryFolder() : path((fs::temp_directory_path() / ("warpsight-experiment-" + std::to_string(::getpid()))).string()) {
    fs::remove_all(path);
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  std::string path;
};

TEST(Experiment, TrialsAreAllCombinationsAndInvalidOnesSaySo) {
  const auto trials = trials_of(experiment_from_json(small_experiment()), false);
  ASSERT_EQ(trials.size(), 6u);
  std::set<std::string> labels;
  for (const Trial& t : trials) labels.insert(t.label);
  EXPECT_EQ(labels.size(), 6u);
  EXPECT_EQ(std::ranges::count_if(trials, [](const Trial& t) { return !t.skipped.empty(); }), 2);
}

TEST(Experiment, ALadderKeepsWhatTheRungsBeforeSet) {
  const auto spec = experiment_from_json({{"preset", "iris"},
                                          {"ladder",
                                           {{{"label", "a"}, {"set", {{"exec.fusion", "off"}}}},
                                            {{"label", "b"}, {"set", {{"exec.allocator", "arena"}}}}}}});
  const auto trials = trials_of(spec, true);
  EXPECT_EQ(trials[1].spec.exec.fusion, Fusion::Off);
  EXPECT_EQ(trials[1].spec.exec.allocator, Allocator::Arena);
}

TEST(Experiment, OrderIsShuffledCompleteAndRepeatable) {
  const auto spec = experiment_from_json(small_experiment());
  const auto order = run_order(spec, trials_of(spec, false));
  EXPECT_EQ(order, run_order(spec, trials_of(spec, false)));
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), 8u);
}

TEST(Experiment, AChoiceIsVariedWithoutAFile) {
  const RunSpec base = experiment_from_json(small_experiment()).base;
  const auto values = [&](const char* axis) { return experiment_of(base, {axis}).axes.at(0).values; };
  EXPECT_THAT(values("exec.fusion"), ::testing::ElementsAre("off", "pointwise", "epilogue"));
  EXPECT_THAT(values("train.batch=8,16"), ::testing::ElementsAre("8", "16"));
  EXPECT_EQ(trials_of(experiment_of(base, {"exec.fusion", "train.batch=8,16"}), false).size(), 6u);
  const ExperimentSpec alone = experiment_from_json(to_json(experiment_of(base, {})));
  ASSERT_EQ(trials_of(alone, false).size(), 1u) << "nothing is varied";
  EXPECT_EQ(trials_of(alone, false)[0].spec.train.batch, 16);
  for (const char* wrong : {"train.batch", "train.batch=", "train.batch=8,", "exec.fusion=some", "exec.colour"})
    EXPECT_THROW(experiment_of(base, {wrong}), SpecError) << wrong;
}

TEST(Experiment, StepsAreTimedWithoutATraining) {
  const TemporaryFolder folder;
  auto spec = experiment_of(experiment_from_json(small_experiment()).base, {"exec.fusion=off,epilogue"});
  spec.measure = TrialMeasure::Steps;
  spec.repeats = 2;
  std::atomic<bool> cancel{false};
  Count sink;
  const ExperimentResult result = run_experiment(spec, folder.path, cancel, sink);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(sink.seen.size(), 4u);
  for (const TrialResult& trial : result.trials) {
    EXPECT_GT(trial.us_per_step, 0);
    EXPECT_GT(trial.runs.at(0).steps, 0);
    EXPECT_TRUE(std::isnan(trial.test_accuracy));
    EXPECT_EQ(trial.runs.at(0).file, "");
  }
  EXPECT_EQ(experiment_from_json(to_json(spec)).measure, TrialMeasure::Steps);
  spec.measure = TrialMeasure::Training;
  EXPECT_NE(trials_of(spec, false).at(0).identity, result.trials.at(0).trial.identity) << "a training is another result";
}

TEST(Experiment, GoesOnWhereItWasStopped) {
  const TemporaryFolder folder;
  const auto spec = experiment_from_json(small_experiment());
  std::atomic<bool> cancel{false};
  Count first;
  first.stop_after = 3;
  first.cancel = &cancel;
  const ExperimentResult begun = run_experiment(spec, folder.path, cancel, first);
  EXPECT_FALSE(begun.complete);
  EXPECT_THAT(experiment_table(begun), testing::HasSubstr("not trained yet"));
  EXPECT_THAT(experiment_csv(begun), testing::HasSubstr(",0,,,,,,,,,,"));
  std::ofstream(folder.path + "/results.jsonl", std::ios::app) << "{\"trial\": 1, \"rep";  // what a kill leaves
  cancel = false;
  Count second;
  const ExperimentResult result = run_experiment(spec, folder.path, cancel, second);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(first.seen.size() + second.seen.size(), 8u);
  for (const TrialResult& t : result.trials)
    if (t.trial.skipped.empty()) {
      EXPECT_EQ(t.runs.size(), 2u);
      EXPECT_GT(t.us_per_step, 0);
      EXPECT_LE(t.low, t.us_per_step);
      EXPECT_TRUE(fs::exists(folder.path + "/" + t.runs[0].file));
    }
  EXPECT_TRUE(read_experiment(folder.path).complete);
  EXPECT_THAT(experiment_table(result), testing::HasSubstr("skipped: stream-ordered"));
}

TEST(Experiment, TheFirstRowIsNotGluedToHalfARow) {
  const TemporaryFolder folder;
  json asked = small_experiment();
  asked["repeats"] = 1;
  asked["axes"] = {{"exec.fusion", {"off", "epilogue"}}};
  fs::create_directories(folder.path);
  std::ofstream(folder.path + "/results.jsonl") << "{\"trial\": 1, \"rep";
  const std::atomic<bool> cancel{false};
  Count trained, again;
  run_experiment(experiment_from_json(asked), folder.path, cancel, trained);
  EXPECT_TRUE(read_experiment(folder.path).complete);
  run_experiment(experiment_from_json(asked), folder.path, cancel, again);
  EXPECT_TRUE(again.seen.empty()) << "both rows were kept";
}

TEST(Experiment, AFolderHasOneOwner) {
  const TemporaryFolder folder;
  const auto spec = experiment_from_json(small_experiment());
  const std::atomic<bool> cancel{false};
  Count none;
  {
    const ExperimentFolder owned(folder.path);
    EXPECT_THROW(run_experiment(spec, folder.path, cancel, none), Failure);
  }
  EXPECT_TRUE(none.seen.empty());
  EXPECT_FALSE(fs::exists(folder.path)) << "nothing was written, so nothing stays";
}

TEST(Experiment, APipeInTheFolderIsRefusedBeforeTraining) {
  for (const char* name : {"experiment.json", "results.jsonl", "table.csv", "chart.svg"}) {
    const TemporaryFolder folder;
    fs::create_directories(folder.path);
    const std::string pipe = folder.path + "/" + name;
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const std::atomic<bool> cancel{false};
    Count none;
    EXPECT_THROW(run_experiment(experiment_from_json(small_experiment()), folder.path, cancel, none), Failure) << name;
    EXPECT_TRUE(none.seen.empty());
    EXPECT_TRUE(fs::is_fifo(pipe));
  }
}

// A process that has lost its GPU would fail all that is left: a new one trains that.
TEST(Experiment, EndsWhereTheGpuIsLostAndANewProcessGoesOn) {
  struct Losing : Count {
    bool goes_on() const override { return seen.size() < 3; }
  };
  const TemporaryFolder folder;
  const auto spec = experiment_from_json(small_experiment());
  std::atomic<bool> cancel{false};
  Losing first;
  EXPECT_FALSE(run_experiment(spec, folder.path, cancel, first).complete);
  EXPECT_EQ(first.seen.size(), 3u);
  Count second;
  EXPECT_TRUE(run_experiment(spec, folder.path, cancel, second).complete);
  EXPECT_EQ(second.seen.size(), 5u);
}

TEST(Experiment, AnEditedOneTakesOnlyResultsOfWhatItAsksFor) {
  const TemporaryFolder folder;
  const std::atomic<bool> cancel{false};
  json asked = small_experiment();
  asked["repeats"] = 1;
  asked["axes"] = {{"exec.fusion", {"off", "epilogue"}}};
  Count first, moved, other, base, back;
  const ExperimentResult before = run_experiment(experiment_from_json(asked), folder.path, cancel, first);
  EXPECT_EQ(first.seen.size(), 2u);
  asked["axes"] = {{"exec.fusion", {"epilogue", "off"}}};  // the same trials in other places
  const ExperimentResult swapped = run_experiment(experiment_from_json(asked), folder.path, cancel, moved);
  EXPECT_TRUE(moved.seen.empty());
  EXPECT_EQ(swapped.trials[0].us_per_step, before.trials[1].us_per_step);
  EXPECT_EQ(swapped.trials[0].runs[0].file, before.trials[1].runs[0].file);
  asked["axes"] = {{"train.lr", {0.01, 0.1}}};  // others in the same places
  const ExperimentResult rates = run_experiment(experiment_from_json(asked), folder.path, cancel, other);
  EXPECT_EQ(other.seen.size(), 2u) << "trained anew";
  EXPECT_TRUE(rates.complete);
  EXPECT_NE(rates.trials[0].final_loss, rates.trials[1].final_loss);
  asked["spec"]["data"]["limit"] = 40;  // the same choices on another data set
  run_experiment(experiment_from_json(asked), folder.path, cancel, base);
  EXPECT_EQ(base.seen.size(), 2u);
  asked["spec"]["data"].erase("limit");
  EXPECT_EQ(run_experiment(experiment_from_json(asked), folder.path, cancel, back).trials[1].final_loss,
            rates.trials[1].final_loss);
  EXPECT_TRUE(back.seen.empty()) << "what was measured is not lost by an edit";
}

TEST(Experiment, ResultsOfAnOlderVersionBelongToWhatTheFolderNames) {
  const TemporaryFolder folder;
  const std::atomic<bool> cancel{false};
  json asked = small_experiment();
  asked["repeats"] = 1;
  asked["axes"] = {{"exec.fusion", {"off", "epilogue"}}};
  Count first, same, edited;
  run_experiment(experiment_from_json(asked), folder.path, cancel, first);
  std::vector<json> rows;
  {
    std::ifstream in(folder.path + "/results.jsonl");
    for (std::string line; std::getline(in, line);) rows.push_back(json::parse(line));
  }
  std::ofstream out(folder.path + "/results.jsonl");
  for (json& row : rows) row.erase("identity"), out << row.dump() << "\n";
  out.close();
  EXPECT_TRUE(read_experiment(folder.path).complete);
  asked["axes"] = {{"exec.fusion", {"pointwise", "epilogue"}}};
  run_experiment(experiment_from_json(asked), folder.path, cancel, edited);
  ASSERT_EQ(edited.seen.size(), 1u);
  EXPECT_EQ(edited.seen[0].first, 0);
  asked["axes"] = {{"exec.fusion", {"off", "epilogue"}}};
  run_experiment(experiment_from_json(asked), folder.path, cancel, same);
  EXPECT_TRUE(same.seen.empty());
}

std::string refusal(const json& object) { return test::failure_text([&] { experiment_from_json(object); }); }

TEST(Experiment, RefusalsNameTheKey) {
  EXPECT_THAT(refusal({{"axis", 1}}), testing::HasSubstr("experiment.axis"));
  EXPECT_THAT(refusal({{"axes", {{"exec.magic", {"a"}}}}}), testing::HasSubstr("exec.magic"));
  EXPECT_THAT(refusal({{"name", "x"}}), testing::HasSubstr("axes or a ladder"));
  EXPECT_THAT(refusal(json::array()), testing::HasSubstr("expected an object"));
}

TEST(Experiment, TooManyOrTooLargeTrialsAreRefusedBeforeTheyTakeMemory) {
  json numbers = json::array();
  for (int i = 1; i <= 5000; ++i) numbers.push_back(i);
  json rung = {{"label", "a"}, {"set", {{"exec.fusion", "off"}}}};
  EXPECT_THAT(refusal({{"axes", {{"train.seed", numbers}, {"data.seed", numbers}}}}), testing::HasSubstr("2.5e+07 combinations"));
  EXPECT_THAT(refusal({{"ladder", json(10'001, rung)}}), testing::HasSubstr("experiment.ladder: 10001 combinations"));
  set_memory_limit(100 << 20);
  rung["set"]["data.path"] = std::string(5000, 'x');
  const json large = {{"ladder", json(5000, rung)}};
  const json grid = {{"axes", {{"data.path", {std::string(5000, 'x')}}, {"train.seed", numbers}}}};
  EXPECT_THAT(refusal(large), testing::HasSubstr("more than 0.1 GiB of memory"));
  EXPECT_THAT(refusal(grid), testing::HasSubstr("more than 0.1 GiB of memory"));
  set_memory_limit(int64_t{4} << 30);
  EXPECT_EQ(refusal(grid), "");
  set_memory_limit(0);
}

TEST(Experiment, ALadderSetsEachKeyOnce) {
  json ladder = json::array();
  for (int i = 1; i <= 50; ++i)
    ladder.push_back({{"label", std::to_string(i)}, {"set", {{"train.seed", i}, {"train.batch", 2 * i}}}});
  const auto trials = trials_of(experiment_from_json({{"preset", "iris"}, {"ladder", ladder}}), false);
  EXPECT_EQ(trials.back().set.size(), 2u) << "otherwise the memory grows with the square of the rungs";
  EXPECT_EQ(trials.back().spec.train.batch, 100);
}

TEST(Experiment, ABrokenFileAmongTheShippedOnesIsNamedWithItsProblem) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path + "/experiments");
  std::ofstream(folder.path + "/experiments/broken.json") << "{\"title\": ";
  std::ofstream(folder.path + "/experiments/whole.json") << R"({"title": "Whole"})";
  setenv("WARPSIGHT_RESOURCES", folder.path.c_str(), 1);
  const auto all = shipped_experiments();
  unsetenv("WARPSIGHT_RESOURCES");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "broken");
  EXPECT_THAT(all[0].title, testing::HasSubstr("not valid JSON"));
  EXPECT_EQ(all[1].title, "Whole");
}

TEST(Experiment, TimesWhoseRepeatsOverlapAreWithinNoise) {
  ExperimentResult result;
  result.complete = true, result.trials.resize(2);
  const auto give = [&](size_t i, double us, double low, double high, size_t repeats) {
    TrialResult& t = result.trials[i];
    t.us_per_step = us, t.low = low, t.high = high, t.runs.resize(repeats);
  };
  give(0, 100, 98, 104, 3), give(1, 103, 99, 106, 3);
  EXPECT_THAT(measured_text(result), testing::HasSubstr(": within noise."));
  EXPECT_THAT(measured_text(result), testing::Not(testing::HasSubstr("a factor of")));
  give(1, 150, 148, 152, 3);
  EXPECT_THAT(measured_text(result), testing::HasSubstr(": a factor of 1.50."));
  give(0, 100, 100, 100, 1), give(1, 103, 103, 103, 1);
  EXPECT_THAT(measured_text(result), testing::HasSubstr("(no interval: one run each)"));
}

TEST(Experiment, ShippedOnesCanBeRead) {
  ASSERT_GE(shipped_experiments().size(), 6u);
  for (const ExperimentInfo& info : shipped_experiments()) {
    const ExperimentSpec spec = load_experiment(info.name);
    EXPECT_FALSE(spec.text.empty());
    EXPECT_FALSE(spec.expect.empty());
    ExperimentResult measured;
    measured.spec = spec, measured.complete = true, measured.device = "NVIDIA H200";
    for (const Trial& t : trials_of(spec, true)) {
      EXPECT_EQ(t.skipped, "") << info.name << " " << t.label;
      TrialResult result{t, {TrialRun{}, TrialRun{}}};
      const double figure = 10 + t.index;
      result.us_per_step = result.low = result.high = result.samples_per_s = result.first_loss = figure;
      result.test_accuracy = 1 / figure;
      measured.trials.push_back(result);
    }
    const std::string conclusion = measured_text(measured);
    EXPECT_NE(conclusion.find("NVIDIA H200: “"), std::string::npos) << info.name << ": " << conclusion;
  }
}

}  // namespace
}  // namespace ws::app
