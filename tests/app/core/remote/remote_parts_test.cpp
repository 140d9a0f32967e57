// The parts of the line, each alone: addresses, frames, news, journals, requests, the pace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/core/remote/byte_source.h"
#include "app/core/remote/curves.h"
#include "app/core/remote/frame.h"
#include "app/core/remote/job_folder.h"
#include "app/core/remote/line_pace.h"
#include "app/core/remote/remote_address.h"
#include "app/core/remote/remote_run.h"
#include "app/core/remote/short_log.h"
#include "app/core/remote/update_codec.h"
#include "profiling/annotate/annotate.h"
#include "profiling/base/failure.h"
#include "tests/app/support/whole_run.h"
#include "tests/support/failure_text.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/own_file.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Work>
std::string refusal(const Work& work) { return test::failure_text(work); }

TEST(RemoteAddress, ReportsWhereAndWhat) {
  const RemoteAddress a = parse_remote("ssh://me@gpu7:2222/data/runs");
  EXPECT_EQ(a.user, "me");
  EXPECT_EQ(a.host, "gpu7");
  EXPECT_EQ(a.port, 2222);
  EXPECT_EQ(a.folder, "/data/runs");
  EXPECT_EQ(a.text(), "ssh://me@gpu7:2222/data/runs");
  EXPECT_THAT(a.command(), ElementsAre("ssh", "-T", "-p", "2222", "--", "me@gpu7", HasSubstr("warpsight serve --folder '/data/runs'")));
  EXPECT_THAT(a.command().back(), HasSubstr(copy_folder() + "/bin:")) << "a copy is of our version";
  EXPECT_EQ(parse_remote("ssh://gpu7:a.wsrun").run, "a.wsrun");
  const RemoteAddress in_folder = parse_remote("ssh://gpu7/data/runs/a b.wsrun");
  EXPECT_EQ(in_folder.folder, "/data/runs");
  EXPECT_EQ(in_folder.run, "a b.wsrun");
  EXPECT_EQ(parse_remote("ssh://[::1]:22").host, "::1");
  EXPECT_EQ(parse_remote("ssh://[::1]:22").text(), "ssh://[::1]:22");
  EXPECT_THAT(parse_remote("ssh://gpu7/~/runs").command().back(), HasSubstr("--folder \"$HOME\"/'runs'"));
  EXPECT_THAT(parse_remote("pipe:docker exec -i box x").command(), ElementsAre("sh", "-c", "docker exec -i box x"));
  EXPECT_FALSE(is_remote("a.wsrun"));
}

TEST(RemoteAddress, IsNoWayToOptionsOrShells) {
  for (const char* bad : {"ssh://", "ssh://-oProxyCommand=x", "ssh://a -x", "ssh://a;b", "ssh://$(x)", "ssh://-u@a", "ssh://a:99999",
                          "ssh://a:b", "ssh://a:0", "host", "pipe:"})
    EXPECT_NE(refusal([&] { parse_remote(bad); }), "") << bad;
  EXPECT_THAT(parse_remote("ssh://a/x'; rm -rf ~; '").command().back(), HasSubstr("'/x'\\''; rm -rf ~; '\\'''"));
}

