// A program of several processes leaves the files of those that worked on a GPU.
#include "profiling/recording/process_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "profiling/formats/join_ranks.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/run_file/stored_spans.h"
#include "tests/profiling/analysis/made_ranks.h"
#include "tests/profiling/run_file/run_file_support.h"
#include "tests/profiling/trace/made_spans.h"

namespace ws::prof {
namespace {

class ProcessFiles : public RunFile {
 protected:
  std::string file(const char* name, bool gpu) {
    Made made;
    made.add(TrackKind::Api, SpanKind::Api, Meaning::Other, 0, 100, "cuInit");
    if (gpu) made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 200, "gemm");
    const std::string made_path = (folder / name).string();
    write_run(made_path, made.trace);
    return made_path;
  }
  std::string rank_file(const char* name, int rank, int ranks, int restart = 0) {
    MadeRanks made_ranks;
    made_ranks.ranks = 2, made_ranks.late_rank = 1;
    RunSummary summary = summary_of_test();
    summary.name = "ddp.py · rank " + std::to_string(rank) + " of " + std::to_string(ranks);
    keep_rank(summary, rank, ranks);
    keep_clock(summary, "boot", 0);
    if (restart > 0) summary.extra[kRestartKey] = std::to_string(restart);
    const std::string made_path = (folder / name).string();
    RunFileWriter writer(made_path, summary);
    writer.add(made_ranks.apart()[static_cast<size_t>(rank)]);
    return made_path;
  }
  static bool there(const std::string& file) { return std::filesystem::exists(file); }
};

TEST_F(ProcessFiles, OfALauncherAndWorkersWithoutGpuAreRemoved) {
  const std::vector<std::string> files{file("a.wsrun", false), file("a.10.wsrun", true), file("a.11.wsrun", false),
                                       file("a.12.wsrun", true)};
  fold_processes(files);
  EXPECT_TRUE(there(files[0])) << "the name that was asked for";
  EXPECT_FALSE(there(files[1])) << "it took that name";
  EXPECT_FALSE(there(files[2]));
  EXPECT_TRUE(there(files[3]));
  EXPECT_EQ(RunFileReader(files[0]).outline().tracks().size(), 2u);
}

// Made by "accelerate launch" on a machine without a GPU.
TEST_F(ProcessFiles, OfALauncherWithoutAnyGpuIsRemoved) {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 100, "step");
  const std::vector<std::string> files{file("a.wsrun", false), (folder / "a.10.wsrun").string(), file("a.11.wsrun", false)};
  write_run(files[1], made.trace);
  fold_processes(files);
  EXPECT_TRUE(there(files[0]));
  EXPECT_FALSE(there(files[1]));
  EXPECT_FALSE(there(files[2]));
  EXPECT_EQ(RunFileReader(files[0]).outline().tracks()[0].kind, TrackKind::Steps);
}

TEST_F(ProcessFiles, AllStayWhereNoneWorkedOrOneCannotBeRead) {
  const std::vector<std::string> idle{file("a.wsrun", false), file("a.10.wsrun", false)};
  fold_processes(idle);
  EXPECT_TRUE(there(idle[0]) && there(idle[1]));
  const std::vector<std::string> damaged{file("b.wsrun", true), (folder / "b.10.wsrun").string()};
  std::ofstream(damaged[1]) << "no database";
  fold_processes(damaged);
  EXPECT_TRUE(there(damaged[0]) && there(damaged[1]));
}

TEST_F(ProcessFiles, OfTheRanksOfAProgramBecomeOne) {
  const std::vector<std::string> files{file("a.wsrun", false), rank_file("a.11.wsrun", 1, 2),
                                       rank_file("a.12.wsrun", 0, 2)};
  fold_processes(files);
  EXPECT_TRUE(there(files[0])) << "the name that was asked for, in place of the launcher";
  EXPECT_FALSE(there(files[1]) || there(files[2]));
  EXPECT_EQ(read_run_summary(files[0]).name, "ddp.py · 2 ranks");
  const RankReport report = StoredSpans(files[0]).ranks();
  EXPECT_EQ(report.straggler.rank, 1);
  EXPECT_EQ(report.straggler.every, 10);
}

