#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <span>

#include "profiling/base/failure.h"
#include "profiling/base/stop_when.h"
#include "profiling/run_file/span_codec.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/run_file/stored_spans.h"
#include "tests/profiling/analysis/made_inside.h"
#include "tests/profiling/run_file/run_file_support.h"
#include "tests/profiling/trace/made_spans.h"
#include "tests/support/machine.h"
#include "tests/support/made_stalls.h"
#include "tests/support/sanitizers.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

TEST_F(RunFile, AFullDiskIsCalledSo) {
  Database db(path, Database::Mode::Create);
  db.exec("CREATE TABLE t(x); PRAGMA max_page_count = 3");
  try {
    db.exec("INSERT INTO t VALUES(zeroblob(100000))");
    ADD_FAILURE() << "three pages are enough";
  } catch (const Unavailable& failure) {
    EXPECT_STREQ(failure.what(), "The disk is full.");
  }
}

TEST_F(RunFile, KeepsEverything) {
  const MadeTrace made(3000);
  {
    RunFileWriter writer(path, summary_of_test());
    writer.add(Metric{1, 0.5, 2.3, std::nan("")});
    writer.add(Evaluation{100, 1.0, 2.0, 0.4, 0.91});
    writer.add(ChangeMark{7, 0.7, "learning rate 0.1 → 0.01"});
    StepWindow window{0, 10, 5, 1005, {}, 3, 4};
    window.times[2] = 900, window.times[kMeanings - 1] = 100;
    writer.add(window);
    writer.add(made.trace);
    writer.finish();
  }
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  RunFileReader reader(path);
  EXPECT_EQ(reader.summary().name, "arena · graph");
  EXPECT_EQ(reader.summary().tags, summary_of_test().tags);
  EXPECT_EQ(reader.summary().test_loss, 0.0625);
  EXPECT_EQ(reader.summary().peak_bytes, 1ull << 34);
  EXPECT_EQ(reader.summary().extra.at("later"), "kept");
  ASSERT_EQ(reader.metrics().size(), 1u);
  EXPECT_TRUE(std::isnan(reader.metrics()[0].accuracy));
  EXPECT_EQ(reader.evaluations().at(0).test_accuracy, 0.91);
  EXPECT_EQ(reader.marks().at(0).text, "learning rate 0.1 → 0.01");
  EXPECT_EQ(reader.step_windows().at(0).times[2], 900);
  EXPECT_EQ(reader.step_windows().at(0).times[kMeanings - 1], 100);
  Trace trace = reader.trace();
  EXPECT_EQ(trace.span_count(), made.trace.span_count());
  EXPECT_EQ(trace.last_time(), made.trace.last_time());
  EXPECT_GT(reader.fill(trace), 0u);
  expect_same_trace(made.trace, trace);
  EXPECT_EQ(trace.ops[1].layer, "fc1");
  ASSERT_EQ(trace.memory().size(), made.trace.memory().size());
  EXPECT_EQ(trace.memory()[9].address, made.trace.memory()[9].address);
  EXPECT_EQ(trace.counters()[0].points.back().value, made.trace.counters()[0].points.back().value);
  EXPECT_TRUE(reader.problems().empty());
}

TEST_F(RunFile, ReplacesARunAndNothingElse) {
  const auto write = [this] { RunFileWriter(path, summary_of_test()).finish(); };
  write();
  write();  // an older run
  std::ofstream(path).close();
  write();  // the empty file of a program that ended at once
  for (const char* other : {"print('a program')\n", "S", "SQLite format 3"}) {
    std::ofstream(path, std::ios::binary) << other;
    EXPECT_THROW(write(), Failure);
    std::ifstream file(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), other);
  }
  std::filesystem::remove(path);
  Database(path, Database::Mode::Create).exec("CREATE TABLE contacts(name TEXT)");
  EXPECT_THROW(write(), Failure);
}

// SQLite cannot remove some files that it keeps beside a database.
class NotRemoved {
 public:
  static constexpr const char* kLog[] = {"-wal", "-shm"};
  static constexpr const char* kJournal[] = {"-journal"};
  explicit NotRemoved(std::span<const char* const> endings) {
    kept = endings;
    call(reinterpret_cast<sqlite3_syscall_ptr>(refuse));
  }
  ~NotRemoved() { call(nullptr); }  // the system's own
  NotRemoved(const NotRemoved&) = delete;
  NotRemoved& operator=(const NotRemoved&) = delete;

 private:
  static int refuse(const char* path) {
    const auto ends = [path](const char* ending) { return std::string_view(path).ends_with(ending); };
    if (std::ranges::none_of(kept, ends)) return unlink(path);
    errno = EIO;
    return -1;
  }
  static void call(sqlite3_syscall_ptr function) {
    sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
    EXPECT_EQ(system->xSetSystemCall(system, "unlink", function), SQLITE_OK);
  }
  static inline std::span<const char* const> kept;
};