TEST(Frames, ComeInPiecesOfAnySize) {
  const std::string bytes = frame_of(1, "one") + frame_of(2, "") + frame_of(3, std::string(100'000, 'x'));
  for (const size_t piece : {size_t{1}, size_t{7}, bytes.size()}) {
    FrameReader reader("Test");
    std::vector<std::pair<int, size_t>> seen;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.add(std::string_view(bytes).substr(at, piece));
      while (const auto frame = reader.next()) seen.emplace_back(frame->kind, frame->payload.size());
    }
    EXPECT_THAT(seen, ElementsAre(std::pair(1, size_t{3}), std::pair(2, size_t{0}), std::pair(3, size_t{100'000})));
    reader.add(frame_of(4, "next"));
    EXPECT_EQ(reader.next().value_or(Frame{}).payload, "next");
  }
  FrameReader liar("Test");
  liar.add("\xff\xff\xff\xff\x01");
  EXPECT_THAT(refusal([&] { liar.next(); }), HasSubstr("claims a message of 4294967295 bytes"));
}

RemoteUpdate full_update() {
  RemoteUpdate u;
  u.run.steps = {{7, 0.25f, 0.5f, 1.25}, {8, 0.125f, std::nanf(""), 1.5}};
  u.run.epochs = {{1, 9, 2.5, 0.5, 0.75, Evaluation{0.25, 0.875, 30}}, {2, 18, 5, 0.4, std::nan(""), {}}};
  u.run.changes = {{4, "exec.fusion", "off", "pointwise"}};
  u.run.messages = {{"Look \"here\"", true}};
  u.run.progress = Progress{1, 3, 9, 27, 2.5, 5, 1000, {1, 2, 3, 4, 5}, {6, 7, 8, 9}, true, 11};
  Summary summary;
  summary.status = RunStatus::TargetReached, summary.steps = 9, summary.device = "GPU", summary.test_loss = 0.1 + 0.2;
  set_field(summary.spec, "exec.fusion", "pointwise");
  u.run.summary = summary;
  u.run.account.name = "n", u.run.account.step_time.us.value = 1.0 / 3, u.run.account.created = "2026";
  u.files = {"a.wsrun"}, u.exit_status = 0;
  return u;
}

TEST(News, ComeBackAsTheyWere) {
  const RemoteUpdate u = full_update();
  const std::string bytes = UpdateWriter::now(u) + UpdateWriter().news(u) + UpdateWriter::curves({u.run.steps, u.run.epochs});
  FrameReader frames("News");
  frames.add(bytes);
  UpdateReader reader;
  RemoteUpdate back;
  while (const auto frame = frames.next()) reader.read(*frame, back);
  ASSERT_EQ(back.run.steps.size(), 2u);
  EXPECT_EQ(back.run.steps[0].step, 7);
  EXPECT_EQ(back.run.steps[0].loss, 0.25f);
  EXPECT_NEAR(back.run.steps[1].finished_s, 1.5, 1e-7);
  EXPECT_TRUE(std::isnan(back.run.steps[1].accuracy));
  ASSERT_EQ(back.run.epochs.size(), 2u);
  EXPECT_EQ(back.run.epochs[0].test->accuracy, 0.875);
  EXPECT_TRUE(std::isnan(back.run.epochs[1].train_accuracy));
  EXPECT_FALSE(back.run.epochs[1].test);
  EXPECT_EQ(back.run.changes[0].to, "pointwise");
  EXPECT_TRUE(back.run.messages[0].problem);
  EXPECT_TRUE(back.run.progress->paused);
  EXPECT_EQ(back.run.progress->memory.parameter_bytes, 5);
  EXPECT_EQ(back.run.progress->calls.device_free, 9);
  EXPECT_EQ(back.run.progress->started, 11);
  EXPECT_EQ(back.run.summary->status, RunStatus::TargetReached);
  EXPECT_EQ(back.run.summary->test_loss, 0.1 + 0.2);
  EXPECT_EQ(back.run.summary->spec, u.run.summary->spec);
  EXPECT_EQ(back.run.account.step_time.us.value, 1.0 / 3);
  EXPECT_THAT(back.files, ElementsAre("a.wsrun"));
  EXPECT_EQ(back.exit_status, 0);
}

// What a fast training sends must go through a slow line.
TEST(News, LossesAreSmallAndExact) {
  std::vector<StepResult> steps(100'000);
  uint32_t random = 1;
  double time = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    random = random * 1664525 + 1013904223;
    time += 8e-6 + random * 1e-16;
    steps[i] = {static_cast<int64_t>(i) + 5, 0.01f + static_cast<float>(random) * 1e-11f, static_cast<float>(random >> 30) / 16, time};
  }
  const std::string bytes = UpdateWriter::curves({steps, {}});
  EXPECT_LE(bytes.size(), 7 * steps.size());
  FrameReader frames("Losses");
  frames.add(bytes);
  UpdateReader reader;
  RemoteUpdate back;
  while (const auto frame = frames.next()) reader.read(*frame, back);
  ASSERT_EQ(back.run.steps.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    ASSERT_EQ(back.run.steps[i].step, steps[i].step);
    ASSERT_EQ(back.run.steps[i].loss, steps[i].loss);
    ASSERT_EQ(back.run.steps[i].accuracy, steps[i].accuracy);
    ASSERT_NEAR(back.run.steps[i].finished_s, steps[i].finished_s, 0.6e-7);
  }
}

// The ops of a process there have other tags than the same ops here.
TEST(News, TraceKeepsItsOps) {
  const prof::OpTag there = prof::register_ops({{"dW1", "gemm", "fc1", "backward", prof::Meaning::Matrix, 10, 20}});
  prof::BatchBuilder builder;
  prof::Span span{};
  span.start = 5, span.duration = 3, span.op = there, span.name = builder.id(builder.name("kernel"));
  builder.row(prof::TrackKind::Steps, "r", "g").spans = {span};
  const prof::TraceBatch batch = builder.finish();
  const std::string bytes = UpdateWriter().news({}) + UpdateWriter::trace(batch);
  prof::register_ops({{"another", "", "", "", prof::Meaning::Other, 0, 0}});
  FrameReader frames("News");
  frames.add(bytes);
  UpdateReader reader;
  RemoteUpdate back;
  while (const auto frame = frames.next()) reader.read(*frame, back);
  ASSERT_EQ(back.run.traces.size(), 1u);
  EXPECT_EQ(prof::op_info(back.run.traces[0].tracks[0].spans[0].op).name, "dW1");
}

TEST(News, RefuseWhatIsNone) {
  const RemoteUpdate u = full_update();
  const std::string good = UpdateWriter::now(u) + UpdateWriter().news(u) + UpdateWriter::curves({u.run.steps, u.run.epochs});
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x15);
    refused += !refusal([&] {
      FrameReader frames("News");
      frames.add(bad);
      RemoteUpdate back;
      UpdateReader reader;
      while (const auto frame = frames.next()) reader.read(*frame, back);
    }).empty();
  }
  EXPECT_GT(refused, 50) << "nothing else than a Failure may come, and mostly one does";
}

// The window sets each change in its own choices.
// A seed of an earlier protocol is refused at once, and fuzzing never comes further.
TEST(News, SeedsOfTheFuzzTargetHaveTodaysFormat) {
  for (const char* name : {"news.bin", "losses.bin", "trace.bin"}) {
    FrameReader frames("Seed");
    frames.add(text_of(std::string(WARPSIGHT_SOURCE_DIR "/tests/fuzz/corpus/line/") + name));
    UpdateReader reader;
    RemoteUpdate update;
    EXPECT_EQ(refusal([&] {
      while (const auto frame = frames.next()) reader.read(*frame, update);
    }), "") << name;
    EXPECT_FALSE(update.run.steps.empty() && update.run.traces.empty() && !update.run.progress) << name;
  }
}

TEST(News, ChangesThatThisVersionDoesNotKnowAreOnlySaid) {
  RemoteUpdate u;
  u.run.changes = {
      {3, "exec.magic", "off", "on"}, {4, "train.lr", "0.1", "fast"}, {5, "exec.fusion", "off", "epilogue"}};
  FrameReader frames("News");
  frames.add(UpdateWriter().news(u));
  UpdateReader reader;
  RemoteUpdate back;
  while (const auto frame = frames.next()) reader.read(*frame, back);
  ASSERT_EQ(back.run.changes.size(), 1u);
  EXPECT_EQ(back.run.changes[0].key, "exec.fusion");
  ASSERT_EQ(back.run.messages.size(), 2u);
  EXPECT_EQ(back.run.messages[0].text,
            "Step 3: exec.magic is now on. This version of Warpsight does not know that setting.");
}

TEST(News, LossesWaitForTheFirstProgress) {
  FirstProgress first;
  RunUpdate early{.steps = {{0, 1, 1, 1}}, .epochs = {{1, 1, 1, 1, 1, {}}}};
  first.order(early, false);
  EXPECT_TRUE(early.steps.empty() && early.epochs.empty());
  RunUpdate next{.steps = {{1, 1, 1, 1}}, .progress = Progress{}};
  first.order(next, false);
  ASSERT_EQ(next.steps.size(), 2u);
  EXPECT_EQ(next.steps[0].step, 0);
  EXPECT_EQ(next.epochs.size(), 1u);
  RunUpdate later{.steps = {{2, 1, 1, 1}}};
  first.order(later, false);
  EXPECT_EQ(later.steps.size(), 1u);
}

TEST(ShortLogOf, ADayShowsItsBeginningAndItsEnd) {
  ShortLog log(10);
  EXPECT_EQ(log.add("01234567", false), "01234567");
  EXPECT_EQ(log.add("89abc", false), "89");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(log.add("between", false), "");
  EXPECT_EQ(log.add("last words", true), "\n… 6.8 KiB are only in the log there …\nlast words");
  EXPECT_EQ(log.add("", true), "");
  ShortLog small(10);
  EXPECT_EQ(small.add("all of it", true), "all of it");
}

TEST(ShortLogOf, ALetterThatIsCutWaitsForItsEnd) {
  for (const std::string cut : {"\xC2", "\xE2\x86", "\xF0\x9F\x98"}) EXPECT_EQ(whole_letters("ab" + cut), 2u);
  for (const std::string whole : {"", "a", "\xC2\xB5", "\xE2\x86\x92", "\xF0\x9F\x98\x80", "\x80\x80\x80\x80"})
    EXPECT_EQ(whole_letters(whole), whole.size());
}

class Folder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(path_ + "/.jobs/a"); }
  void TearDown() override { test::remove_folder(path_); }
  std::string path_ = (fs::temp_directory_path() / ("warpsight-remote-" + std::to_string(getpid()))).string();
};

TEST_F(Folder, NamesLeadNowhereElse) {
  for (const char* bad : {"", ".", "..", "../a", "a/b", "/etc/passwd", ".hidden", "a\nb"}) {
    EXPECT_FALSE(is_plain_name(bad)) << bad;
    EXPECT_NE(refusal([&] { JobFolder(path_, bad); }), "") << bad;
  }
  EXPECT_FALSE(is_plain_name(std::string("a\0b", 3)));
  EXPECT_TRUE(is_plain_name("20261123-a run.wsrun"));
}

TEST_F(Folder, ATraceKeepsItsNewestPart) {
  const JobFolder job(path_, "a");
  PieceJournal journal(job.path(), kTracePieces, 64u << 20);
  const std::string frame = frame_of(4, std::string(300'000, 'x'));
  for (int i = 0; i < 400; ++i) journal.add(frame);  // 120 MB
  const auto pieces = PieceJournal::pieces(job.path(), kTracePieces);
  uint64_t kept = 0;
  for (const auto& [offset, size] : pieces) {
    EXPECT_EQ(offset % frame.size(), 0u) << "a piece begins with a frame";
    kept += size;
  }
  EXPECT_LE(kept, 68u << 20);
  EXPECT_GE(kept, 60u << 20);
  const auto source = newest_trace_of(job);
  const uint64_t end = pieces.rbegin()->first + pieces.rbegin()->second;
  const NextBytes after = source->next(0, 1000);
  EXPECT_TRUE(after.instead) << "what is asked for is gone";
  EXPECT_EQ(after.until, pieces.rbegin()->first);
  EXPECT_TRUE(source->next(end, 1000).nothing());
  uint64_t at = pieces.begin()->first;
  // A new source each time: one that is slow would skip what is older than a second.
  for (NextBytes next = newest_trace_of(job)->next(at, 1 << 20); !next.nothing(); next = newest_trace_of(job)->next(at, 1 << 20)) {
    EXPECT_FALSE(next.instead);
    at = next.until;
  }
  EXPECT_EQ(at, end) << "it goes on from piece to piece";
}

// The line was cut after the last byte and before the sum: the other side asks for the rest, and gets the sum of all.
TEST(FinishedFile, HasItsSumWhereOnlyTheEndIsAskedFor) {
  const fs::path path = fs::temp_directory_path() / ("warpsight-finished-" + std::to_string(getpid()));
  std::ofstream(path) << std::string(3'000'000, 'a') << "b";
  const auto source = finished_file(path.string());
  uint64_t at = 0;
  for (NextBytes next = source->next(at, 1 << 20); !next.nothing(); next = source->next(at, 1 << 20)) at = next.until;
  for (const uint64_t known : {at, at - 1, uint64_t{1'500'000}}) {
    const auto again = finished_file(path.string());
    for (NextBytes next = again->next(known, 1 << 22); !next.nothing();) next = again->next(next.until, 1 << 22);
    EXPECT_EQ(again->at_end(), source->at_end()) << known;
  }
  EXPECT_EQ(source->at_end()["bytes"], 3'000'001);
  fs::remove(path);
}

// Losses with noise, which does not compress, and one peak.
std::vector<StepResult> made_steps(int64_t from, int64_t count) {
  std::vector<StepResult> steps;
  const auto noise = [](int64_t i) { return static_cast<float>(static_cast<uint32_t>(i) * 2654435761u >> 12) * 1e-5f; };
  for (int64_t i = from; i < from + count; ++i)
    steps.push_back({i, i == 12'345 ? 99.0f : noise(i), 0.5f, static_cast<double>(i) * 1e-6});
  return steps;
}

TEST(CurvesOf, AreThinnedWithTheirExtremes) {
  Curves curves{made_steps(0, 100'000), {}};
  for (int64_t i = 0; i < 1000; ++i) curves.epochs.push_back({i + 1, 100 * (i + 1), 0, 0, 0, {}});
  thin(curves, 256);
  EXPECT_LE(curves.steps.size(), 256u);
  EXPECT_GE(curves.steps.size(), 128u);
  EXPECT_EQ(curves.steps.front().step, 0);
  EXPECT_EQ(curves.steps.back().step, 99'999);
  EXPECT_TRUE(std::ranges::is_sorted(curves.steps, {}, &StepResult::step));
  EXPECT_TRUE(std::ranges::any_of(curves.steps, [](const StepResult& s) { return s.loss == 99; })) << "a peak stays";
  EXPECT_LE(curves.epochs.size(), 257u);
  EXPECT_EQ(curves.epochs.back().epoch, 1000);
  for (const size_t few : {0u, 1u, 2u, 5u}) {
    Curves small{made_steps(0, static_cast<int64_t>(few)), {}};
    thin(small, 4);
    EXPECT_LE(small.steps.size(), few);
  }
}

// A job of a day: what lies beside its run file stays small, and whoever comes sees all of it from the first step on.
TEST_F(Folder, CurvesOfADayStaySmallAndCoverIt) {
  const JobFolder job(path_, "a");
  CurveJournal journal(job);
  constexpr int64_t kSteps = 12'000'000, kTick = 20'000;
  for (int64_t step = 0; step < kSteps; step += kTick) journal.add({made_steps(step, kTick), {}});
  uint64_t kept = 0;
  for (const auto& entry : fs::directory_iterator(job.path())) kept += entry.file_size();
  EXPECT_LE(kept, 20u << 20);
  const auto source = curves_of(job);
  UpdateReader reader;
  RemoteUpdate seen;
  FrameReader frames("Test");
  bool thinned = false;
  uint64_t at = 0;
  for (NextBytes next = source->next(at, 16 << 10); !next.nothing(); next = source->next(at, 16 << 10)) {
    EXPECT_GT(next.until, at);
    frames.add(next.bytes);
    while (const auto frame = frames.next()) reader.read(*frame, seen);
    thinned |= next.instead, at = next.until;
  }
  EXPECT_TRUE(thinned);
  EXPECT_EQ(seen.run.steps.front().step, 0);
  EXPECT_EQ(seen.run.steps.back().step, kSteps - 1);
  EXPECT_TRUE(std::ranges::is_sorted(seen.run.steps, {}, &StepResult::step));
  EXPECT_TRUE(std::ranges::any_of(seen.run.steps, [](const StepResult& s) { return s.loss == 99; })) << "a peak stays";
}

// What a full disk does not take is written when there is space again, in order and whole.
TEST_F(Folder, AJournalWaitsForAFullDisk) {
  const std::string path = path_ + "/news";
  Journal journal(path);
  journal.add("one ");
  {
    const test::FileSizeLimit full(6);
    journal.add("two ");
    journal.add("three ");
  }
  EXPECT_EQ(fs::file_size(path), 4u) << "no half of a frame";
  journal.add("four");
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "one two three four");
}

// Whoever stops a job that has just begun may be faster than the job.
TEST_F(Folder, ARequestBeforeTheJobListensIsReceived) {
  const JobFolder job(path_, "a");
  add_request(job, {{"from", "me"}, {"number", 1}, {"what", "stop"}});
  EXPECT_EQ(JobRequests(job).take().size(), 1u);
}

TEST_F(Folder, ARequestIsTakenOnce) {
  const JobFolder job(path_, "a");
  JobRequests requests(job);
  const auto request = [](int64_t number) { return nlohmann::json{{"from", "me"}, {"number", number}, {"what", "step"}}; };
  add_request(job, request(1));
  add_request(job, request(1));
  std::ofstream(job.file("control"), std::ios::app) << "{\"from\": \"cut o";
  add_request(job, request(2));
  add_request(job, {{"from", "you"}, {"number", 1}});
  EXPECT_EQ(requests.take().size(), 3u);
  add_request(job, request(2));
  EXPECT_TRUE(requests.take().empty());
}

// A line of 1 MB/s with a turn of 50 ms: in the end about 110 ms of bytes are under way, however much there is to send.
TEST(Pace, LeavesNoQueueOnTheLine) {
  LinePace pace;
  constexpr int64_t kMs = 1'000'000;
  constexpr double kBytesAMs = 1000;
  std::deque<std::pair<int64_t, uint64_t>> arrivals;
  double line_free_ms = 0;
  uint64_t sent = 0;
  for (int64_t ms = 0; ms < 20'000; ++ms) {
    for (; !arrivals.empty() && arrivals.front().first <= ms; arrivals.pop_front()) pace.received(arrivals.front().second, ms * kMs + 1);
    while (pace.space_left() > 0) {
      const uint64_t bytes = 16 << 10;
      pace.sent(bytes, ms * kMs + 1);
      sent += bytes;
      line_free_ms = std::max<double>(line_free_ms, static_cast<double>(ms)) + static_cast<double>(bytes) / kBytesAMs;
      arrivals.emplace_back(static_cast<int64_t>(line_free_ms) + 50, sent);
    }
    if (ms > 5000) {
      ASSERT_LE(line_free_ms - static_cast<double>(ms), 150) << "bytes wait on the line at " << ms;
    }
  }
  EXPECT_GT(sent, 17'000'000u) << "and the line is in use";
}

}  // namespace
}  // namespace ws::app
