// The ranges that a program marks with NVTX are recorded by the library that records it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "profiling/analysis/program_tables.h"
#include "profiling/recording/record_environment.h"
#include "profiling/recording/record_program.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"
#include "tests/profiling/recording/recorded_run.h"
#include "tests/support/own_file.h"

namespace ws::prof {
namespace {

TEST(RecordNvtx, EveryKindOfRangeIsInTheRunFile) {
  const std::string file = ::testing::TempDir() + "nvtx-" + std::to_string(getpid()) + ".wsrun";
  RecordedProgram program({NVTX_PROGRAM}, file, {.library = INJECT_LIBRARY});
  ASSERT_EQ(exit_status(program), 0);
  ASSERT_TRUE(program.recorded());
  RunFileReader reader(file);
  const Trace trace = whole_trace(reader);
  std::map<std::string, int> counts;
  std::map<std::string, std::string> paths;
  for (const Track& track : trace.tracks())
    if (broad_kind(track.kind) == TrackKind::Phases)
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        ++counts[trace.name(span.name)];
        paths[trace.name(span.name)] = trace.ops.at(span.op).layer;
      });
  EXPECT_EQ(counts, (std::map<std::string, int>{{"training step", 10},
                                                {"größe", 10},
                                                {"registered", 10},
                                                {"with attributes", 10},
                                                {"jit_evaluate", 1},
                                                {"dot_general · gemm_fusion_dot", 1},
                                                {"mul · loop_fusion", 2},
                                                {"wrong", 1},
                                                {"from one thread to another", 1}}));
  EXPECT_EQ(paths["registered"], "größe");
  EXPECT_EQ(paths["dot_general · gemm_fusion_dot"], "Net/Dense_0");
  EXPECT_EQ(paths["mul · loop_fusion"], "Net");
  EXPECT_EQ(reader.summary().steps, 10);
  EXPECT_EQ(reader.summary().extra.at("steps_from"), "the program's ranges");
  std::filesystem::remove(file);
}

// No file can take a byte, as on a full disk: the program runs, and no empty recording is left.
TEST(RecordNvtx, NothingIsLeftWhereNothingCanBeWritten) {
  const std::string file = test::own_file("full.wsrun");
  RecordedProgram program({"sh", "-c", "trap '' XFSZ; ulimit -f 0; exec env LD_PRELOAD=" STARTS_RECORDING " true"}, file, {.library = INJECT_LIBRARY});
  EXPECT_EQ(exit_status(program), 0);
  EXPECT_FALSE(program.recorded());
  for (const char* suffix : {"", "-wal", "-shm"}) EXPECT_FALSE(std::filesystem::exists(file + suffix)) << suffix;
}

// Our own trainer with two ranks in one process, each of which works on a thread of its own.
TEST(RecordNvtx, RanksThatShareAProcessHaveStepsAndRangesOfTheirOwn) {
  const std::string file = ::testing::TempDir() + "ranks-" + std::to_string(getpid()) + ".wsrun";
  const std::string train = "LD_PRELOAD=" STARTS_RECORDING " " WARPSIGHT_CLI " train iris --set exec.device=cpu --set exec.gpus=2 "
                            "--set train.epochs=3 --out " + file + "-out >/dev/null";
  RecordedProgram program({"sh", "-c", train}, file, {.library = INJECT_LIBRARY});
  ASSERT_EQ(exit_status(program), 0);
  RunFileReader reader(file);
  const Trace trace = whole_trace(reader);
  std::map<int, uint64_t> steps, ranges;
  for (const Track& track : trace.tracks()) {
    if (track.kind == TrackKind::Steps) steps[track.rank] += track.spans;
    if (broad_kind(track.kind) == TrackKind::Phases) ranges[track.rank] += track.spans;
  }
  const auto each = static_cast<uint64_t>(reader.summary().steps);
  EXPECT_GE(each, 3u);
  EXPECT_EQ(steps, (std::map<int, uint64_t>{{0, each}, {1, each}}));
  EXPECT_GT(ranges[0], 3 * each) << "a step and its ops";
  EXPECT_GT(ranges[1], 3 * each);
  EXPECT_EQ(rank_of_steps(trace), 0) << "a step of the run is what one rank does";
  std::filesystem::remove(file);
  test::remove_folder(file + "-out");
}

// Stacks of all threads, outermost first, and the time in each.
HostStacks stacks_of(const char* level) {
  const std::string file = ::testing::TempDir() + "native-" + level + std::to_string(getpid()) + ".wsrun";
  RecordedProgram program({NATIVE_PROGRAM}, file, {.library = INJECT_LIBRARY, .python = python_level(level)});
  EXPECT_EQ(exit_status(program), 5);
  RunFileReader reader(file);
  const Trace trace = whole_trace(reader);
  std::filesystem::remove(file);
  return host_stacks(trace);
}

#if defined(__x86_64__)
TEST(RecordNative, AProgramWithoutPythonShowsWhereItsThreadsAre) {
  const HostStacks stacks = stacks_of("lines");
  std::map<std::string, int64_t> times;  // by what called prepare()
  const auto is = [](const char* function) { return [=](const CodeFrame& frame) { return frame == CodeFrame{"native_program", 0, function}; }; };
  for (const auto& [stack, ns] : stacks)
    if (const auto at = std::ranges::find_if(stack, is("busy::prepare")); at != stack.end())
      times[at != stack.begin() && is("busy::help")(*std::prev(at)) ? "help" : "main"] += ns;
  EXPECT_GT(times["main"], 100'000'000) << "of 700 ms";
  EXPECT_GT(times["help"], 100'000'000);
  EXPECT_TRUE(stacks_of("ops").empty());
}
#endif

}  // namespace
}  // namespace ws::prof