TEST_F(RunFile, LeavesNothingBesideItWhereSqliteCouldNotRemoveItsLog) {
  {
    const NotRemoved fault(NotRemoved::kLog);
    RunFileWriter writer(path, summary_of_test());
    writer.add(Metric{1, 0.5, 2.3, 0.5});
    writer.finish();
  }
  for (const char* rest : NotRemoved::kLog) EXPECT_FALSE(std::filesystem::exists(path + rest)) << rest;
  EXPECT_EQ(RunFileReader(path).metrics().size(), 1u);
}

TEST_F(RunFile, HalfAChangeIsTakenBackBeforeItIsRead) {
  RunFileWriter(path, summary_of_test()).finish();
  {
    const NotRemoved fault(NotRemoved::kJournal);
    EXPECT_THROW(rename_run(path, "A new name"), Failure);
  }
  ASSERT_TRUE(std::filesystem::exists(path + "-journal"));
  EXPECT_EQ(read_run_summary(path).name, summary_of_test().name);
  EXPECT_FALSE(std::filesystem::exists(path + "-journal"));
}

// Losses as they come while training: floats that wander, accuracies of a batch, a time that grows unevenly.
std::vector<Metric> made_metrics(size_t count) {
  std::vector<Metric> metrics;
  uint32_t random = 7;
  for (size_t i = 0; i < count; ++i) {
    random = random * 1664525 + 1013904223;
    const auto step = static_cast<int64_t>(i);
    metrics.push_back({step, static_cast<double>(step) * 17.8e-6 + static_cast<double>(random >> 24) * 1e-7,
                       static_cast<double>(2.3F / (1.0F + static_cast<float>(random >> 8) * 1e-6F)),
                       static_cast<double>(random >> 26) / 64});
  }
  metrics[3].accuracy = std::nan("");
  metrics[5].loss = std::numeric_limits<double>::infinity();
  return metrics;
}

