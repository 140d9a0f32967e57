// Claims about the shipped runs, with answers that were read off their tables by hand, and claims that are none.
#include "app/core/gate/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/core/insights/predicted_savings.h"
#include "profiling/base/failure.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/join_ranks.h"
#include "tests/profiling/causes/made_program.h"
#include "tests/support/failure_text.h"

namespace ws::app {
namespace {

using testing::HasSubstr;
constexpr Truth kTrue = Truth::True, kFalse = Truth::False, kOpen = Truth::CannotTell;

struct Answer {
  const char *run, *claim;
  Truth truth;
};

// The figures of recorded runs are read off `stats` and `stats --by rank`. The figures of made runs follow from their parts.
// Median steps: direct 307.2 ± 25.6 µs, arena 153.5 ± 12.0, graph 16.8 ± 0.1, persistent 37.9 ± 1.2. GPU busy: 16.9 ± 0.8 %,
// 33.8 ± 1.8, 100.0 ± 3.4, 98.3 ± 4.9. Kernels per step: 21, 21, 3.04, 1/16. Steps: 50, 50, 50, 938.
// cnn: 40 steps, 3,200 kernels, median step 4.72 ± 0.24 ms, P95 5.92 ms, GPU busy 10.5 ± 0.4 %, launch gaps 87.9 % of a step,
// matrix product 3.38 %, launch delay 10.1 µs, its largest kernel once per step in 49.2 µs. No driver allocation, 72 of PyTorch a step.
// ranks: 16 steps, median step 11.96 ± 2.02 ms, GPU busy 40.9 ± 2.7 %, communication 0.5 %, waits for a rank 29.7 %, rank wait 3.56 ms, exposed
// transfers 58.4 µs, 106 GB/s in the largest collective.
// loader: 40 steps, 1,640 kernels, median step 21.4 ± 3.4 ms, GPU busy 1.01 ± 0.09 %, waits for data 77.3 % of a step.
// profiler: 3 steps of 20 kernels, 2 memcpys and a memset; mean step 884 µs, of them launch gaps 89.7 %.
// made waits: kernels of 38.8 µs with gaps of 0.8 µs after a launch of 4.5 µs, then 1.2 µs until the host wakes up: 49.3 µs.
// made graph: the GPU decides: 38.8 + 7 · 0.8 = 44.4 µs.
const std::vector<Answer> kAnswers{
    {"direct", "median step < 500 us", kTrue},
    {"direct", "median step < 0.5 ms", kTrue},
    {"direct", "median step > 500 us", kFalse},
    {"direct", "median step < 310 us", kOpen},
    {"direct", "step time >= 100us", kTrue},
    {"direct", "p5 step > 200 us", kTrue},
    {"direct", "p95 step < 500 us", kTrue},
    {"direct", "p99 step < 410 us", kOpen},
    {"direct", "mean step < 350 us", kTrue},
    {"direct", "mean step > 316 us", kOpen},
    {"direct", "p95 step < 2 * median step", kTrue},
    {"direct", "(p95 step - p5 step) < 150 us", kTrue},
    {"direct", "throughput > 100000 samples/s", kTrue},
    {"direct", "training time < 60 s", kTrue},
    {"direct", "training time > 1 min", kFalse},
    {"direct", "kernels per step == 21", kTrue},
    {"direct", "kernels per step != 21", kFalse},
    {"direct", "kernels per step <= 21", kTrue},
    {"direct", "kernels per step < 20", kFalse},
    {"direct", "allocations per step == 15", kTrue},
    {"direct", "driver allocations per step == 15", kTrue},
    {"direct", "driver allocations == 778", kTrue},
    {"direct", "allocations == 750", kTrue},
    {"direct", "allocator calls per step == 30", kTrue},
    {"direct", "allocator calls per step == 2 * allocations per step", kTrue},
    {"direct", "gpu busy < 25 %", kTrue},
    {"direct", "GPU busy > 0.5", kFalse},
    {"direct", "gpu busy > 16.5 %", kOpen},
    {"direct", "launch delay < 20 us", kTrue},
    {"direct", "peak memory < 1 MiB", kTrue},
    {"direct", "peak memory > 1 GB", kFalse},
    {"direct", "first loss < 2.5", kTrue},
    {"direct", "test loss < 0.5", kTrue},
    {"direct", "test accuracy > 80%", kTrue},
    {"direct", "test accuracy > 90%", kFalse},
    {"direct", "test accuracy > 87%", kOpen},
    {"direct", "loss < first loss", kTrue},
    {"direct", "steps == 50", kTrue},
    {"direct", "share(allocator calls) > 30%", kTrue},
    {"direct", "share(allocation) > 30%", kTrue},  // its name before version 6 of run files
    {"direct", "share(communication) < 10%", kTrue},
    {"direct", "share(communication) == 0", kTrue},
    {"direct", "share(launch gaps) < 47.4%", kOpen},
    {"direct", "count(fc1) == 1", kTrue},
    {"direct", "time(fc1) < 10 us", kTrue},
    {"direct", "time(fc1) > time(dW1)", kTrue},
    {"direct", "path(launch calls) > 20%", kTrue},
    {"direct", "gain(allocator calls) > 50 us", kTrue},
    {"direct", "predicted(no allocator calls) < median step", kTrue},
    {"direct", "time(fc9) < 10 us", kOpen},
    {"direct", "rank wait < 1 us", kOpen},
    {"arena", "allocations per step == 0", kTrue},
    {"arena", "driver allocations == 29", kTrue},
    {"arena", "share(allocator calls) == 0", kTrue},
    {"arena", "median step < 1 ms", kTrue},
    {"arena", "median step < 155 us", kOpen},
    {"arena", "gpu busy > 20%", kTrue},
    {"graph", "median step < 20 us", kTrue},
    {"graph", "median step < 16.7 us", kOpen},
    {"graph", "median step < 15 us", kFalse},
    {"graph", "kernels per step < 4", kTrue},
    {"graph", "gpu busy > 90%", kTrue},
    {"graph", "throughput > 3000000 samples/s", kTrue},
    {"graph", "launch delay < 1 ms", kOpen},
    {"persistent", "steps == 938", kTrue},
    {"persistent", "median step < 40 us", kTrue},
    {"persistent", "test accuracy > 95%", kTrue},
    {"persistent", "share(sync) < 50%", kTrue},
    {"persistent", "kernels per step * 16 == 1", kTrue},
    {"cnn", "steps == 40", kTrue},
    {"cnn", "kernels per step == 80", kTrue},
    {"cnn", "median step < 5 ms", kTrue},
    {"cnn", "median step < 4.6 ms", kOpen},
    {"cnn", "median step > 6 ms", kFalse},
    {"cnn", "p95 step < 2 * median step", kTrue},
    {"cnn", "gpu busy < 15%", kTrue},
    {"cnn", "share(launch gaps) > 80%", kTrue},
    {"cnn", "share(matrix product) < 4%", kTrue},
    {"cnn", "launch delay < 20 us", kTrue},
    {"cnn", "count(*bn_bw_1C11_kernel_new*) == 1", kTrue},
    {"cnn", "time(*bn_bw_1C11_kernel_new*) > 45 us", kTrue},
    {"cnn", "allocator calls per step > 1", kFalse},
    {"cnn", "throughput > 1 samples/s", kOpen},
    {"cnn", "allocations == 2880", kTrue},
    {"cnn", "allocations per step == 72", kTrue},
    {"cnn", "driver allocations per step == 0", kTrue},
    {"cnn", "peak memory < 40 MiB", kTrue},
    {"cnn", "share(other kernels) == 0", kTrue},
    {"ranks", "steps == 16", kTrue},
    {"ranks", "median step < 20 ms", kTrue},
    {"ranks", "median step < 12 ms", kOpen},
    {"ranks", "gpu busy > 30%", kTrue},
    {"ranks", "gpu busy > 60%", kFalse},
    {"ranks", "share(communication) < 2%", kTrue},
    {"ranks", "share(communication) > 50%", kFalse},
    {"ranks", "share(waits for a rank) > 25%", kTrue},
    {"ranks", "share(communication) + share(waits for a rank) > 20%", kTrue},
    {"ranks", "count(collectives) < 4", kTrue},
    {"ranks", "driver allocations == 17", kTrue},
    {"ranks", "allocations == 3040", kTrue},
    {"ranks", "peak memory < 600 MiB", kTrue},
    {"ranks", "rank wait > 2 ms", kTrue},
    {"ranks", "rank wait < 3.6 ms", kOpen},
    {"ranks", "exposed transfer < 100 us", kTrue},
    {"ranks", "bus bandwidth > 90 GB/s", kTrue},
    {"loader", "kernels per step == 41", kTrue},
    {"loader", "share(waits for data) > 70%", kTrue},
    {"loader", "share(waits for data) < 50%", kFalse},
    {"loader", "path(waits for data) > 70%", kTrue},
    {"loader", "gpu busy < 2%", kTrue},
    {"loader", "median step > 21 ms", kOpen},
    {"loader", "gain(waits for data) > 5 ms", kTrue},
    {"loader", "predicted(loader ready) < median step / 2", kTrue},
    {"profiler", "kernels per step == 20", kTrue},
    {"profiler", "median step < 2 ms", kOpen},
    {"profiler", "share(launch gaps) > 80%", kTrue},
    {"made waits", "median step > 49.2 us", kTrue},
    {"made waits", "median step < 49.4 us", kTrue},
    {"made waits", "kernels per step == 7", kTrue},
    {"made waits", "time(fc1) > 9 us", kTrue},
    {"made waits", "share(matrix product) > 70%", kTrue},
    {"made waits", "predicted(no sync) < 46 us", kTrue},
    {"made graph", "median step > 43 us", kTrue},
    {"made graph", "median step < 45 us", kTrue},
    {"made graph", "steps == 40", kTrue},
    {"made graph", "gpu busy > 80%", kTrue},
};

prof::RunData run_called(const std::string& name) {
  const std::map<std::string, std::string> files{{"cnn", "pytorch-cnn"}, {"ranks", "pytorch-gpt-2-ranks"}, {"loader", "pytorch-slow-loader"}};
  if (name == "profiler") return prof::import_run(WARPSIGHT_SOURCE_DIR "/tests/profiling/formats/data/torch_steps.json.gz");
  if (name.starts_with("made")) {
    prof::MadeProgram program = prof::small_network();
    (name == "made graph" ? program.graph : program.sync) = true;
    return program.run();
  }
  const auto file = files.find(name);
  return prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/" + (file == files.end() ? "mnist-" + name : file->second) + ".wsrun"});
}

TEST(Claims, OfTenRunsHaveTheAnswersOfTheirTables) {
  EXPECT_GE(kAnswers.size(), 60u);
  std::map<std::string, prof::RunData> runs;
  for (const auto& [run, claim, truth] : kAnswers)
    if (!runs.contains(run)) runs[run] = run_called(run);
  EXPECT_EQ(runs.size(), 10u);
  std::map<std::string, std::unique_ptr<ClaimChecker>> checkers;
  for (const auto& [name, run] : runs) checkers[name] = std::make_unique<ClaimChecker>(run);
  for (const auto& [run, claim, truth] : kAnswers) {
    const CheckedClaim checked = checkers[run]->check(claim);
    EXPECT_EQ(checked.truth, truth) << run << ": " << claim << ": " << checked.figure << " " << checked.reason;
    EXPECT_EQ(checked.truth == Truth::CannotTell, !checked.reason.empty()) << claim;
  }
}

TEST(Claims, OfMadeRunsAreExact) {
  prof::MadeProgram program = prof::small_network();
  program.sync = true;
  const prof::RunData run = program.run();
  ClaimChecker checker(run);
  EXPECT_EQ(checker.check("kernels per step == 7").truth, kTrue);
  EXPECT_EQ(checker.check("count(fc1) == 1").truth, kTrue);
  EXPECT_EQ(checker.check("time(fc1) > 9 us").truth, kTrue);
  EXPECT_EQ(checker.check("time(kernel_dW*) < 20 us").truth, kTrue);
  EXPECT_EQ(checker.check("share(allocator calls) == 0").truth, kTrue);
}

// A count may be larger by each lost record, in the same steps; sums and shares by the share that was lost.
TEST(Claims, LostRecordsWidenCountsSumsAndShares) {
  prof::MadeProgram program = prof::small_network();
  program.sync = true;
  prof::RunData run = program.run();
  const Answer answers[] = {{"", "kernels per step == 7", kOpen},     {"", "kernels per step != 7", kOpen},   {"", "kernels per step < 7.1", kOpen},
                            {"", "kernels per step < 20", kTrue},     {"", "kernels per step > 20", kFalse},  {"", "2 * kernels per step < 40", kTrue},
                            {"", "2 * kernels per step == 14", kOpen}, {"", "count(fc1) == 1", kOpen},         {"", "count(fc1) < 20", kTrue},
                            {"", "time(fc1) > 9 us", kOpen},          {"", "time(fc1) < 40 us", kTrue},       {"", "share(allocator calls) == 0", kOpen},
                            {"", "share(allocator calls) < 50%", kTrue}, {"", "gpu busy > 70%", kOpen},       {"", "gpu busy > 20%", kTrue},
                            {"", "median step > 49.2 us", kTrue},     {"", "steps == 40", kTrue}};
  run.trace.losses.dropped_records = run.trace.span_count() / 8, run.trace.losses.invalid_records = 2;
  ClaimChecker checker(run);
  for (const auto& [none, claim, truth] : answers) {
    const CheckedClaim checked = checker.check(claim);
    EXPECT_EQ(checked.truth, truth) << claim << ": " << checked.figure << " " << checked.reason;
    EXPECT_EQ(checked.reason.starts_with("records were lost while recording"), truth == kOpen) << claim;
  }
  EXPECT_THAT(checker.check("kernels per step == 7").figure, HasSubstr("7.000 ± ")) << "the figure is widened";
}

// The GPU decides how long the step takes, so that less time of the host changes nothing.
TEST(Savings, AWaitThatCostsNothingHasNoCard) {
  prof::MadeProgram program = prof::small_network();
  for (prof::MadeKernel& kernel : program.kernels) kernel.work *= 10;
  const prof::RunData run = program.run();
  std::vector<Insight> insights{{.rule = "sync at this line"}, {.rule = "tiny kernels"}, {.rule = "syncs"}};
  for (Insight& insight : insights) insight.edits = "launch calls /2";
  insights[2].edits = "fc1 /2";
  predict_savings(insights, [&] { return prof::step_causes(run); }, run.trace, RunFacts{});
  ASSERT_EQ(insights.size(), 2u);
  EXPECT_EQ(insights[0].rule, "syncs") << "the larger saving";
  EXPECT_GT(insights[0].saves_us.value, 0);
  EXPECT_EQ(insights[1].rule, "tiny kernels");
}

TEST(Claims, NonsenseIsRefusedWithItsPlace) {
  const prof::RunData run = prof::small_network().run();
  ClaimChecker checker(run);
  const auto refusal = [&](const std::string& claim) -> std::string {
    return test::failure_text([&] { checker.check(claim); }, "accepted");
  };
  for (const char* claim : {"", "median step", "median step <", "< 5", "median step < 5 parsecs", "median step < 5 us us", "median step << 5 us", "median step < 10 %", "gpu busy < 5 us", "nonsense < 5", "nonsense(fc1) < 5", "time() < 5 us", "time(fc1 < 5 us",
                            "median step * median step < 5", "5 / median step < 5", "median step + 5 < 10 us", "(median step < 5 us", "median step < 1e999 us", "predicted(make it so) < 5 us"})
    EXPECT_NE(refusal(claim), "accepted") << claim;
  EXPECT_THAT(refusal("median step < 5 parsecs"), HasSubstr("character 17: there is no such unit"));
  EXPECT_THAT(refusal("fastness < 5"), HasSubstr("character 1: there is no measure fastness"));
}

TEST(Claims, WhatIsNoNumberCannotBeDecided) {
  const prof::RunData run = prof::small_network().run();
  ClaimChecker checker(run);
  for (const char* claim : {"1 / 0 < 3", "1 / 0 > 3", "0 / 0 == 0", "kernels per step / 0 != 1", "3 < 1e300 * 1e300"}) {
    const CheckedClaim checked = checker.check(claim);
    EXPECT_EQ(checked.truth, kOpen) << claim;
    EXPECT_THAT(checked.reason, HasSubstr("no finite number")) << claim;
  }
}

TEST(Claims, TextAndJsonHaveFigureAndPlace) {
  const prof::RunData run = prof::import_ranks({WARPSIGHT_SOURCE_DIR "/resources/recorded/mnist-direct.wsrun"});
  ClaimChecker checker(run);
  const std::vector<CheckedClaim> checked{checker.check("median step < 500 us"), checker.check("rank wait < 1 us")};
  EXPECT_THAT(to_text(checked), testing::AllOf(HasSubstr("307.2 µs ± 25.6 µs < 500.0 µs"), HasSubstr("steps 1–48"), HasSubstr("does not have its rank wait")));
  const auto json = nlohmann::json::parse(to_json(checked));
  EXPECT_EQ(json["claims"][0]["truth"], "true");
  EXPECT_EQ(json["claims"][1]["truth"], "cannot tell");
}

TEST(Claims, TheHelpNamesEachMeasure) {
  for (const char* name : {"median step", "kernels per step", "share(NAME)", "predicted(NAME)", "Units:"}) EXPECT_THAT(claim_help(), HasSubstr(name));
}

}  // namespace
}  // namespace ws::app
