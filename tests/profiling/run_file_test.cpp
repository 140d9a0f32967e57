#include "profiling/formats/run_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "profiling/failure.h"
#include "profiling/formats/span_codec.h"
#include "profiling/formats/sqlite.h"
#include "profiling/formats/stored_spans.h"
#include "tests/profiling/made_trace.h"

namespace ws::prof {
namespace {

namespace fs = std::filesystem;

class RunFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  fs::path folder = fs::temp_directory_path() / ("run_file_test_" + std::to_string(getpid()));
  std::string path = (folder / "a.wsrun").string();
};

RunSummary summary_of_test() {
  RunSummary summary;
  summary.name = "arena · graph";
  summary.device = "NVIDIA H200";
  summary.status = "finished";
  summary.spec = R"({"launch":"graph"})";
  summary.tags = {"fast", "it's \"quoted\""};
  summary.steps = 3000;
  summary.final_loss = 0.0625;
  summary.peak_bytes = 1ull << 34;
  summary.us_per_step = 12.3;
  summary.extra["later"] = "kept";
  return summary;
}

void expect_same_trace(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.tracks().size(), b.tracks().size());
  for (size_t t = 0; t < a.tracks().size(); ++t) {
    const auto left = spans_of(a.tracks()[t]), right = spans_of(b.tracks()[t]);
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      ASSERT_TRUE(same(left[i], right[i])) << t << " " << i;
      ASSERT_EQ(a.name(left[i].name), b.name(right[i].name));
      ASSERT_EQ(a.detail(left[i].detail), b.detail(right[i].detail));
    }
  }
}

void write_whole(const std::string& path, const Trace& trace) {
  RunFileWriter writer(path, summary_of_test());
  writer.add(trace);
  writer.finish();
}

TEST_F(RunFile, KeepsEverything) {
  const MadeTrace made(3000);
  {
    RunFileWriter writer(path, summary_of_test());
    writer.add(Metric{1, 0.5, 2.3, std::nan("")});
    writer.add(Evaluation{100, 1.0, 2.0, 0.4, 0.91});
    writer.add(ChangeMark{7, 0.7, "learning rate 0.1 → 0.01"});
    StepWindow window{0, 10, 5, 1005, {}, 3, 4};
    window.times[2] = 1000;
    writer.add(window);
    writer.add(made.trace);
    writer.finish();
  }
  EXPECT_FALSE(fs::exists(path + "-wal"));
  RunFileReader reader(path);
  EXPECT_EQ(reader.summary().name, "arena · graph");
  EXPECT_EQ(reader.summary().tags, summary_of_test().tags);
  EXPECT_EQ(reader.summary().final_loss, 0.0625);
  EXPECT_EQ(reader.summary().peak_bytes, 1ull << 34);
  EXPECT_EQ(reader.summary().extra.at("later"), "kept");
  ASSERT_EQ(reader.metrics().size(), 1u);
  EXPECT_TRUE(std::isnan(reader.metrics()[0].accuracy));
  EXPECT_EQ(reader.evaluations().at(0).test_accuracy, 0.91);
  EXPECT_EQ(reader.marks().at(0).text, "learning rate 0.1 → 0.01");
  EXPECT_EQ(reader.step_windows().at(0).times[2], 1000);
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
  write_whole(path, made.trace);
  const double bytes = static_cast<double>(fs::file_size(path)) / static_cast<double>(made.trace.span_count());
  RecordProperty("bytes_per_span", std::to_string(bytes));
  EXPECT_LT(bytes, 12);
}

TEST_F(RunFile, ReadsOnlyTheRangeThatIsAskedFor) {
  const MadeTrace made(3000);
  write_whole(path, made.trace);
  RunFileReader reader(path);
  Trace trace = reader.trace();
  const TimeNs middle = made.trace.last_time() / 2;
  const size_t read = reader.fill(trace, middle, middle + 1000);
  EXPECT_GE(read, 2u);
  EXPECT_LE(read, 6u);
  EXPECT_EQ(reader.fill(trace, middle, middle + 1000), 0u);
}

TraceBatch batch_of(int from, int count) {
  TraceBatch batch;
  batch.names = {"gemm", "relu"};
  BatchTrack track{TrackKind::Stream, "stream 7", "GPU 0", 0, {}};
  for (int i = from; i < from + count; ++i) {
    Span span;
    span.start = TimeNs{i} * 1000;
    span.duration = 500;
    span.name = NameId{static_cast<uint32_t>(i % 2)};
    span.step = static_cast<uint32_t>(i + 1);
    track.spans.push_back(span);
  }
  batch.tracks.push_back(std::move(track));
  batch.counters.push_back({"memory used", "B", {{from, 1.0 * from}}});
  StepAllocations calls;
  calls.step = static_cast<uint32_t>(from + 1);
  calls.allocations = 20;
  batch.allocations.push_back(calls);
  return batch;
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

TEST_F(RunFile, AnswersOverAllOfItWithoutMemory) {
  const MadeTrace made(20000);
  write_whole(path, made.trace);
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
  EXPECT_FALSE(StoredSpans(path, stop).longest_gap());  // given up before it began
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
    return ++seen, true;
  });
  EXPECT_GE(seen, 300);
  EXPECT_EQ(file.unread(), 0u);
}