TEST_F(RunFile, KeepsLossesInFewBytes) {
  const auto metrics = made_metrics(10'000);
  for (const size_t block : {size_t{1}, size_t{10}, size_t{999}}) {
    SCOPED_TRACE(block);
    {
      RunFileWriter writer(path, summary_of_test());
      for (size_t i = 0; i < metrics.size(); ++i) {
        writer.add(metrics[i]);
        if (i % 1000 < 10 && i % block == 0) writer.flush();
      }
    }
    const auto read = RunFileReader(path).metrics();
    ASSERT_EQ(read.size(), metrics.size());
    for (size_t i = 0; i < read.size(); ++i) {
      ASSERT_EQ(read[i].step, metrics[i].step);
      ASSERT_EQ(std::bit_cast<uint64_t>(read[i].loss), std::bit_cast<uint64_t>(metrics[i].loss)) << i;
      ASSERT_EQ(std::bit_cast<uint64_t>(read[i].accuracy), std::bit_cast<uint64_t>(metrics[i].accuracy)) << i;
      ASSERT_NEAR(read[i].wall_s, metrics[i].wall_s, 1e-7);
    }
  }
  const std::string packed = encode_metrics(std::span(metrics).first(4096));
  EXPECT_LT(packed.size(), 4096u * 10);
  EXPECT_THROW(decode_metrics(packed.substr(0, packed.size() / 2), 4096), Failure);
  EXPECT_THROW(decode_metrics(packed, 4097), Failure);
}

TEST_F(RunFile, NeedsFewBytesPerSpan) {
  const MadeTrace made(5000);
  write_run(path, made.trace);
  const double bytes =
      static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(made.trace.span_count());
  RecordProperty("bytes_per_span", std::to_string(bytes));
  EXPECT_LT(bytes, 12);
}

TEST_F(RunFile, ReadsOnlyTheRangeThatIsAskedFor) {
  const MadeTrace made(3000);
  write_run(path, made.trace);
  RunFileReader reader(path);
  Trace trace = reader.trace();
  const TimeNs middle = made.trace.last_time() / 2;
  const size_t read = reader.fill(trace, middle, middle + 1000);
  EXPECT_GE(read, 2u);
  EXPECT_LE(read, 6u);
  EXPECT_EQ(reader.fill(trace, middle, middle + 1000), 0u);
}

TEST_F(RunFile, TakesBatchesWhileTheRunGoes) {
  RunFileWriter writer(path, summary_of_test());
  Trace live;
  for (int i = 0; i < 40; ++i) {
    writer.add(batch_of(i * 300, 300));
    append(live, batch_of(i * 300, 300));
    if (i % 3 == 0) writer.flush();
  }
  writer.flush();
  live.backed = true;
  live.evict(0);
  RunFileReader during(path);  // the file is still open for writing
  EXPECT_GT(during.fill(live), 0u);
  EXPECT_EQ(spans_of(live.tracks()[0]).size(), 12000u);
  writer.finish();
  RunFileReader reader(path);
  Trace trace = reader.trace();
  reader.fill(trace);
  expect_same_trace(live, trace);
  EXPECT_EQ(trace.counters().at(0).points.size(), 40u);
  ASSERT_EQ(reader.allocations().size(), 40u);
  EXPECT_EQ(reader.allocations()[3].allocations, 20u);
}

// Records of two buffers overlap in time: in a live trace a late span stands in its place, in the file in the block
// that was open when it came, and from there on the blocks of both begin elsewhere.
TraceBatch late_batch(int number) {
  TraceBatch batch = batch_of(number * 500, 500);
  std::vector<Span>& spans = batch.tracks[0].spans;
  if (number > 2) {
    Span late = spans.front();
    late.start -= 700'000 + number, late.duration = 3;
    spans.insert(spans.begin(), late);
  }
  for (int twin = 0; twin < 40; ++twin) {  // many at one moment, over the end of a block too
    Span same = spans.back();
    same.duration = 0;
    spans.push_back(same);
  }
  return batch;
}

TEST_F(RunFile, BlocksOfALiveTraceComeBackWhereSpansCameLate) {
  RunFileWriter writer(path, summary_of_test());
  Trace live, whole;
  live.backed = true;
  std::unique_ptr<RunFileReader> reader;
  for (int i = 0; i < 120; ++i) {
    writer.add(late_batch(i));
    append(live, late_batch(i)), append(whole, late_batch(i));
    writer.flush();
    if (i % 40 != 39) continue;  // looked at while it grows
    live.evict(0);
    ASSERT_FALSE(live.tracks()[0].blocks[1].resident());
    if (!reader) reader = std::make_unique<RunFileReader>(path);
    EXPECT_GT(reader->fill(live), 10u);
    ASSERT_TRUE(in_memory(live.tracks()[0], -kAlways, kAlways)) << i;
    expect_same_trace(live, whole);
  }
  EXPECT_TRUE(reader->problems().empty());
  writer.finish();
  live.evict(0);
  EXPECT_GT(reader->fill(live), 10u);
  expect_same_trace(live, whole);
}

// Files had no place for the time of communication at first.
TEST_F(RunFile, KeepsCommunicationAndReadsFilesWithoutIt) {
  Made made;
  for (int i = 0; i < 100; ++i)
    made.add(TrackKind::Stream, SpanKind::Kernel, i % 4 ? Meaning::Matrix : Meaning::Communication, 1000 * i,
             1000 * i + 500, i % 4 ? "gemm" : "ncclDevKernel_AllReduce");
  {
    RunFileWriter writer(path, summary_of_test());
    writer.add(made.trace);
    StepWindow window{0, 10, 5, 1005, {}, 3, 4};
    window.times[static_cast<size_t>(Meaning::Communication)] = 77;
    writer.add(window);
    writer.finish();
  }
  const auto communication = [&] {
    RunFileReader reader(path);
    return std::pair{reader.outline().tracks().at(0).blocks.at(0).total, reader.step_windows().at(0)};
  };
  const auto [sums, window] = communication();
  EXPECT_EQ(sums[static_cast<size_t>(Meaning::Communication)], 25 * 500);
  EXPECT_EQ(sums[static_cast<size_t>(Meaning::Matrix)], 75 * 500);
  EXPECT_EQ(window.times[static_cast<size_t>(Meaning::Communication)], 77);
  EXPECT_EQ(window.frees, 4u);
  Database(path, Database::Mode::Update).exec("ALTER TABLE step_windows DROP COLUMN communication_ns");
  const StepWindow old = communication().second;
  EXPECT_EQ(old.times[static_cast<size_t>(Meaning::Communication)], 0);
  EXPECT_EQ(old.allocations, 3u);
  EXPECT_EQ(old.frees, 4u);
}

TEST_F(RunFile, KeepsTheRankOfTracksAndReadsFilesWithoutIt) {
  Trace made;
  for (const int rank : {-1, 0, 1}) {
    Span span;
    span.start = 100 * (rank + 2);
    span.name = made.intern("gemm");
    made.append(made.track(TrackKind::Stream, "stream 7", "GPU 0", 0, rank), span);
  }
  ASSERT_EQ(made.tracks().size(), 3u) << "the rank is part of a track's identity";
  write_run(path, made);
  {
    RunFileReader reader(path);
    Trace trace = reader.trace();
    reader.fill(trace);
    ASSERT_EQ(trace.tracks().size(), 3u);
    for (size_t t = 0; t < 3; ++t) {
      EXPECT_EQ(trace.tracks()[t].rank, static_cast<int>(t) - 1);
      EXPECT_EQ(spans_of(trace.tracks()[t]).at(0).start, 100 * (static_cast<TimeNs>(t) + 1));
    }
  }
  Database(path, Database::Mode::Update).exec("DELETE FROM tracks WHERE id > 0; ALTER TABLE tracks DROP COLUMN rank");
  const Trace old = RunFileReader(path).trace();
  ASSERT_EQ(old.tracks().size(), 1u);
  EXPECT_EQ(old.tracks()[0].rank, -1);
}

TEST_F(RunFile, ACallAfterWhichTheHostGoesOnIsNoWaitInOlderFiles) {
  Made written;
  written.add(TrackKind::Api, SpanKind::Sync, Meaning::Sync, 0, 50, "cudaStreamSynchronize");
  written.add(TrackKind::Api, SpanKind::Sync, Meaning::Sync, 100, 150, "cudaStreamWaitEvent");
  {
    RunFileWriter writer(path, summary_of_test());
    writer.add(written.trace);
    writer.finish();
  }
  RunFileReader reader(path);
  Trace read = reader.trace();
  reader.fill(read);
  const std::vector<Span> spans = spans_of(read.tracks()[0]);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].span_kind(), SpanKind::Sync);
  EXPECT_EQ(spans[1].span_kind(), SpanKind::Api);
  EXPECT_EQ(read.tracks()[0].blocks[0].total[static_cast<size_t>(Meaning::Sync)], 50);
}

