// Proofs: which edits are choices, what is kept, and how far predictions on a CPU are off.
#include "app/core/proofs/proved_predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "profiling/base/failure.h"
#include "profiling/base/version.h"
#include "tests/profiling/causes/made_program.h"

namespace ws::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunSpec naive() {
  RunSpec spec = load_spec("mnist-naive");
  set_field(spec, "exec.device", "cpu");
  return spec;
}

TEST(Proof, EditsOfAllCallsAreChoices) {
  const ChosenEdits chosen = choices_of(naive(), prof::parse_edits("no sync; no allocator calls"), false);
  EXPECT_EQ(chosen.refusal, "");
  EXPECT_EQ(chosen.spec.exec.sync, SyncPolicy::OnRead);
  EXPECT_EQ(chosen.spec.exec.allocator, Allocator::Arena);
  EXPECT_EQ(chosen.changes.size(), 2u);
}

TEST(Proof, OthersSayWhyTheyAreNone) {
  EXPECT_THAT(choices_of(naive(), prof::parse_edits("fc1 /2"), false).refusal, HasSubstr("\"fc1 /2\" is no setting"));
  EXPECT_THAT(choices_of(naive(), prof::parse_edits("no sync loss"), false).refusal, HasSubstr("no setting"));
  EXPECT_NE(choices_of(naive(), prof::parse_edits("one graph launch"), false).refusal, "") << "a CPU has no graphs";
  RunSpec fast = naive();
  set_field(fast, "exec.sync", "on-read");
  EXPECT_THAT(choices_of(fast, prof::parse_edits("no sync"), false).refusal, HasSubstr("already"));
}

TEST(Proof, EditsLeadFromOneChoiceToAnother) {
  RunSpec after = naive();
  set_field(after, "exec.sync", "on-read");
  EXPECT_EQ(edits_between(naive(), after), "no sync");
  EXPECT_EQ(edits_between(after, naive()), std::nullopt) << "no edit adds waits";
  set_field(after, "exec.allocator", "caching");
  EXPECT_EQ(edits_between(naive(), after), std::nullopt);
}

std::vector<double> counted_rounds(const std::vector<std::pair<double, double>>& around, size_t wanted) {
  std::vector<ProofRound> rounds;
  for (const auto& [earlier, later] : around) rounds.push_back({{{earlier, 1}, {}}, {{later, 1}, {}}, {0.5 * earlier, 1}});
  std::vector<double> counted;
  for (const ProofRound& round : at_one_pace(rounds, wanted)) counted.push_back(round.measured_us.value);
  return counted;
}

TEST(Proof, RoundsInWhichTheMachineChangedItsPaceAreLeftOut) {
  EXPECT_THAT(counted_rounds({{150, 100}, {100, 102}, {102, 140}, {140, 140}}, 2), ElementsAre(70, 50)) << "at any pace";
  EXPECT_THAT(counted_rounds({{100, 120}, {120, 200}, {200, 150}}, 2), ElementsAre(50, 100)) << "too few: those that differ least";
}

// The machine becomes twice as slow while the first recording with the edits is made; afterwards it keeps its pace.
TEST(Proof, BothSidesTakeTurnsUntilEnoughRoundsKeptTheirPace) {
  std::string turns;
  const auto recorded = [&turns](char side, bool sync) {
    prof::MadeProgram program = prof::small_network();
    program.sync = sync;
    const prof::TimeNs pace = turns.empty() ? 6000 : 12'000;
    for (prof::MadeKernel& kernel : program.kernels) kernel.call = pace;
    turns += side;
    return program.run();
  };
  const Proof proof = prove_in_turn("no sync", 2, [&] { return recorded('b', true); }, [&] { return recorded('a', false); });
  EXPECT_EQ(turns, "bababab");
  EXPECT_EQ(proof.rounds, 2);
  EXPECT_EQ(proof.left_out, 1);
  EXPECT_NEAR(proof.error(), 0, 0.02);
  EXPECT_THAT(to_text(proof), HasSubstr("2 rounds in turn; 1 left out, as the machine changed its pace"));
}

// The two sides of a round have the same pace, whatever it is.
TEST(Proof, APaceThatChangesBetweenRoundsDoesNotCount) {
  int recordings = 0;
  const auto recorded = [&](bool sync) {
    prof::MadeProgram program = prof::small_network();
    program.sync = sync;
    for (prof::MadeKernel& kernel : program.kernels) kernel.call = recordings / 4 % 2 == 0 ? 6000 : 9000;
    ++recordings;
    return program.run();
  };
  EXPECT_NEAR(prove_in_turn("no sync", 4, [&] { return recorded(true); }, [&] { return recorded(false); }).error(), 0, 0.02);
}

