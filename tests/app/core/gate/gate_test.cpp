// The gate: pairs in an order drawn by lot, programs that fail or never end, and what it prints.
#include "app/core/gate/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "app/core/gate/clock_lock.h"
#include "profiling/base/failure.h"
#include "profiling/base/process.h"
#include "tests/profiling/causes/made_program.h"

namespace ws::app {
namespace {

// The number that a program writes into a file when it begins.
int64_t number_in(const std::filesystem::path& file) {
  int64_t number = 0;
  while (!(std::ifstream(file) >> number)) std::this_thread::yield();
  return number;
}

using testing::HasSubstr;

// Two made programs, and a clock that each run advances.
struct MadePrograms {
  double change = 0, others = 0;
  std::mt19937 lot{5};
  double now = 0;
  int runs = 0;

  GateMeasurement run(bool second) {
    ++runs, now += 0.5;
    const double noise = 1 + 0.004 * std::normal_distribution<double>()(lot);
    return {2 * noise * (second ? 1 + change : 1), others, {}};
  }
  GateResult gate(GateOptions options = {}) {
    return run_gate(options, [this](bool second) { return run(second); }, [this] { return now; });
  }
};

TEST(GateRuns, FivePercentAreSlowerAfterFewPairs) {
  MadePrograms made{.change = 0.05};
  const GateResult result = made.gate();
  EXPECT_EQ(end_of(result), GateEnd::Slower);
  EXPECT_LT(result.pairs.size(), 13u);
  EXPECT_EQ(made.runs, static_cast<int>(2 * result.pairs.size() + 2)) << "one run of each is thrown away";
  EXPECT_NEAR(result.state.change, 0.05, 0.01);
  EXPECT_EQ(result.seconds, made.now);
}

TEST(GateRuns, TheOrderInAPairIsDrawnByLot) {
  MadePrograms made;
  const GateResult result = made.gate({.limit = 0.0001, .most_pairs = 40});
  const auto first = std::ranges::count(result.a_first, true);
  EXPECT_GT(first, 8);
  EXPECT_LT(first, 32);
}

TEST(GateRuns, EqualProgramsAreWithinTheLimit) {
  MadePrograms made;
  const GateResult result = made.gate();
  EXPECT_EQ(end_of(result), GateEnd::WithinLimit);
  EXPECT_EQ(result.state.verdict, GateVerdict::NoDifference);
}

TEST(GateRuns, AProgramThatFailsEndsTheGate) {
  int runs = 0;
  const auto fails = [&](bool second) { return ++runs > 5 && second ? GateMeasurement{.failure = "it ended with status 3: out of memory"} : GateMeasurement{1}; };
  const GateResult result = run_gate({}, fails, [] { return 0.0; });
  EXPECT_EQ(end_of(result), GateEnd::Failed);
  EXPECT_EQ(result.failure, "B: it ended with status 3: out of memory");
  EXPECT_THAT(to_markdown(result), HasSubstr("no verdict"));
}

TEST(GateRuns, MeasurementsOfRunFilesAreJudgedAlike) {
  std::vector<double> a, b;
  for (int i = 0; i < 12; ++i) a.push_back(100 + i % 3), b.push_back(110 + i % 3);
  EXPECT_EQ(end_of(judge_measured(a, b, 0.02)), GateEnd::Slower);
  EXPECT_EQ(end_of(judge_measured(b, a, 0.02)), GateEnd::WithinLimit) << "faster is not slower";
  EXPECT_EQ(end_of(judge_measured({1, 1}, {2, 2}, 0.02)), GateEnd::CannotTell) << "two repeats are too few";
  b.resize(10);
  const GateResult unequal = judge_measured(a, b, 0.02);
  EXPECT_EQ(end_of(unequal), GateEnd::Slower);
  for (const std::string& text : {to_text(unequal), to_markdown(unequal)}) EXPECT_THAT(text, HasSubstr("left out: 2 of A, as B has fewer"));
  EXPECT_EQ(nlohmann::json::parse(to_json(unequal))["left_out"]["a"], 2);
}

TEST(GateReasonsOf, NameWhatIsSlowerAndWhatOnlyOneOfThemRuns) {
  prof::MadeProgram a = prof::small_network(), b = a;
  for (prof::MadeProgram* program : {&a, &b})
    for (prof::MadeKernel& kernel : program->kernels) kernel.call = 500;
  b.kernels[0].work *= 3, b.kernels.push_back({"extra", 500, 900});
  const GateReasons reasons = reasons_of(a.run(), b.run());
  ASSERT_FALSE(reasons.rows.empty()) << reasons.missing;
  EXPECT_TRUE(std::ranges::any_of(reasons.rows, [](const GateReason& row) { return row.name.find("fc1") != std::string::npos && row.b_us > 2.9 * row.a_us; }));
  EXPECT_TRUE(reasons.only_a.empty());
  EXPECT_EQ(reasons.only_b, std::vector<std::string>{"kernel_extra"});
  GateResult result;
  result.reasons = reasons;
  EXPECT_THAT(to_text(result), HasSubstr("kernel_extra"));
}

// What carries a difference is only for a difference; different work is for each verdict.
TEST(GateReasonsOf, DifferentWorkIsReportedForEachVerdict) {
  for (const GateVerdict verdict : {GateVerdict::CannotTell, GateVerdict::NoDifference, GateVerdict::Slower, GateVerdict::Faster}) {
    GateResult result;
    result.state.verdict = verdict;
    explain(result, [] { return GateReasons{{{"module", "fc1", 10, 20}}, {"old_kernel"}, {"new_kernel", "extra"}, "unknown"}; });
    const bool differs = verdict == GateVerdict::Slower || verdict == GateVerdict::Faster;
    const auto json = nlohmann::json::parse(to_json(result));
    EXPECT_EQ(json["carried_by"].size(), differs ? 1u : 0u);
    EXPECT_EQ(json["only_in_b"], (std::vector<std::string>{"new_kernel", "extra"}));
    EXPECT_THAT(to_text(result), testing::AllOf(HasSubstr("only in A  old_kernel"), HasSubstr("only in B  new_kernel, extra")));
    EXPECT_THAT(to_markdown(result), testing::AllOf(HasSubstr("| only in A | | `old_kernel` |\n"), HasSubstr("| only in B | | `new_kernel`, `extra` |\n")));
    EXPECT_EQ(to_text(result).find("carried by") != std::string::npos, differs);
  }
  GateResult failed;
  failed.failure = "A: it ended with status 1.";
  explain(failed, [] { return GateReasons{.only_a = {"kernel"}}; });
  EXPECT_TRUE(failed.reasons.only_a.empty());
}

TEST(GateText, JsonAndMarkdownHaveTheVerdict) {
  MadePrograms made{.change = 0.05};
  GateResult result = made.gate();
  result.name_a = "./old", result.name_b = "./new", result.unit = "s";
  const auto json = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(json["verdict"], "slower");
  EXPECT_GT(json["low"], 0.02);
  EXPECT_EQ(json["measured"].size(), result.pairs.size());
  EXPECT_THAT(to_markdown(result), testing::AllOf(HasSubstr("slower by"), HasSubstr("`./new`"), HasSubstr("false alarms")));
}

TEST(GateProgram, ItsWallTimeOrTheNumberItPrintsIsMeasured) {
  EXPECT_GT(run_program({{"sh", "-c", "exit 0"}}).value, 0);
  EXPECT_EQ(run_program({{"sh", "-c", "echo step 3.5 us; echo step 4.5 us"}, 60, "step ([0-9.]+)"}).value, 4.5);
  EXPECT_THAT(run_program({{"sh", "-c", "echo nothing"}, 60, "step ([0-9.]+)"}).failure, HasSubstr("matches --figure"));
}

TEST(GateProgram, FailuresAreOneSentence) {
  EXPECT_EQ(run_program({{"sh", "-c", "echo it broke >&2; exit 7"}}).failure, "it ended with status 7: it broke");
  EXPECT_THAT(run_program({{"sh", "-c", "while :; do sleep 1; done"}, 0.3}).failure, HasSubstr("did not end within"));
  const GateResult none = run_gate({}, [](bool second) { return second ? run_program({{"/no/such/program"}}) : GateMeasurement{1}; }, [] { return 0.0; });
  EXPECT_EQ(nlohmann::json::parse(to_json(none))["failure"], "B: /no/such/program cannot be started: No such file or directory.");
  EXPECT_THROW(check_figure("step ([0-9"), Failure);
  EXPECT_THROW(check_figure("step [0-9]+"), Failure);
  EXPECT_NO_THROW(check_figure("step ([0-9]+)"));
}

TEST(GateRuns, AMachineThatIsAlwaysBusyGivesNoVerdictSoon) {
  MadePrograms made{.change = 0.05, .others = 0.9};
  const GateResult result = made.gate();
  EXPECT_EQ(end_of(result), GateEnd::CannotTell);
  EXPECT_EQ(result.state.busy, 20u);
  EXPECT_THAT(to_text(result), testing::AllOf(HasSubstr("cannot tell"), HasSubstr("20 with a busy machine"), HasSubstr("other programs used the processors or the GPU in all pairs")));
}

// A shell that waits for a program of its own, whose number is in the file.
GateProgram never_ending(const std::filesystem::path& file, double timeout_s = 600) {
  // Renamed, so that the number is whole when the file is there.
  return {{"sh", "-c", "sleep 77 & echo $! > " + file.string() + ".new; mv " + file.string() + ".new " + file.string() + "; wait"}, timeout_s, {}};
}

TEST(GateProgram, ThatNeverEndsLeavesNothing) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("gate-left-" + std::to_string(getpid()));
  EXPECT_THAT(run_program(never_ending(file, 1)).failure, HasSubstr("did not end within"));
  const int64_t program = number_in(file);
  while (is_alive(program)) std::this_thread::yield();
  std::filesystem::remove(file);
}

TEST(GateRuns, PairsBesideAnotherProcessOnTheGpuAreLeftOut) {
  int runs = 0;
  MadePrograms made{.change = 0.05};
  const auto measured = [&](bool second) {
    GateMeasurement one = made.run(second);
    one.shared_gpu = ++runs % 8 == 0;  // the run of each fourth pair
    if (one.shared_gpu) one.value *= 3;
    return one;
  };
  const GateResult result = run_gate({.throwaway = false}, measured, [] { return 0.0; });
  EXPECT_EQ(end_of(result), GateEnd::Slower);
  EXPECT_EQ(result.shared_gpu, result.pairs.size() / 4);
  EXPECT_EQ(result.state.busy, result.shared_gpu);
  EXPECT_THAT(to_text(result), HasSubstr(" beside another process on the GPU)"));
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["left_out"]["shared_gpu"], result.shared_gpu);
}