TEST_F(ProcessFiles, OfRanksThatCannotBeJoinedStay) {
  std::vector<std::string> files{rank_file("a.wsrun", 0, 2), rank_file("a.11.wsrun", 1, 2)};
  Database(files[1], Database::Mode::Update).exec("DELETE FROM block_data WHERE id % 2 = 0");
  fold_processes(files);
  EXPECT_TRUE(there(files[0]) && there(files[1]));
  EXPECT_EQ(RunFileReader(files[0]).summary().extra.at(kRankKey), "0") << "unchanged";
}

// torchrun starts all ranks anew when one of them fails.
TEST_F(ProcessFiles, OfEachAttemptBecomeOneRun) {
  const std::vector<std::string> files{rank_file("a.wsrun", 0, 2), rank_file("a.11.wsrun", 1, 2),
                                       rank_file("a.12.wsrun", 0, 2, 1), rank_file("a.13.wsrun", 1, 2, 1)};
  fold_processes(files);
  EXPECT_EQ(read_run_summary(files[0]).name, "ddp.py · 2 ranks · restart 1") << "the last attempt has the name that was asked for";
  const size_t left = static_cast<size_t>(std::ranges::count_if(files, there));
  ASSERT_EQ(left, 2u);
  const std::string earlier = *std::find_if(files.begin() + 1, files.end(), there);
  EXPECT_EQ(read_run_summary(earlier).name, "ddp.py · 2 ranks");
  EXPECT_EQ(StoredSpans(earlier).ranks().straggler.rank, 1);
  EXPECT_EQ(StoredSpans(files[0]).ranks().straggler.rank, 1);
}

TEST_F(ProcessFiles, OfTheOnlyRankOfAnAttemptStayBesideTheNextOne) {
  const std::vector<std::string> files{rank_file("a.wsrun", 0, 2), rank_file("a.12.wsrun", 0, 2, 1),
                                       rank_file("a.13.wsrun", 1, 2, 1)};
  fold_processes(files);
  EXPECT_EQ(read_run_summary(files[0]).name, "ddp.py · 2 ranks · restart 1");
  EXPECT_EQ(std::ranges::count_if(files, there), 2);
  EXPECT_EQ(read_run_summary(files[1]).name, "ddp.py · rank 0 of 2");
}

// A writer on a full disk, or one that was killed, leaves the newest part of its run in a log.
TEST_F(ProcessFiles, KeepTheirLogsWhenTheyTakeTheName) {
  const std::vector<std::string> files{file("a.wsrun", false), (folder / "a.10.wsrun").string()};
  MadeRanks made;
  made.ranks = 1, made.late_rank = 0;
  RunFileWriter writer((folder / "live.wsrun").string(), summary_of_test());
  writer.add(made.joined());
  const uint64_t spans = made.joined().tracks()[0].spans;
  for (const char* suffix : {"", "-wal", "-shm"})  // as they are while it is written
    std::filesystem::copy(folder / ("live.wsrun" + std::string(suffix)), files[1] + suffix);
  ASSERT_GT(std::filesystem::file_size(files[1] + "-wal"), 0u);
  fold_processes(files);
  EXPECT_FALSE(there(files[1]) || there(files[1] + "-wal"));
  EXPECT_EQ(RunFileReader(files[0]).outline().tracks()[0].spans, spans);
}

TEST_F(ProcessFiles, OfRanksThatCannotBeJoinedHaveTheNameThatWasAskedForAmongThem) {
  std::vector<std::string> files{file("a.wsrun", false), rank_file("a.11.wsrun", 0, 2), rank_file("a.12.wsrun", 1, 2)};
  Database(files[2], Database::Mode::Update).exec("DELETE FROM block_data WHERE id % 2 = 0");
  fold_processes(files);
  EXPECT_EQ(RunFileReader(files[0]).summary().extra.at(kRankKey), "0") << "in place of the launcher";
  EXPECT_TRUE(there(files[2]));
}

TEST(RankText, ComesFromTheLauncher) {
  const auto with = [](std::vector<std::pair<const char*, const char*>> environment) {
    for (const auto& [name, value] : environment) setenv(name, value, 1);
    const std::string text = rank_text();
    for (const auto& [name, value] : environment) unsetenv(name);
    return text;
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), "rank 1 of 2");
  EXPECT_EQ(with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "rank 3 of 4");
  EXPECT_EQ(with({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "3"}}), "rank 2 of 3");
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "") << "one task alone";
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), "") << "a batch script, which runs once";
  EXPECT_EQ(with({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), "");
}

}  // namespace
}  // namespace ws::prof