// Two of three rounds are right, each at a pace of its own; the recording with the edit is too quick in the third. The medians of
// the two sides would come from different rounds.
TEST(Proof, ItsFiguresComeFromTheRoundInTheMiddle) {
  const prof::TimeNs paces[] = {6000, 6000, 6000, 6000, 12'000, 12'000, 12'000, 7000, 12'000};
  int recordings = 0;
  const auto recorded = [&](bool sync) {
    prof::MadeProgram program = prof::small_network();
    program.sync = sync;
    for (prof::MadeKernel& kernel : program.kernels) kernel.call = paces[recordings];
    ++recordings;
    return program.run();
  };
  const Proof proof = prove_in_turn("no sync", 3, [&] { return recorded(true); }, [&] { return recorded(false); });
  EXPECT_EQ(proof.rounds, 3);
  EXPECT_NEAR(proof.error(), 0, 0.02);
}

TEST(Proof, KeptProofsAreReadAgain) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("proofs-" + std::to_string(getpid()) + ".jsonl");
  Proof proof;
  proof.name = "a", proof.edits = "no sync", proof.before_us = {100, 1}, proof.predicted_us = {52, 1}, proof.after_us = {50, 1}, proof.rounds = 3;
  keep(proof, file);
  std::ofstream(file, std::ios::app) << "damaged {\n{\"edits\": 3}\n";
  proof.predicted_us.value = 40, proof.versions = {.warpsight = "0.1", .driver = "580.159", .cuda = {}, .torch = {}};
  keep(proof, file);
  const std::vector<Proof> kept = kept_proofs(file);
  EXPECT_EQ(versions_text(kept.at(1).versions), "Warpsight 0.1, driver 580.159");
  EXPECT_EQ(versions_text(kept.at(0).versions), "") << "as older versions wrote it";
  std::filesystem::remove(file);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].edits, "no sync");
  EXPECT_NEAR(kept[0].error(), 0.04, 1e-9);
  const ProofErrors errors = errors_of(kept);
  EXPECT_EQ(errors.within_10_percent, 1u);
  EXPECT_NEAR(errors.worst, 0.2, 1e-9);
  EXPECT_EQ(errors_text(errors), "typically 12.0 % off, 1 of 2 within 10 %, worst 20.0 %");
  EXPECT_EQ(errors_text({}), "");
}

TEST(Proof, VersionsComeFromTheRecording) {
  prof::RunSummary run;
  const std::string warpsight = std::string("Warpsight ") + version();
  EXPECT_EQ(versions_text(versions_of(run)), warpsight) << "a machine without a GPU";
  run.machine = R"({"gpu": null, "driver": null, "runtime": null})";
  EXPECT_EQ(versions_text(versions_of(run)), warpsight);
  run.machine = R"({"driver": "580.159", "runtime": "13.0"})";
  EXPECT_EQ(versions_text(versions_of(run)), warpsight + ", driver 580.159, CUDA 13.0");
  run.extra["program_torch"] = "2.9.0", run.extra["program_torch_cuda"] = "12.8";
  EXPECT_EQ(versions_text(versions_of(run)), warpsight + ", driver 580.159, CUDA 12.8, PyTorch 2.9.0");
}

Proof made_proof(const std::string& edits, double predicted, double measured, const std::string& device = "CPU") {
  Proof proof;
  proof.edits = edits, proof.device = device, proof.predicted_us = {predicted, 1}, proof.after_us = {measured, 1};
  return proof;
}