// Files of before version 5 have only a broad kind of a row, and only the unit of a counter.
TEST_F(RunFile, KeepsTheKindsOfRowsAndCounters) {
  using enum TrackKind;
  const std::pair<TrackKind, std::string> kRows[] = {{Steps, "steps"},
                                                     {Phases, "phases"},
                                                     {Stream, "stream 7"},
                                                     {Copies, "stream 7 copies"},
                                                     {GraphLaunches, "stream 7 graphs"},
                                                     {Api, "thread 5 calls"},
                                                     {CpuThread, "thread 5"},
                                                     {Overhead, "profiler"},
                                                     {Inner, "SM 017 warp 03"},
                                                     {Other, "something else"},
                                                     {Ranges, "thread 5 ranges"},
                                                     {ProgramSteps, std::string(kProgramSteps)},
                                                     {Samples, "samples of MainThread"},
                                                     {Loader, "loader worker 3"},
                                                     {Collectives, "collectives, stream 2"},
                                                     {StreamWaits, "stream 7 waits"},
                                                     {StreamWaits, "waits"},
                                                     {Untraced, kUntracedTrack},
                                                     {NotRecorded, "not recorded"}};
  const std::tuple<CounterKind, std::string, std::string> kCounters[] = {
      {CounterKind::Loss, "value loss", "loss"},
      {CounterKind::TestLoss, "best", "test loss"},
      {CounterKind::LossName, "policy loss", "name of the loss"},
      {CounterKind::TestLossName, "val/loss", "name of the test loss"},
      {CounterKind::MemoryUsed, "rank 3 · memory used", "B"},
      {CounterKind::MemoryReserved, "memory reserved", "B"},
      {CounterKind::PoolUsed, "pool used", "B"},
      {CounterKind::PoolReserved, "pool reserved", "B"},
      {CounterKind::Other, "device memory used", "B"},
      {CounterKind::Other, "SM active", "%"},
      {CounterKind::Dram, "DRAM read", "%"},
      {CounterKind::Dram, "DRAM write", "%"},
      {CounterKind::Other, "GPU clock", "%"},
      {CounterKind::Other, "sent", "B"},
      {CounterKind::Other, "memory used", "pages"}};
  Trace trace;
  Span span;
  span.duration = 10;
  for (const auto& [kind, name] : kRows) trace.append(trace.track(kind, name, "CPU"), span);
  for (const auto& [kind, name, unit] : kCounters) trace.append_counter(trace.counter(name, unit, kind), {1, 2});
  trace.append(trace.track(Ranges, "of another name", "CPU"), span);
  trace.append_counter(trace.counter("curve", "", CounterKind::TestLoss), {1, 2});
  write_run(path, trace);
  const auto check = [&](TrackKind last_row, CounterKind last_counter) {
    const Trace back = RunFileReader(path).trace();
    ASSERT_EQ(back.tracks().size(), std::size(kRows) + 1);
    ASSERT_EQ(back.counters().size(), std::size(kCounters) + 1);
    for (size_t i = 0; i < std::size(kRows); ++i) EXPECT_EQ(back.tracks()[i].kind, kRows[i].first) << kRows[i].second;
    for (size_t i = 0; i < std::size(kCounters); ++i) EXPECT_EQ(back.counters()[i].kind, std::get<0>(kCounters[i])) << std::get<1>(kCounters[i]);
    EXPECT_EQ(back.tracks().back().kind, last_row);
    EXPECT_EQ(back.counters().back().kind, last_counter);
  };
  check(Ranges, CounterKind::TestLoss);
  Database(path, Database::Mode::Update)
      .exec("ALTER TABLE tracks DROP COLUMN row_kind; ALTER TABLE counters DROP COLUMN kind; PRAGMA user_version = 4");
  check(Phases, CounterKind::Other);
}