TEST_F(RunFile, SurvivesAKill) {
  const pid_t child = fork();
  if (child == 0) {
    RunFileWriter writer(path, summary_of_test());
    writer.add(batch_of(0, 5000));
    writer.add(Metric{1, 0, 2.0, 0.1});
    writer.flush();
    writer.add(batch_of(5000, 5000));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  RunFileReader reader(path);
  Trace trace = reader.trace();
  reader.fill(trace);
  EXPECT_EQ(spans_of(trace.tracks().at(0)).size(), 5000u);
  EXPECT_EQ(reader.metrics().size(), 1u);
}

// The log goes into the file page by page, and the first page tells the new size: what is still missing is in the log.
TEST_F(RunFile, SurvivesAKillWhileItsLogIsFoldedIn) {
  const MadeTrace made(3000);
  RunFileWriter writer(path, summary_of_test());
  writer.add(made.trace);
  writer.flush();
  const std::string killed = (folder / "killed.wsrun").string(), folded = (folder / "folded.wsrun").string();
  for (const std::string& copy : {killed, folded}) {
    fs::copy_file(path, copy);
    fs::copy_file(path + "-wal", copy + "-wal");
  }
  Database(folded, Database::Mode::Update).exec("PRAGMA wal_checkpoint(TRUNCATE)");
  ASSERT_GT(fs::file_size(folded), fs::file_size(killed));
  std::string first_page(8192, '\0');
  std::ifstream(folded, std::ios::binary).read(first_page.data(), 8192);
  std::fstream(killed, std::ios::binary | std::ios::in | std::ios::out).write(first_page.data(), 8192);
  RunFileReader reader(killed);
  EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
  Trace trace = reader.trace();
  reader.fill(trace);
  expect_same_trace(made.trace, trace);
  EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
}

TEST_F(RunFile, ATruncatedFileGivesWhatIsIntact) {
  const MadeTrace made(20000);
  write_whole(path, made.trace);
  const auto whole = fs::file_size(path);
  for (const double share : {0.9, 0.5, 0.2}) {
    const std::string cut = (folder / "cut.wsrun").string();
    fs::copy_file(path, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, static_cast<uintmax_t>(static_cast<double>(whole) * share));
    RunFileReader reader(cut);
    EXPECT_EQ(reader.summary().name, "arena · graph");
    Trace trace = reader.trace();
    const size_t read = reader.fill(trace) * SpanBlock::kCapacity;
    EXPECT_GT(static_cast<double>(read), 0.3 * share * static_cast<double>(made.trace.span_count())) << share;
    ASSERT_FALSE(reader.problems().empty());
    EXPECT_NE(reader.problems()[0].find("The file ends after"), std::string::npos);
  }
}

TEST_F(RunFile, DamageInsideIsFoundAndNamed) {
  const MadeTrace made(20000);
  write_whole(path, made.trace);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::mt19937 random(3);
  const auto size = fs::file_size(path);
  for (int i = 0; i < 20; ++i) {
    file.seekp(static_cast<std::streamoff>(size / 2 + random() % (size / 4)));
    file.put('\x5a');
  }
  file.close();
  RunFileReader reader(path);
  Trace trace = reader.trace();
  EXPECT_GT(reader.fill(trace), 100u);
  EXPECT_FALSE(reader.problems().empty());
}

TEST_F(RunFile, RefusesWhatIsNotARun) {
  EXPECT_THROW(RunFileReader("/nowhere/x.wsrun"), Failure);
  std::ofstream(path) << "this is not a database, only some text that is long enough to look like one";
  EXPECT_THROW(RunFileReader{path}, Failure);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THROW(RunFileReader{path}, Failure);
  { Database(path, Database::Mode::Create).exec("CREATE TABLE other(x)"); }
  EXPECT_THROW(RunFileReader{path}, Failure);
}

TEST_F(RunFile, ReadsWhatANewerVersionWrote) {
  write_whole(path, MadeTrace(10).trace);
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

TEST_F(RunFile, TenMillionSpansOpenInUnderASecond) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "times mean nothing under a sanitizer";
#endif
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
  EXPECT_LT(took.count(), 1.0);
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

}  // namespace
}  // namespace ws::prof