TEST(ProvedPredictions, AreQuotedByTheKindOfEdit) {
  const std::vector<Proof> here{made_proof("no sync", 104, 100), made_proof("no sync", 92, 100), made_proof("no sync loss", 97, 100), made_proof("no sync; fc1 /2", 150, 100)};
  const std::vector<Proof> shipped{made_proof("one graph launch", 103, 100, "NVIDIA H200"), made_proof("no sync", 200, 100, "NVIDIA H200")};
  const ProvedPredictions proved(here, shipped);
  EXPECT_EQ(proved.checked_text("no sync"), "no sync: typically 4.0 %, at most 8.0 % off in 3 checks on this machine");
  EXPECT_EQ(proved.checked_text("NAME /N; no sync"), "NAME /N; no sync: 50.0 % off in 1 check on this machine");
  EXPECT_EQ(proved.checked_text("one graph launch"), "one graph launch: 3.0 % off in 1 check on an NVIDIA H200");
  EXPECT_EQ(proved.checked_text("NAME /N"), "NAME /N: not checked yet");
  EXPECT_EQ(sure_text({12.34, 3}, 123, "no sync", proved), "± 3.0 µs · typically 4.0 % off in 3 checks on this machine");
  EXPECT_EQ(sure_text({0.61, 160}, 12'000, "NAME /N", proved), "± 0.16 ms · not checked yet") << "the unit of the step";
  EXPECT_EQ(sure_text({12.34, 0}, 123, "one graph launch", proved), "± unknown · 3.0 % off in 1 check on an NVIDIA H200");
  const ProvedPredictions none_here({}, shipped);
  EXPECT_EQ(none_here.where(), "on an NVIDIA H200, none on this machine");
  EXPECT_EQ(none_here.proofs().size(), 2u);
  using Kinds = std::set<std::string>;
  EXPECT_EQ(proved.checked_text(Kinds{"no sync", "NAME /N; no sync"}), "such predictions were typically 6.0 %, at most 50.0 % off in 4 checks on this machine");
  EXPECT_EQ(proved.checked_text(Kinds{"no sync", "fusion pointwise"}), "where checked, such predictions were typically 4.0 %, at most 8.0 % off in 3 checks on this machine");
  EXPECT_EQ(ProvedPredictions({}, {}).checked_text(Kinds{"no sync"}), "no such prediction has been checked yet");
  std::vector<Proof> of_both = here;
  of_both[0].changes = "pinned", of_both[1].changes = of_both[2].changes = of_both[3].changes = "exec.sync: every-op → on-read";
  using enum CheckedPrograms;
  EXPECT_EQ(ProvedPredictions(of_both, {}, Programs).checked_text(Kinds{"no sync"}), "such predictions of a recorded program were 4.0 % off in 1 check on this machine");
  EXPECT_EQ(ProvedPredictions(of_both, {}, Trainings).checked_text(Kinds{"no sync"}), "such predictions of a training were typically 5.5 %, at most 8.0 % off in 2 checks on this machine");
  EXPECT_EQ(ProvedPredictions(of_both, {}, Programs).checked_text(Kinds{"NAME /N; no sync"}), "no such prediction of a recorded program has been checked yet");
  const std::vector<ProvedKind> kinds = proved.by_kind();
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].kind, "no sync");
  EXPECT_EQ(kinds[0].errors.proofs, 3u);
}

TEST(ProvedPredictions, KindsOfEditsAreTheirForms) {
  for (const auto& [edits, kind] : {std::pair("no waits", "no sync"), {"fc1 /2; fc2 *3", "NAME /N"}, {"op loss gone", "NAME gone"}, {"rank 3 on time", "rank N on time"}, {"16 ranks", "N ranks"},
                                    {"copies pinned; no sync", "no sync; copies pinned"}, {"an edit of another version", "an edit of another version"}})
    EXPECT_EQ(kind_of_edits(edits), kind) << edits;
}

// The shipped proofs are the rows of the results that the benchmark wrote.
TEST(ProvedPredictions, ThoseThatShipAreTheMeasuredOnes) {
  const std::vector<Proof> shipped = kept_proofs(WARPSIGHT_SOURCE_DIR "/resources/proofs/nvidia-h200.jsonl");
  const auto results = nlohmann::json::parse(std::ifstream(WARPSIGHT_SOURCE_DIR "/tests/bench/results/proofs_h200.json"));
  std::vector<double> errors;
  for (const char* list : {"ladder", "random"})
    for (const auto& row : results[list])
      if (!row.contains("failed")) errors.push_back(row["error"]);
  const auto switches = nlohmann::json::parse(std::ifstream(WARPSIGHT_SOURCE_DIR "/tests/bench/results/switch_proofs_h200.json"));
  for (const auto& row : switches["rows"]) errors.push_back(row["error"]);
  ASSERT_EQ(shipped.size(), errors.size());
  for (size_t i = 0; i < errors.size(); ++i) EXPECT_NEAR(shipped[i].error(), errors[i], 1e-9) << i;
  EXPECT_NEAR(errors_of({shipped.begin(), shipped.end() - static_cast<std::ptrdiff_t>(switches["rows"].size())}).median, results["errors"]["median"], 1e-9);
}