OpTag op_on(Trace& trace, const char* name, std::shared_ptr<const CodeStack> stack) {
  trace.ops.push_back({name, "", "net", "forward", Meaning::Matrix, 0, 0, std::move(stack)});
  return static_cast<OpTag>(trace.ops.size() - 1);
}

std::vector<std::string> rows_of(const StallSamples& stalls, const Trace& trace) {
  std::vector<std::string> rows;
  for (const SampledInstruction& one : stalls.instructions()) {
    std::string row = trace.name(one.function) + " " + std::to_string(one.module) + "+" + std::to_string(one.offset) + " " + trace.name(one.file) + ":" + std::to_string(one.line);
    for (const uint64_t count : one.samples) row += " " + std::to_string(count);
    rows.push_back(row);
  }
  for (const SampledWindow& w : stalls.windows())
    for (const uint64_t number : {static_cast<uint64_t>(w.begin), static_cast<uint64_t>(w.end), uint64_t{w.first_step}, uint64_t{w.end_step}, uint64_t{w.period}, w.samples, w.dropped, w.hidden})
      rows.push_back(std::to_string(number));
  for (const SampledCode& code : stalls.code()) rows.push_back(trace.name(code.function) + " " + std::to_string(code.module) + " " + std::to_string(code.compute) + " " + code.bytes + code.calls);
  std::ranges::sort(rows);
  return rows;
}

TEST_F(RunFile, AddsSamplesOfLaterWindows) {
  Trace whole;
  {
    RunFileWriter writer(path, summary_of_test());
    for (int window = 0; window < 3; ++window) {
      MadeStalls made;
      if (window == 1) made.add("late(float*)", ~uint64_t{0}, "/home/late.cu", 16, 2, {{Stall::Other, 5}});
      writer.add(whole_batch(made.run.trace));
      writer.flush();
      append(whole, decode_batch(encode_batch(whole_batch(made.run.trace))));
    }
    writer.finish();
  }
  const Trace back = RunFileReader(path).trace();
  EXPECT_EQ(back.stalls.windows().size(), 3u);
  EXPECT_EQ(back.stalls.code().size(), 1u) << "once a function";
  EXPECT_EQ(rows_of(back.stalls, back), rows_of(whole.stalls, whole));
  EXPECT_EQ(sum_of(back.stalls.instructions()[0].samples), 3 * sum_of(MadeStalls().run.trace.stalls.instructions()[0].samples));
}

TEST_F(RunFile, AFileWithoutSamplesOpensAndAnUnknownReasonIsOther) {
  write_run(path, MadeStalls().run.trace);
  {
    Database db(path, Database::Mode::Update);
    db.exec("INSERT INTO stalls VALUES((SELECT max(id) FROM sampled_code) << 8 | 200, 7); INSERT INTO stalls VALUES(1 << 40, 9); INSERT INTO sampled_code VALUES(-1, 1, 999999, -5, -7, -1)");
  }
  RunFileReader reader(path);
  const Trace back = reader.trace();
  uint64_t all = 0, other = 0;
  for (const SampledInstruction& one : back.stalls.instructions()) all += sum_of(one.samples), other += one.samples[static_cast<size_t>(Stall::Other)];
  EXPECT_EQ(all, 1900u + 7);
  EXPECT_EQ(other, 7u);
  Database(path, Database::Mode::Update).exec("UPDATE sampled_functions SET code = 'damaged'");
  RunFileReader damaged(path);
  EXPECT_TRUE(damaged.trace().stalls.code().empty());
  EXPECT_FALSE(damaged.problems().empty());
  Database(path, Database::Mode::Update).exec("DROP TABLE sampled_functions");
  EXPECT_FALSE(RunFileReader(path).trace().stalls.empty()) << "a file of the version before";
  Database(path, Database::Mode::Update).exec("DROP TABLE stalls; DROP TABLE sampled_code; DROP TABLE sampled_windows");
  RunFileReader older(path);
  EXPECT_TRUE(older.trace().stalls.empty());
  EXPECT_TRUE(older.problems().empty());
}

