// Runs of single ranks become one run: on one clock, with the late rank where it was planted.
#include "profiling/formats/join_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "profiling/analysis/ranks.h"
#include "profiling/base/failure.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/stored_spans.h"
#include "profiling/trace/track_names.h"
#include "tests/profiling/analysis/made_ranks.h"
#include "tests/profiling/run_file/run_file_support.h"
#include "tests/support/failure_text.h"

namespace ws::prof {
namespace {

// Runs as a recording leaves them: each with its own origin on the clock of its host.
std::vector<RunData> made_runs(const MadeRanks& made, int hosts = 1) {
  std::vector<Trace> traces = made.apart();
  std::vector<RunData> runs;
  for (int r = 0; r < made.ranks; ++r) {
    RunData& run = runs.emplace_back();
    run.trace = std::move(traces[static_cast<size_t>(r)]);
    run.summary.name = "ddp.py · rank " + std::to_string(r) + " of " + std::to_string(made.ranks);
    run.summary.device = "NVIDIA H200";
    run.summary.status = "finished";
    const int host = r * hosts / made.ranks;
    keep_rank(run.summary, r, made.ranks);
    keep_clock(run.summary, "boot " + std::to_string(host), 0);
    run.summary.extra[kHostKey] = "host " + std::to_string(host);
    run.metrics.push_back({0, 0.5, 10.0 + r, 0});
  }
  return runs;
}

TEST(JoinRanks, TracksGetRankAndGroupAndTheLowestRankGivesTheLosses) {
  MadeRanks made;
  made.ranks = 2, made.late_rank = 1;
  const RunData run = join_ranks(made_runs(made));
  EXPECT_EQ(run.summary.name, "ddp.py · 2 ranks");
  EXPECT_EQ(run.summary.device, "2 × NVIDIA H200");
  EXPECT_FALSE(run.summary.extra.contains(kRankKey));
  EXPECT_FALSE(run.summary.extra.contains(kHostsKey)) << "one host";
  EXPECT_TRUE(run.problems.empty());
  ASSERT_EQ(run.trace.tracks().size(), 6u);
  EXPECT_EQ(run.trace.tracks()[0].group, "rank 0 · GPU 0");
  EXPECT_EQ(run.trace.tracks()[3].group, "rank 1 · GPU 0");
  EXPECT_EQ(run.trace.tracks()[3].rank, 1);
  ASSERT_EQ(run.metrics.size(), 1u);
  EXPECT_EQ(run.metrics[0].loss, 10.0);
  const RankReport apart = rank_report(made.joined()), together = rank_report(run.trace);
  EXPECT_EQ(together.straggler.late_us, apart.straggler.late_us);
  EXPECT_EQ(together.wait_us, apart.wait_us);
}

TEST(JoinRanks, OriginsOfOneHostAreOneClock) {
  MadeRanks made;
  made.ranks = 3, made.late_rank = 0;
  made.clock = [](int rank, TimeNs time) { return time - rank * 700'000'000; };  // rank 2 began 1.4 s later
  std::vector<RunData> runs = made_runs(made);
  for (int r = 0; r < 3; ++r) keep_clock(runs[static_cast<size_t>(r)].summary, "boot", 5'000'000'000 + r * 700'000'000);
  const RankReport report = rank_report(join_ranks(std::move(runs)));
  EXPECT_EQ(report.straggler.rank, 0);
  EXPECT_NEAR(report.straggler.late_us, 3000, 5);
  EXPECT_EQ(report.clock_error_us, 0);
}

TEST(JoinRanks, AnEarlierOriginMovesTheLossesToo) {
  MadeRanks made;
  made.ranks = 2, made.late_rank = 1;
  std::vector<RunData> runs = made_runs(made);
  keep_clock(runs[0].summary, "boot", 2'000'000'000);  // two seconds after rank 1
  keep_clock(runs[1].summary, "boot", 0);
  const TimeNs first = runs[1].trace.first_time();
  const RunData run = join_ranks(std::move(runs));
  EXPECT_EQ(run.trace.first_time(), 0);
  EXPECT_NEAR(run.metrics[0].wall_s, 0.5 + 2 - static_cast<double>(first) * 1e-9, 1e-6);
}

TEST(JoinRanks, OriginsThatNoClockHasStayInRange) {
  MadeRanks made;
  made.ranks = 2, made.late_rank = 1;
  std::vector<RunData> runs = made_runs(made);
  keep_clock(runs[0].summary, "boot", std::numeric_limits<int64_t>::min());
  keep_clock(runs[1].summary, "boot", std::numeric_limits<int64_t>::max());
  const RunData run = join_ranks(std::move(runs));
  EXPECT_GT(run.trace.last_time() - run.trace.first_time(), TimeNs{1} << 61) << "far apart, and not wrapped";
}

// Two hosts, whose clocks are a second apart and drift by 20 ppm.
TEST(JoinRanks, ClocksOfHostsAreAlignedByTheirCollectives) {
  for (const double offset_s : {1.0, -1.0})
    for (const double drift : {0.0, 20e-6, -20e-6}) {
      MadeRanks made;
      made.steps = 1001;  // 1.6 s, in which 20 ppm are 32 µs
      made.late = 500'000;
      made.clock = [&](int rank, TimeNs time) {
        return rank < 4 ? time
                        : time + static_cast<TimeNs>(offset_s * 1e9) + std::llround(drift * static_cast<double>(time));
      };
      const RunData run = join_ranks(made_runs(made, 2));
      const RankReport report = rank_report(run);
      EXPECT_LT(report.clock_error_us, 1) << "the ends are exact here";
      EXPECT_EQ(report.straggler.rank, 5);
      EXPECT_EQ(report.straggler.every, 10);
      EXPECT_NEAR(report.straggler.late_us, 500, 25);
      for (const size_t step : {size_t{5}, size_t{995}})
        for (size_t rank = 0; rank < 8; ++rank) EXPECT_LT(report.late(rank, step), 5) << drift << " " << step;
      EXPECT_EQ(report.ranks[3].host, "host 0");
      EXPECT_EQ(report.ranks[4].host, "host 1");
    }
}

TEST(JoinRanks, TheErrorOfAlignedClocksIsTheSpreadOfTheEnds) {
  MadeRanks made;
  made.ranks = 2, made.late_rank = 1;
  std::mt19937 random(3);
  made.clock = [&](int rank, TimeNs time) { return time + (rank == 1 ? static_cast<TimeNs>(random() % 20'001) : 0); };
  const RankReport report = rank_report(join_ranks(made_runs(made, 2)));
  EXPECT_GT(report.clock_error_us, 5);
  EXPECT_LT(report.clock_error_us, 15);
}

// Four hosts. Ranks 0 and 1 hold the parts of a layer, as 2 and 3 do; 0 and 2 average, as 1 and 3 do. So ranks 0 and 3 share nothing.
TEST(JoinRanks, AClockIsAlignedOverRanksThatBothSidesShareCollectivesWith) {
  std::vector<RunData> runs(4);
  const auto clock = [](size_t rank, TimeNs time) { return time + static_cast<TimeNs>(rank) * 7'000'000; };
  for (size_t rank = 0; rank < 4; ++rank) {
    RunData& run = runs[rank];
    keep_rank(run.summary, static_cast<int>(rank), 4);
    keep_clock(run.summary, "boot " + std::to_string(rank), 0);
    const TrackId track = run.trace.track(TrackKind::Stream, "stream 7", "GPU 0");
    for (uint32_t step = 0; step < 40; ++step)
      for (const bool data : {false, true}) {
        Detail detail;
        detail.copy_kind = data ? "data " + std::to_string(rank % 2) : "tensor " + std::to_string(rank / 2);
        const TimeNs late = rank == 3 && step % 4 == 1 ? 500'000 : 0, begin = step * 2'000'000 + (data ? 900'000 : late);
        const TimeNs end = step * 2'000'000 + (data ? 1'000'000 : 800'000);
        Span span;
        span.start = clock(rank, begin), span.duration = static_cast<uint64_t>(end - begin);
        span.kind = static_cast<uint8_t>(SpanKind::Kernel), span.meaning = static_cast<uint8_t>(Meaning::Communication);
        span.name = run.trace.intern("AllReduce"), span.detail = run.trace.intern(detail), span.step = step + 1;
        run.trace.append(track, span);
      }
  }
  const RunData joined = join_ranks(std::move(runs));
  EXPECT_TRUE(joined.problems.empty());
  const RankReport report = rank_report(joined);
  EXPECT_LT(report.clock_error_us, 1);
  EXPECT_EQ(report.straggler.rank, 3);
  EXPECT_EQ(report.straggler.every, 4);
  EXPECT_NEAR(report.straggler.late_us, 500, 1);
}

TEST(JoinRanks, WithoutACommonCollectiveItReportsThatTheClocksAreAGuess) {
  MadeRanks made;
  made.ranks = 4;
  std::vector<RunData> runs = made_runs(made, 4);
  for (size_t r = 1; r < 4; ++r) runs[r].trace = Trace();
  const RunData run = join_ranks(std::move(runs));
  ASSERT_EQ(run.problems.size(), 1u) << "one sentence for all ranks";
  EXPECT_TRUE(run.problems[0].starts_with("Ranks 1 to 3 share no collective with rank 0")) << run.problems[0];
  EXPECT_NE(run.problems[0].find("only a guess"), std::string::npos) << run.problems[0];
}

TEST(JoinRanks, CallsOfTwoProcessesKeepTheirOwnWork) {
  std::vector<RunData> runs(2);
  for (int r = 0; r < 2; ++r) {
    Span span;
    span.correlation = 7;
    Trace& trace = runs[static_cast<size_t>(r)].trace;
    span.name = trace.intern(r == 0 ? "a" : "b");
    OpInfo op;
    op.name = "op " + std::to_string(r);
    trace.ops.push_back(op);
    span.op = 1;
    trace.append(trace.track(TrackKind::Stream, "stream 7", "GPU 0"), span);
    keep_rank(runs[static_cast<size_t>(r)].summary, r, 2);
    keep_clock(runs[static_cast<size_t>(r)].summary, "boot", 0);
  }
  const RunData run = join_ranks(std::move(runs));
  const Span a = spans_of(run.trace.tracks()[0]).at(0), b = spans_of(run.trace.tracks()[1]).at(0);
  EXPECT_NE(a.correlation, b.correlation);
  EXPECT_EQ(run.trace.name(b.name), "b");
  EXPECT_EQ(run.trace.ops[a.op].name, "op 0");
  EXPECT_EQ(run.trace.ops[b.op].name, "op 1");
}

TEST(JoinRanks, RunsThatDoNotBelongTogetherAreRefused) {
  const auto refusal = [](const std::function<void(std::vector<RunData>&)>& change) {
    MadeRanks made;
    made.ranks = 2, made.steps = 2;
    std::vector<RunData> runs = made_runs(made);
    change(runs);
    return test::failure_text([&] { join_ranks(std::move(runs)); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_NE(refusal([](auto& runs) { keep_rank(runs[1].summary, 0, 2); }).find("both hold rank 0"), std::string::npos);
  EXPECT_NE(refusal([](auto& runs) { keep_rank(runs[1].summary, 1, 4); }).find("4 ranks"), std::string::npos);
  EXPECT_NE(refusal([](auto& runs) { runs[1].summary.extra.clear(); }).find("does not say"), std::string::npos);
  EXPECT_NE(refusal([](auto& runs) { runs.pop_back(); }).find("At least two"), std::string::npos);
}

class RankFiles : public RunFile {
 protected:
  std::vector<std::string> write(std::vector<RunData> runs) {
    std::vector<std::string> paths;
    for (size_t i = 0; i < runs.size(); ++i) {
      paths.push_back((folder / ("r" + std::to_string(i) + ".wsrun")).string());
      export_run(runs[i], paths.back());
    }
    return paths;
  }
};

TEST_F(RankFiles, AreJoinedBlockByBlockToTheSameRun) {
  MadeRanks made;
  made.ranks = 4, made.late_rank = 2, made.steps = 2000, made.kernels = 20;
  made.clock = [](int rank, TimeNs time) { return time + (rank > 1 ? 400'000'000 : 0); };
  std::vector<std::string> paths = write(made_runs(made, 2));
  std::swap(paths[0], paths[3]);
  EXPECT_TRUE(ranks_of_one_program(paths));
  EXPECT_EQ(rank_of_file(paths[1]).rank, 1);
  EXPECT_FALSE(ranks_of_one_program({paths[0], paths[0]}));
  EXPECT_FALSE(ranks_of_one_program({paths[0]}));
  EXPECT_FALSE(ranks_of_one_program({paths[0], path + ".missing"}));
  join_rank_files(paths, path);
  const RunData stored = import_run(path), in_memory = join_ranks(made_runs(made, 2));
  EXPECT_EQ(stored.trace.span_count(), 4 * 2000u * 24);
  expect_same_trace(stored.trace, in_memory.trace);
  for (size_t t = 0; t < stored.trace.tracks().size(); ++t)
    EXPECT_EQ(stored.trace.tracks()[t].rank, in_memory.trace.tracks()[t].rank);
  EXPECT_EQ(stored.metrics.size(), 1u);
  EXPECT_FALSE(stored.summary.extra.contains(kRankKey)) << "it is no longer the run of one rank";
  const RankReport one = StoredSpans(path).ranks(), other = rank_report(in_memory);
  EXPECT_EQ(to_json(one), to_json(other));
  EXPECT_EQ(one.straggler.rank, 2);
  EXPECT_EQ(one.ranks[3].host, "host 1");
}

TEST_F(RankFiles, AMissingFileIsNamed) {
  MadeRanks made;
  made.ranks = 4;
  std::vector<RunData> runs = made_runs(made);
  runs.erase(runs.begin() + 2);
  const std::vector<std::string> paths = write(std::move(runs));
  EXPECT_EQ(import_ranks(paths).problems.at(0), "There is no file of rank 2.");
  join_rank_files(paths, path);
  const RankReport report = StoredSpans(path).ranks();
  ASSERT_EQ(report.ranks.size(), 4u);
  EXPECT_FALSE(report.ranks[2].recorded);
  EXPECT_NE(to_text(report).find("There is no file of rank 2."), std::string::npos);
}

// Each host of two leaves one file of its ranks. They become one run, in two steps or in one.
TEST_F(RankFiles, OfHostsThatWereJoinedBeforeAreJoinedAgain) {
  MadeRanks made;
  made.ranks = 4, made.late_rank = 2;
  made.clock = [](int rank, TimeNs time) { return time + (rank > 1 ? 400'000'000 : 0); };
  const std::vector<std::string> apart = write(made_runs(made, 2));
  const std::vector<std::string> hosts{(folder / "host0.wsrun").string(), (folder / "host1.wsrun").string()};
  join_rank_files({apart[0], apart[1]}, hosts[0]);
  join_rank_files({apart[2], apart[3]}, hosts[1]);
  EXPECT_NE(to_text(StoredSpans(hosts[0]).ranks()).find("There is no file of ranks 2, 3."), std::string::npos);
  EXPECT_EQ(StoredSpans(hosts[0]).ranks().ranks.size(), 4u) << "also those after the last one have a row";
  EXPECT_EQ(rank_of_file(hosts[1]).held, (std::vector{2, 3}));
  EXPECT_TRUE(ranks_of_one_program(hosts));
  EXPECT_FALSE(ranks_of_one_program({hosts[0], apart[1]})) << "rank 1 twice";

  const RunData at_once = join_ranks(made_runs(made, 2));
  const std::string expected = to_json(rank_report(at_once));
  join_rank_files(hosts, path);
  const RunData stored = import_run(path);
  expect_same_trace(stored.trace, at_once.trace);
  EXPECT_EQ(stored.summary.name, "ddp.py · 4 ranks");
  EXPECT_EQ(stored.summary.device, "4 × NVIDIA H200");
  EXPECT_EQ(to_json(StoredSpans(path).ranks()), expected);
  EXPECT_EQ(StoredSpans(path).ranks().ranks[3].host, "host 1");
  EXPECT_EQ(to_json(rank_report(import_ranks({hosts[1], apart[1], apart[0]}))), expected) << "single ranks of the other host";
}

TEST(JoinRanks, AJoinedRunKeepsItsClockAlsoIfAnotherRankBeganEarlier) {
  MadeRanks made;
  made.ranks = 3;
  made.clock = [](int rank, TimeNs time) { return time + rank * 5'000'000; };  // with the origins below: one clock
  std::vector<RunData> runs = made_runs(made);
  for (int r = 0; r < 3; ++r) keep_clock(runs[static_cast<size_t>(r)].summary, "boot", 50'000'000 - r * 5'000'000);
  Span early;
  early.name = runs[1].trace.intern("import torch"), early.duration = 1000;
  runs[1].trace.append(runs[1].trace.track(TrackKind::Other, "start", "", 0, -1), {&early, 1});
  std::vector<RunData> two;
  two.push_back(std::move(runs[1])), two.push_back(std::move(runs[0]));
  RunData pair = join_ranks(std::move(two));
  EXPECT_EQ(pair.summary.said(kClockKey), "boot");
  EXPECT_EQ(pair.summary.said(kClockOriginKey), "45000000") << "rank 1 began 5 ms before the origin of rank 0";
  std::vector<RunData> all;
  all.push_back(std::move(pair)), all.push_back(std::move(runs[2]));
  const RunData joined = join_ranks(std::move(all));
  const RankReport report = rank_report(joined);
  ASSERT_EQ(report.ranks.size(), 3u);
  for (const RankRow& row : report.ranks) EXPECT_LT(row.late, 100) << row.rank;
}

// Written as by PyTorch's profiler: one file a rank, times of the wall clock from a common base.
std::string torch_file(const std::string& path, int rank, int ranks, int late_rank) {
  std::ofstream file(path);
  file << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
    "distributedInfo": {"backend": "nccl", "rank": )"
       << rank << R"(, "world_size": )" << ranks << R"(, "pg_count": 1,
      "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}], "nccl_version": "2.26.2"},
    "baseTimeNanoseconds": 1759276800000000000, "displayTimeUnit": "ms", "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "ts": 0, "args": {"name": "python3"}})";
  double now = 5'000'000 + 3'000 * rank;  // µs; the clock of the other host is 3 ms ahead
  for (int step = 0; step < 40; ++step) {
    const double late = step > 0 && step % 5 == 0 ? 1000 : 0, ready = now + 500 + (rank == late_rank ? late : 0);
    const double last = now + 500 + late, end = last + 80;
    const auto event = [&](const char* category, const std::string& name, double from, double to, int tid,
                           const std::string& args) {
      file << ",\n{\"ph\": \"X\", \"cat\": \"" << category << "\", \"name\": \"" << name
           << "\", \"pid\": " << (tid < 100 ? 0 : 42) << ", \"tid\": " << tid << ", \"ts\": " << std::fixed << from
           << ", \"dur\": " << to - from << ", \"args\": {" << args << "}}";
    };
    event("user_annotation", "ProfilerStep#" + std::to_string(step), now, end, 142, "");
    event("kernel", "sm90_gemm", now + 10, now + 400, 7, R"("device": 0, "stream": 7, "correlation": 1)");
    event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ready, end, 20,
          R"("device": 0, "stream": 20, "correlation": 2, "Collective name": "allreduce", "In msg nelems": 262144,
             "Out msg nelems": 262144, "Group size": 2, "dtype": "Float", "Process Group Name": "0",
             "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]")");
    now = end + 20;
  }
  file << "]}";
  return path;
}

TEST_F(RankFiles, OfPyTorchAreOneRun) {
  const std::vector<std::string> paths{torch_file((folder / "rank0.json").string(), 0, 2, 1),
                                       torch_file((folder / "rank1.json").string(), 1, 2, 1)};
  EXPECT_TRUE(ranks_of_one_program(paths));
  const RankOfFile second = rank_of_file(paths[1]);
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.ranks, 2);
  const RankReport report = rank_report(import_ranks(paths));
  EXPECT_EQ(report.straggler.rank, 1);
  EXPECT_EQ(report.straggler.every, 5);
  EXPECT_NEAR(report.straggler.late_us, 1000, 10);
  ASSERT_EQ(report.collectives.size(), 1u);
  EXPECT_EQ(report.collectives[0].bytes, 1u << 20);
  EXPECT_EQ(report.steps.size(), 40u);

  convert(paths, path);
  EXPECT_EQ(StoredSpans(path).ranks().straggler.rank, 1);
  const std::string back = (folder / "joined.json").string();
  convert(path, back);
  const RunData again = import_run(back);
  EXPECT_EQ(rank_report(again).straggler.late_us, report.straggler.late_us) << "a Chrome trace keeps the ranks";
  EXPECT_EQ(rank_report(again).collectives.at(0).bytes, 1u << 20);
  EXPECT_EQ(rank_report(again).collectives[0].bus_gb_s, report.collectives[0].bus_gb_s);
  const std::string copy = (folder / "copy.json").string();
  std::filesystem::copy_file(paths[0], copy);
  try {
    import_ranks({paths[0], copy});
    ADD_FAILURE() << "rank 0 twice";
  } catch (const Failure& failure) {  // the file's name, not the name that is in it
    EXPECT_NE(std::string(failure.what()).find(paths[0] + " and " + copy + " both hold rank 0"), std::string::npos) << failure.what();
  }
}

// torch.profiler.tensorboard_trace_handler names each file by host and process.
TEST_F(RankFiles, WithNamesOfTheirOwnHaveTheNameOfTheirFolder) {
  const auto traces = folder / "big run";
  std::filesystem::create_directory(traces);
  const std::vector<std::string> paths{torch_file((traces / "a_17.pt.trace.json").string(), 0, 2, 1),
                                       torch_file((traces / "b_21.pt.trace.json").string(), 1, 2, 1)};
  EXPECT_EQ(import_ranks(paths).summary.name, "big run · 2 ranks");
  std::ofstream(traces / "notes.txt") << "no trace";
  EXPECT_EQ(with_files_of_folders({traces.string()}), paths);
  convert({traces.string()}, path);
  EXPECT_EQ(import_run(path).summary.name, "big run · 2 ranks");
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THROW(import_ranks({(folder / "empty").string()}), Failure);
  const std::string elsewhere = torch_file((folder / "b_21.pt.trace.json").string(), 1, 2, 1);
  EXPECT_EQ(import_ranks({paths[0], elsewhere}).summary.name, "a_17.pt.trace.json · 2 ranks");
}

TEST_F(RankFiles, OfTracesWithoutARankHaveItInTheirNames) {
  const auto write_without = [&](const std::string& name, int rank) {
    std::filesystem::create_directories((folder / name).parent_path());
    const std::string file = torch_file((folder / name).string(), rank, 2, 1);
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    std::string content = text.str();
    const std::string key = "\"distributedInfo\"";
    content.replace(content.find(key), key.size(), "\"otherInfo\"");
    std::ofstream(file) << content;
    return file;
  };
  for (const auto& [first, second] : {std::pair{"trace_rank_0.json", "trace_rank_1.json"}, {"Rank-0/t.json", "Rank-1/t.json"}}) {
    const std::vector<std::string> paths{write_without(second, 1), write_without(first, 0)};
    EXPECT_TRUE(ranks_of_one_program(paths)) << first;
    EXPECT_EQ(rank_report(import_ranks(paths)).straggler.rank, 1) << first;
  }
  const std::string first = write_without("lora_rank8.json", 0), second = write_without("lora_rank16.json", 1);
  EXPECT_FALSE(ranks_of_one_program({first, second})) << "two runs of one process each";
}

// A pipeline of three ranks, in one communicator. PyTorch names the other rank of each message.
TEST_F(RankFiles, OfAPipelineMatchEachSendWithItsReceive) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 3; ++rank) {
    paths.push_back((folder / ("rank" + std::to_string(rank) + ".json")).string());
    std::ofstream file(paths.back());
    file << R"({"distributedInfo": {"backend": "nccl", "rank": )" << rank << R"(, "world_size": 3},
      "baseTimeNanoseconds": 1759276800000000000, "displayTimeUnit": "ms", "traceEvents": [
      {"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "ts": 0, "args": {"name": "python3"}})";
    const auto event = [&](const std::string& name, double from, double to, const std::string& args) {
      file << ",\n{\"ph\": \"X\", \"cat\": \"" << (args.empty() ? "user_annotation" : "kernel") << "\", \"name\": \"" << name
           << "\", \"pid\": " << (args.empty() ? 42 : 0) << ", \"tid\": " << (args.empty() ? 142 : 20) << ", \"ts\": " << std::fixed
           << from << ", \"dur\": " << to - from << ", \"args\": {" << args << "}}";
    };
    const auto message = [&](const char* what, const char* key, int other, double from, double to) {
      event("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", from, to,
            R"("device": 0, "stream": 20, "Collective name": ")" + std::string(what) + R"(", "In msg nelems": 1024, "Out msg nelems": 1024,
            "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]", ")" + key + "\": " + std::to_string(other));
    };
    for (int step = 0; step < 20; ++step) {
      const double now = 5e6 + step * 1e4, ready = now + rank * 1000;
      event("ProfilerStep#" + std::to_string(step), now, now + 9000, "");
      if (rank > 0) message("recv", "Src Rank", rank - 1, now, ready);
      if (rank < 2) message("send", "Dst Rank", rank + 1, ready + 900, ready + 1000);
    }
    file << "]}";
  }
  const RankReport report = rank_report(import_ranks(paths));
  ASSERT_EQ(report.ranks.size(), 3u);
  EXPECT_EQ(report.collectives.at(0).name, "SendRecv · 2 ranks");
  EXPECT_EQ(report.collectives[0].bytes, 4096u);
  EXPECT_EQ(straggler_text(report), "") << "a stage waits for the one before it by its nature";
  EXPECT_NEAR(report.ranks[1].wait + report.ranks[2].wait, 2800, 5);
  EXPECT_NEAR(report.ranks[0].wait, 0, 5);
  EXPECT_TRUE(report.notes.empty());
}

TEST(GpuNumber, ComesFromTheGroup) {
  EXPECT_EQ(gpu_number("GPU 3"), 3);
  EXPECT_EQ(gpu_number("rank 5 · GPU 1"), 1);
  EXPECT_EQ(gpu_number("CPU"), 0);
}

}  // namespace
}  // namespace ws::prof