TEST(PredictedSavings, AreShorterSteps) {
  const auto saving = [](Interval saves, double step_us) { return saving_text(Insight{.saves_us = saves}, step_us); };
  EXPECT_EQ(saving({12.34, 3}, 123), "a step would take 12.3 µs less (10 %)");
  EXPECT_EQ(saving({1.5, 0}, 6), "a step would take 1.50 µs less (25 %)");
  EXPECT_EQ(saving({113.9, 11}, 4720), "a step would take 0.11 ms less (2 %)") << "the unit of the step";
  EXPECT_EQ(saving({0.5, 2}, 100), "a step would take up to 2.5 µs less (2 %)");
  EXPECT_EQ(saving({0, 0}, 100), "a step would take as long");
  EXPECT_EQ(saving_text(Insight{.at_most_us = 700}, 1400), "a step would take up to 0.70 ms less (50 %)");
}

TEST(PredictedSavings, AreMadeFromTheEditsOfTheAdvice) {
  prof::MadeProgram program = prof::small_network();
  program.sync = true, program.wake_up = 9000;
  const prof::RunData run = program.run();
  std::vector<Insight> found = run_insights(run).found;
  const auto waits = std::ranges::find(found, "syncs", &Insight::rule);
  ASSERT_NE(waits, found.end());
  EXPECT_EQ(waits->edits, "no sync");
  EXPECT_NEAR(waits->saves_us.value, program.step_us() - prof::small_network().step_us(), 0.02 * program.step_us());
  EXPECT_THAT(saving_text(*waits, 0), testing::AllOf(testing::StartsWith("a step would take "), testing::EndsWith(" µs less")));
  EXPECT_EQ(saving_text(Insight{.rule = "memory grows"}, 100), "");
  EXPECT_EQ(saving_text(Insight{.change = {{"exec.fusion", "pointwise"}}, .predicted_us = 80}, 100), "a step would take 20.0 µs less (20 %)");
  EXPECT_EQ(predictions_note({Insight{.rule = "memory grows"}}, proved_predictions()).checked, "") << "nothing is predicted";
  EXPECT_EQ(checked_text(Insight{.rule = "memory grows"}, proved_predictions()), "");
  EXPECT_THAT(checked_text(*waits, proved_predictions()), HasSubstr("Such predictions "));
  EXPECT_THAT(predictions_note(found, proved_predictions()).checked, testing::AllOf(HasSubstr("uch predictions "), HasSubstr("no sync: ")));
}

TEST(Proof, AProofThatIsNoChoiceIsRefusedBeforeItTrains) {
  EXPECT_THROW(prove(naive(), "fc1 /2", {}), Failure);
  EXPECT_THROW(prove(naive(), "make it fast", {}), Failure);
}

TEST(Proof, SwitchesOfAProgramHaveTheirEdits) {
  EXPECT_EQ(edits_of({.switches = "pinned; workers=8"}), "copies pinned; loader ready");
  EXPECT_EQ(edits_of({.switches = "tf32", .edits = "forward /2"}), "forward /2");
  for (const auto& [switches, sentence] : {std::pair("pinned; faster", "\"faster\" is no switch. Switches are: pinned, "), {"tf32", "No edit says what tf32 does."}, {"graphs", "No edit says what graphs does."}, {" ; ", "Name at least one switch."}}) {
    try {
      edits_of({.switches = switches});
      ADD_FAILURE() << switches;
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr(sentence));
    }
  }
}

TEST(Proof, TheLadderOfTheCpuIsPredicted) {
  RunSpec spec = naive();
  const data::Dataset data = data::load(spec.data);
  for (const char* edits : {"no allocator calls", "no sync", "no sync; no allocator calls"}) {
    // Other programs spoil single trainings, so the error in the middle of seven counts.
    std::vector<double> errors;
    const auto within = [&](bool wanted) { return std::ranges::count_if(errors, [&](double error) { return (std::abs(error) <= 0.15) == wanted; }); };
    while (within(true) < 4 && within(false) < 4) errors.push_back(prove(spec, edits, data, {.seconds = 0.15, .rounds = 3}).error());
    EXPECT_EQ(within(true), 4) << edits << ": " << testing::PrintToString(errors);
  }
}

}  // namespace
}  // namespace ws::app