TEST_F(RunFile, KeepsTheStacksOfOps) {
  Trace trace;
  const auto stack = std::make_shared<CodeStack>(
      CodeStack{{{"/a > b < c/train.py", 60, "<module>"}, {"net.py", 12, "Net.forward"}, {"libtorch.so", 0, "at::mm"}}, 1});
  op_on(trace, "aten::mm", stack), op_on(trace, "aten::add", stack), op_on(trace, "aten::relu", nullptr);
  write_run(path, trace);
  RunFileReader reader(path);
  const Trace back = reader.outline();
  ASSERT_EQ(back.ops.size(), 4u);
  ASSERT_TRUE(back.ops[1].stack);
  EXPECT_EQ(*back.ops[1].stack, *stack);
  EXPECT_EQ(back.ops[2].stack, back.ops[1].stack) << "equal stacks share their memory";
  EXPECT_EQ(back.ops[3].stack, nullptr);
  EXPECT_EQ(line_of(back.ops[1]), "net.py:12 in Net.forward");
}

TEST_F(RunFile, KeepsTheStacksOfSamples) {
  const auto stack = std::make_shared<CodeStack>(CodeStack{{{"/a > b < c/train.py", 60, "main"}, {"net.py", 12, "f (x)"}}, 2});
  Trace trace;
  const TrackId row = trace.track(TrackKind::Samples, "samples of MainThread", "CPU");
  for (int i = 0; i < 3; ++i) {
    Span span;
    span.start = i, span.duration = 1, span.name = i == 1 ? trace.intern("makes a batch") : trace.intern(stack);
    trace.append(row, span);
  }
  write_run(path, trace);
  const auto spans_of = [&](const Trace& back) { return back.tracks().at(0).blocks.at(0).spans; };
  {
    RunFileReader reader(path);
    Trace back = reader.trace();
    reader.fill(back);
    EXPECT_EQ(sampled_frames(back, spans_of(back)[2].name), stack->frames);
    EXPECT_EQ(back.name(spans_of(back)[0].name), stack_text(*stack));
    EXPECT_EQ(back.stack(spans_of(back)[1].name), nullptr);
    EXPECT_TRUE(reader.problems().empty());
  }
  Database(path, Database::Mode::Update).exec("UPDATE name_stacks SET frames = x'00ffffffff0f'");
  {
    RunFileReader reader(path);
    Trace back = reader.trace();
    reader.fill(back);
    EXPECT_EQ(spans_of(back).size(), 3u);
    EXPECT_TRUE(sampled_frames(back, spans_of(back)[0].name).empty());
    EXPECT_FALSE(reader.problems().empty());
  }
  // Files before version 4 have a text.
  Database(path, Database::Mode::Update)
      .exec("DROP TABLE name_stacks; UPDATE names SET value = 'hot (a.py:3) < main (a.py:9)' WHERE value = ''");
  RunFileReader reader(path);
  Trace back = reader.trace();
  reader.fill(back);
  EXPECT_EQ(sampled_frames(back, spans_of(back)[0].name), (std::vector<CodeFrame>{{"a.py", 9, "main"}, {"a.py", 3, "hot"}}));
  EXPECT_TRUE(reader.problems().empty());
}

// Files before version 3 have the stack as text, in the detail of the op.
TEST_F(RunFile, ReadsTheStacksOfOlderFiles) {
  Trace trace;
  op_on(trace, "aten::mm", nullptr), op_on(trace, "dW1", nullptr);
  write_run(path, trace);
  Database(path, Database::Mode::Update)
      .exec("ALTER TABLE ops DROP COLUMN stack; DROP TABLE stacks; UPDATE ops SET detail = 'gemm dW1' WHERE id = 2; "
            "UPDATE ops SET detail = 'at net.py:12 in Net.forward > lib.py:7 in act < train.py:60 in main' WHERE id = 1");
  RunFileReader reader(path);
  const Trace back = reader.outline();
  ASSERT_EQ(back.ops.size(), 3u);
  EXPECT_EQ(stack_of(back.ops[1]), (std::vector<CodeFrame>{{"train.py", 60, "main"}, {"net.py", 12, "Net.forward"}, {"lib.py", 7, "act"}}));
  EXPECT_EQ(line_of(back.ops[1]), "net.py:12 in Net.forward");
  EXPECT_EQ(back.ops[2].detail, "gemm dW1");
  EXPECT_EQ(back.ops[2].stack, nullptr);
  EXPECT_TRUE(reader.problems().empty());
}