// The parent of this test stands for another user of GPUs.
TEST(GateProgram, NeighboursCountOnTheGpuThatItUses) {
  const int64_t other = getppid();
  Process program({"sh", "-c", "sleep 77 & echo $!; wait"}, Process::Output::Captured, {}, {.group = true});
  std::string line;
  while (!line.ends_with("\n")) line += program.output(1000).value();
  const int64_t child = std::stoll(line);
  std::vector<GpuUser> users;
  const auto beside = [&](std::vector<GpuUser> without, std::vector<GpuUser> with) {
    GpuNeighbours neighbours([&] { return users; });
    users = std::move(without), neighbours.look(0);
    users = std::move(with), neighbours.look(program.id());
    return neighbours.any();
  };
  EXPECT_FALSE(beside({}, {{0, program.id()}, {0, child}, {0, getpid()}})) << "all of it is the program";
  EXPECT_TRUE(beside({}, {{0, child}, {0, other}}));
  EXPECT_TRUE(beside({{0, other}}, {{0, child}})) << "it was there right before";
  EXPECT_FALSE(beside({{1, other}}, {{0, child}, {1, other}})) << "on another GPU";
  EXPECT_FALSE(beside({{0, other}}, {{0, other}})) << "the program uses no GPU";
  constexpr int64_t kUnknown = 2'000'000'000;  // a number outside of a container
  EXPECT_FALSE(beside({}, {{0, kUnknown}}));
  EXPECT_TRUE(beside({{0, kUnknown + 1}}, {{0, kUnknown}}));
  program.signal(SIGKILL);
  program.wait();
}

