// Run files of killed programs, cut short or damaged: what is intact comes back, and what is not is said.
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <random>

#include "profiling/base/failure.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/run_file/stored_spans.h"
#include "tests/profiling/run_file/run_file_support.h"

namespace ws::prof {
namespace {

namespace fs = std::filesystem;

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

// The log goes into the file page by page, and the first page has the new size: what is still missing is in the log.
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
  write_run(path, made.trace);
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
  write_run(path, made.trace);
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

// A stream that works all the time but for one pause, and a row of what was left untraced.
Trace stream_with_a_pause(TimeNs pause) {
  Trace trace;
  const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  Span span;
  span.name = trace.intern("gemm");
  for (int i = 0; i < 5000; ++i) {
    span.start = TimeNs{i} * 1000 + (i > 4500 ? pause : 0), span.duration = 900;
    trace.append(stream, span);
  }
  span.start = 4'000'000, span.duration = 10'000, span.kind = static_cast<uint8_t>(SpanKind::Overhead);
  trace.append(trace.track(TrackKind::Untraced, kUntracedTrack, "CPU"), span);
  return trace;
}

// What cannot be read is no pause of the GPU's, wherever it lies.
TEST_F(RunFile, AnUnreadableBlockIsNoGap) {
  constexpr TimeNs kPause = 50'000;
  constexpr int kBlock = static_cast<int>(SpanBlock::kCapacity);
  const Trace made = stream_with_a_pause(kPause);
  for (const int damaged : {0, 2, 4}) {
    write_run(path, made);
    const std::string sql =
        "UPDATE block_data SET data = x'00' WHERE id = (SELECT b.id FROM blocks b JOIN tracks t ON t.id = b.track "
        "WHERE "
        "t.name = 'stream 7' ORDER BY b.first LIMIT 1 OFFSET " +
        std::to_string(damaged) + ")";
    Database(path, Database::Mode::Update).exec(sql.c_str());
    StoredSpans file(path);
    const auto gap = file.longest_gap();
    ASSERT_TRUE(gap);
    const bool known = damaged != 4;  // the pause lies among the spans of the last block
    EXPECT_EQ(gap->end - gap->begin, known ? kPause + 100 : 100) << damaged;
    const SpanBlock& block = made.tracks()[0].blocks[static_cast<size_t>(damaged)];
    EXPECT_EQ(file.unread(), block.count);
    const TimeNs end = made.last_time();
    const Activity whole = activity(made, 0, end), read = file.activity(0, end);
    EXPECT_EQ(file.unread(), block.count) << "each is counted once";
    EXPECT_EQ(read.untraced, whole.untraced + block.last - block.first);
    EXPECT_EQ(read.wall, end - read.untraced);
    EXPECT_EQ(read.busy, whole.busy - TimeNs{900} * block.count) << damaged;
    EXPECT_EQ(file.activity(damaged * kBlock * 1000, (damaged + 1) * kBlock * 1000 - 200).busy, 0) << damaged;
  }
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

}  // namespace
}  // namespace ws::prof