TEST_F(RunFile, AStackThatIsDamagedIsLeftOut) {
  Trace trace;
  op_on(trace, "aten::mm", stack_from_text("net.py:12 in Net.forward"));
  write_run(path, trace);
  Database(path, Database::Mode::Update).exec("UPDATE stacks SET frames = x'00ffffffff0f'");
  RunFileReader reader(path);
  const Trace back = reader.outline();
  ASSERT_EQ(back.ops.size(), 2u);
  EXPECT_EQ(back.ops[1].name, "aten::mm");
  EXPECT_EQ(line_of(back.ops[1]), "");
  EXPECT_FALSE(reader.problems().empty());
}

TEST_F(RunFile, AnswersOverAllOfItWithoutMemory) {
  const MadeTrace made(20000);
  write_run(path, made.trace);
  StoredSpans file(path);
  ASSERT_EQ(file.trace().tracks().size(), made.trace.tracks().size());
  for (size_t t = 0; t < made.trace.tracks().size(); ++t) {
    const Track& track = made.trace.tracks()[t];
    const auto all = spans_of(track);
    if (all.size() < 100) continue;
    const Span &early = all[all.size() / 10], &late = all[all.size() * 9 / 10];
    const std::string name = made.trace.name(late.name);
    const auto same_name = [&](const Span& s) { return file.trace().name(s.name) == name; };
    const Span* next = next_named(track, late.name, early.start);
    const auto found = file.next(t, early.start, kAlways, same_name);
    ASSERT_TRUE(next && found);
    EXPECT_EQ(found->span.start, next->start);
    const Span* previous = previous_named(track, late.name, late.start);
    const auto before = file.previous(t, late.start, -kAlways, same_name);
    ASSERT_TRUE(previous && before);
    EXPECT_EQ(before->span.start, previous->start);
    EXPECT_FALSE(file.previous(t, all.front().start, -kAlways, same_name));
    const auto sums = sum_by_name(track, early.start + 1, late.start),
               read = file.sum_by_name(t, early.start + 1, late.start);
    ASSERT_EQ(sums.size(), read.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(sums[i].count, read[i].count);
      EXPECT_EQ(sums[i].total_ns, read[i].total_ns);
    }
  }
  EXPECT_EQ(file.unread(), 0u);
  auto stop = std::make_shared<std::atomic<bool>>(true);
  EXPECT_FALSE(StoredSpans(path, stop).longest_gap());  // stopped before it began
}

// In pieces, so that nothing of a file of any size stays in memory: the sum is the sum of the whole.
TEST_F(RunFile, TheGpusActivityComesFromTheWholeTrace) {
  const MadeTrace made(8000);
  write_run(path, made.trace);
  StoredSpans file(path);
  const TimeNs last = made.trace.last_time();
  for (const auto& [begin, end] : {std::pair<TimeNs, TimeNs>{0, last},
                                   {last / 3 + 7, last / 2},
                                   {last / 2, last / 2 + 5000},
                                   {last + 10, last + 20}}) {
    const Activity whole = activity(made.trace, begin, end), read = file.activity(begin, end);
    EXPECT_EQ(read.wall, whole.wall);
    EXPECT_EQ(read.busy, whole.busy);
    EXPECT_EQ(read.kernels, whole.kernels);
    EXPECT_EQ(read.copies, whole.copies);
    EXPECT_EQ(read.overlap, whole.overlap);
    EXPECT_EQ(read.untraced, 0);
  }
}

// The newest block is written again and again: it is another one than when the search began.
TEST_F(RunFile, AnswersWhileTheNewestBlockGrows) {
  RunFileWriter writer(path, summary_of_test());
  writer.add(batch_of(0, 300));
  writer.flush();
  StoredSpans file(path);
  writer.add(batch_of(300, 300));
  writer.flush();
  TimeNs seen = 0;
  file.each(0, -kAlways / 2, kAlways / 2, [&](const Span& span) {
    EXPECT_EQ(span.start, seen * 1000);
    EXPECT_EQ(file.trace().name(span.name), seen % 2 == 0 ? "gemm" : "relu");
    ++seen;
    return true;
  });
  EXPECT_GE(seen, 300);
  EXPECT_EQ(file.unread(), 0u);
}