TEST(GateProgram, AProgramThatHasJustEndedIsNoNeighbour) {
  int looks = 0;
  GpuNeighbours neighbours([&]() -> std::vector<GpuUser> { return ++looks == 1 ? std::vector<GpuUser>{{0, 2'000'000'000}} : std::vector<GpuUser>{}; });
  neighbours.look(0);
  looks = 0, neighbours.look(getppid());
  EXPECT_FALSE(neighbours.any());
  EXPECT_EQ(looks, 1) << "while the program runs, what is there once is there";
}

TEST(GateProgram, ARunBesideANeighbourIsMarked) {
  int looks = 0;
  const auto users = [&]() -> std::vector<GpuUser> { return ++looks == 1 ? std::vector<GpuUser>{} : std::vector<GpuUser>{{0, 2'000'000'000}, {0, getppid()}}; };
  EXPECT_TRUE(run_program({{"sleep", "0.5"}, 60, {}, users}).shared_gpu);
  EXPECT_FALSE(run_program({{"sleep", "0.5"}, 60, {}, [] { return std::vector<GpuUser>{}; }}).shared_gpu);
  EXPECT_GE(looks, 3);
}

// GPUs whose clocks are calls in a file, so that the process that resets them can write there, too.
GpuClocks made_clocks(const std::filesystem::path& file, int error_of_second = 0) {
  const auto note = [file](const std::string& line) { std::ofstream(file, std::ios::app) << line << "\n"; };
  return {[] { return 2U; }, [](unsigned) { return 1980U; },
          [=](unsigned gpu, unsigned mhz) {
            if (gpu == 1 && error_of_second != 0) return error_of_second;
            note("lock " + std::to_string(gpu) + " " + std::to_string(mhz));
            return 0;
          },
          [=](unsigned gpu) {
            note("reset " + std::to_string(gpu));
            return 0;
          }};
}

std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(GateClocks, AreResetAtTheEnd) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("clocks-" + std::to_string(getpid()));
  {
    const ClockLock lock(made_clocks(file));
    EXPECT_EQ(lock.text(), "locked at 1980 MHz");
    EXPECT_EQ(text_in(file), "lock 0 1980\nlock 1 1980\n");
  }
  EXPECT_EQ(text_in(file), "lock 0 1980\nlock 1 1980\nreset 0\nreset 1\n");
  std::filesystem::remove(file);
  EXPECT_EQ(ClockLock(made_clocks(file, 4)).text(), "not locked: no permission; only root may lock clocks");
  EXPECT_EQ(text_in(file), "lock 0 1980\nreset 0\n") << "all or none";
  std::filesystem::remove(file);
}

TEST(GateClocks, AreResetWhenTheGateIsKilled) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("clocks-killed-" + std::to_string(getpid()));
  const pid_t gate = fork();
  if (gate == 0) {
    const ClockLock lock(made_clocks(file));
    raise(SIGKILL);
  }
  waitpid(gate, nullptr, 0);
  while (!text_in(file).ends_with("reset 1\n")) std::this_thread::yield();
  std::filesystem::remove(file);
}

TEST(GateClocks, AreInTheResultOnlyIfAskedFor) {
  MadePrograms made{.change = 0.05};
  GateResult result = made.gate();
  EXPECT_FALSE(nlohmann::json::parse(to_json(result)).contains("clocks"));
  result.clocks = "not locked: no GPU that NVML knows";
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["clocks"], result.clocks);
  EXPECT_THAT(to_text(result), HasSubstr("clocks     not locked: no GPU that NVML knows\n"));
  EXPECT_THAT(to_markdown(result), HasSubstr(" clocks not locked: no GPU that NVML knows."));
}

TEST(GateProgram, EndsWithAGateThatIsEnded) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("gate-" + std::to_string(getpid()));
  const pid_t gate = fork();
  if (gate == 0) {
    run_program(never_ending(file));
    _exit(0);
  }
  const int64_t program = number_in(file);
  kill(gate, SIGTERM);
  int status = 0;
  waitpid(gate, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  while (is_alive(program)) std::this_thread::yield();
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace ws::app