TEST_F(RunFile, ABlockThatHasGrownIsReadAsItWasListed) {
  RunFileWriter writer(path, summary_of_test());
  writer.add(batch_of(10, 100));
  writer.flush();
  RunFileReader reader(path);
  Trace trace = reader.trace();
  writer.add(batch_of(110, 100));
  writer.add(batch_of(0, 10));  // late: these stand before the rest
  writer.flush();
  EXPECT_EQ(reader.fill(trace), 1u);
  const std::vector<Span> spans = spans_of(trace.tracks()[0]);
  ASSERT_EQ(spans.size(), 100u);
  EXPECT_EQ(spans.front().start, 10'000);
  EXPECT_EQ(spans.back().start, 109'000);
  EXPECT_TRUE(reader.problems().empty());
}

TEST_F(RunFile, ReadsWhatANewerVersionWrote) {
  write_run(path, MadeTrace(10).trace);
  {
    Database db(path, Database::Mode::Update);
    db.exec(
        "PRAGMA user_version = 9; CREATE TABLE holograms(x); ALTER TABLE metrics ADD COLUMN perplexity; INSERT INTO "
        "metrics VALUES(NULL, 1, 2, 3, 4, 5)");
  }
  RunFileReader reader(path);
  EXPECT_EQ(reader.metrics().size(), 1u);
  EXPECT_NE(reader.problems().at(0).find("newer version"), std::string::npos);
}

TEST_F(RunFile, NamesTagsAndNotesChangeAlsoWhileItIsWritten) {
  RunSummary summary = summary_of_test();
  RunFileWriter writer(path, summary);
  rename_run(path, "Robert'); DROP TABLE meta;--");
  tag_run(path, {"baseline"});
  annotate_run(path, "two\nlines");
  summary.steps = 4000;
  writer.set_summary(summary);
  writer.finish();
  const RunSummary read = read_run_summary(path);
  EXPECT_EQ(read.name, "Robert'); DROP TABLE meta;--");
  EXPECT_EQ(read.tags, std::vector<std::string>{"baseline"});
  EXPECT_EQ(read.notes, "two\nlines");
  EXPECT_EQ(read.steps, 4000);
}

// A window that closes does not wait for a file that is still being read.
TEST_F(RunFile, ReadingEndsWhenItIsStopped) {
  const MadeTrace made(3000);
  write_run(path, made.trace);
  RunFileReader reader(path);
  Trace trace = reader.trace();
  std::atomic<bool> flag = true;
  {
    const StopWhen stopped(flag);
    EXPECT_THROW(reader.trace(), Stopped);
    EXPECT_THROW(reader.fill(trace), Stopped);
    flag = false;
    EXPECT_GT(reader.fill(trace), 0u);
    flag = true;
  }
  EXPECT_NO_THROW(reader.trace());
}

TEST_F(RunFile, TenMillionSpansOpenInUnderASecond) {
  if (test::kSanitized) GTEST_SKIP() << "times mean nothing under a sanitizer";
  {
    RunFileWriter writer(path, summary_of_test());
    for (int i = 0; i < 100; ++i) {
      writer.add(batch_of(i * 100000, 100000));
      writer.flush();
    }
    writer.finish();
  }
  const auto begin = std::chrono::steady_clock::now();
  RunFileReader reader(path);
  const Trace trace = reader.trace();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(trace.span_count(), 10'000'000u);
  EXPECT_LT(took.count(), test::busy());
}

TEST(SpanCodec, KeepsExtremes) {
  std::vector<Span> spans(3);
  spans[0].start = std::numeric_limits<TimeNs>::min();
  spans[1].start = std::numeric_limits<TimeNs>::max();
  spans[1].duration = (1ull << 40) - 1;
  spans[1].name = NameId{0xffffffff};
  spans[1].correlation = spans[1].step = 0xffffffff;
  spans[1].op = 0xffff;
  spans[1].flags = 0xff;
  const auto back = decode_spans(encode_spans(spans), 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same(spans[i], back[i])) << i;
  EXPECT_THROW(decode_spans(encode_spans(spans), 1 << 30), Failure);
  EXPECT_THROW(decode_spans("", 3), Failure);
  std::string damaged = encode_spans(spans);
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_THROW(decode_spans(damaged, 3), Failure);
}

TEST(SpanCodec, KeepsPoints) {
  const std::vector<CounterPoint> points{{-5, 0.1}, {7, std::numeric_limits<double>::infinity()}, {7, -1e300}};
  const auto back = decode_points(encode_points(points), 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(back[i].time == points[i].time && back[i].value == points[i].value);
}

// 6,000 spans a lane: only the newest are read, and they are the same in a file and in memory.
TEST_F(RunFile, MultiprocessorsOfAFileAreThoseInMemory) {
  const Trace trace = MadeInside{.multiprocessors = 20, .steps = 2000}.trace();
  write_run(path, trace);
  const MultiprocessorReport stored = StoredSpans(path).multiprocessors(), memory = multiprocessor_report(trace);
  EXPECT_EQ(to_json(stored), to_json(memory));
  EXPECT_LT(stored.steps.size(), 2000u);
  ASSERT_EQ(stored.late.size(), 1u);
  EXPECT_EQ(stored.steps[0].kernel, "persistent");
}

}  // namespace
}  // namespace ws::prof
