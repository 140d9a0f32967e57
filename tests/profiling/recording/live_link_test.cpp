// A recorded program sends whoever follows it what it does, and never waits for them.
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/recording/claim_file.h"
#include "profiling/recording/live_link.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "profiling/base/clock.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/record_keys.h"
#include "profiling/recording/record_program.h"
#include "profiling/base/failure.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/own_file.h"
#include "tests/support/recorded_here.h"
#include "tests/support/sanitizers.h"

namespace ws::prof {
namespace {

TraceBatch made_batch(int kernels, TimeNs from = 0) {
  BatchBuilder builder;
  Detail detail;
  detail.grid[0] = 4, detail.block[2] = 7, detail.bytes = 1 << 20, detail.copy_kind = "pageable → device";
  auto& row = builder.row(TrackKind::Stream, "stream 7", "GPU 0", 1, 3);
  for (int i = 0; i < kernels; ++i) {
    Span span;
    span.start = from + i * 100;
    span.duration = 60;
    span.kind = static_cast<uint64_t>(SpanKind::Kernel);
    span.name = builder.id(builder.name("kernel " + std::to_string(i % 3)));
    span.detail = builder.id(builder.shape(detail));
    span.correlation = static_cast<uint32_t>(i + 1);
    row.spans.push_back(span);
  }
  builder.counter("pool used", "B", {from + 5, 2.5});
  builder.memory({from + 7, 0x7000, 512, 3, 1, MemoryAction::Allocate, builder.memory_source("cudaMalloc")});
  builder.allocations({.step = 3, .allocations = 2, .bytes = 1024});
  builder.losses().dropped_records = 9;
  return builder.finish();
}

template <class Ready>
bool eventually(Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

TEST(BatchBytes, ComeBackTheSame) {
  TraceBatch before = made_batch(1000);
  before.tracks[0].replaces = 7;
  const TraceBatch after = decode_batch(encode_batch(before));
  EXPECT_EQ(after.names, before.names);
  EXPECT_EQ(after.details, before.details);
  ASSERT_EQ(after.tracks.size(), 1u);
  EXPECT_EQ(after.tracks[0].name, "stream 7");
  EXPECT_EQ(after.tracks[0].depth, 1);
  EXPECT_EQ(after.tracks[0].rank, 3);
  EXPECT_EQ(after.tracks[0].replaces, 7u);
  ASSERT_EQ(after.tracks[0].spans.size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) {
    const Span &a = before.tracks[0].spans[i], &b = after.tracks[0].spans[i];
    ASSERT_TRUE(a.start == b.start && a.duration == b.duration && a.name == b.name && a.correlation == b.correlation);
  }
  EXPECT_EQ(after.counters[0].points[0].value, 2.5);
  EXPECT_EQ(after.memory[0].address, 0x7000u);
  EXPECT_EQ(after.memory_sources[0], "cudaMalloc");
  EXPECT_EQ(after.allocations[0].allocations, 2u);
  EXPECT_EQ(after.losses.dropped_records, 9u);
}

TEST(BatchBytes, AFrameOfTheRecordingIsNamed) {
  CodeStack stack;
  stack.frames = {{.path = "libwarpsight_inject.so", .function = "?"}, {.path = "libc.so.6", .function = "?"}};
  const CodeStack read = decode_stack(encode_stack(stack));
  EXPECT_EQ(read.frames[0].function, "Warpsight's recording");
  EXPECT_EQ(read.frames[1].function, "?");
}

TEST(BatchBytes, CutOrChangedOnesAreRefusedOrHarmless) {
  const std::string good = encode_batch(made_batch(20));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_THROW(decode_batch(good.substr(0, size)), Failure) << size;
  EXPECT_THROW(decode_batch(good + "x"), Failure);
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0xff);
    try {
      Trace trace;
      append(trace, decode_batch(bad));
    } catch (const Failure&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 20);
}

// The window takes a colour by them.
TEST(BatchBytes, SpansOfAnUnknownKindAreRefused) {
  TraceBatch of_kind = made_batch(2), of_meaning = made_batch(2);
  of_kind.tracks[0].spans[1].kind = static_cast<uint64_t>(SpanKind::Other) + 1;
  of_meaning.tracks[0].spans[1].meaning = kMeanings;
  EXPECT_THROW(decode_batch(encode_batch(of_kind)), Failure);
  EXPECT_THROW(decode_batch(encode_batch(of_meaning)), Failure);
}

TEST(Following, GivesEveryBatchInOrder) {
  LiveFollower follower;
  LiveSender sender(follower.address(), getpid(), steady_ns());
  ASSERT_TRUE(sender.connected());
  for (int i = 0; i < 50; ++i) sender.send(made_batch(2000, i * 1'000'000));
  sender.finish();
  Trace trace;
  EXPECT_TRUE(eventually([&] {
    for (TraceBatch batch = follower.take(); !batch.empty(); batch = follower.take()) append(trace, std::move(batch));
    return trace.span_count() == 100'000;
  }));
  EXPECT_EQ(trace.tracks().size(), 1u);
  EXPECT_TRUE(eventually([&] { return follower.status().running == 0; }));
  const FollowStatus status = follower.status();
  EXPECT_EQ(status.programs, 1);
  EXPECT_EQ(status.kernels, 100'000u);
  EXPECT_EQ(status.allocations, 100u);
  EXPECT_EQ(status.dropped, 450u);
  EXPECT_EQ(status.left_out, 0u);
  EXPECT_EQ(status.problem, "");
}

// What the program knows of its ops, and what it logs, comes live as it is in the file.
TEST(Following, OpsAndLossesComeLive) {
  LiveFollower follower;
  LiveSender sender(follower.address(), getpid(), steady_ns());
  const OpTag there = register_ops({{"aten::addmm", "", "encoder.fc", "forward", Meaning::Matrix, 0, 0,
                                     stack_from_text("net.py:12 in Net.forward < train.py:3 in main")}});
  TraceBatch batch = made_batch(3);
  for (Span& span : batch.tracks[0].spans) span.op = there;
  sender.send(batch);
  sender.send({{7, 0.5, 2.25, 0.125}}, {{7, 1, 0.5, 3.5, 0.75}});
  sender.finish();
  Trace trace;
  LiveCurves curves;
  EXPECT_TRUE(eventually([&] {
    for (TraceBatch more = follower.take(); !more.empty(); more = follower.take()) append(trace, std::move(more));
    const LiveCurves more = follower.take_curves();
    curves.metrics.insert(curves.metrics.end(), more.metrics.begin(), more.metrics.end());
    curves.evaluations.insert(curves.evaluations.end(), more.evaluations.begin(), more.evaluations.end());
    return trace.span_count() == 3 && !curves.metrics.empty();
  })) << follower.status().problem;
  const OpInfo& op = trace.ops.at(trace.tracks()[0].blocks[0].spans[0].op);
  EXPECT_EQ(op.name, "aten::addmm");
  EXPECT_EQ(op.layer, "encoder.fc");
  EXPECT_EQ(line_of(op), "net.py:12 in Net.forward");
  EXPECT_EQ(stack_of(op).size(), 2u);
  EXPECT_EQ(curves.metrics[0].loss, 2.25);
  ASSERT_EQ(curves.evaluations.size(), 1u);
  EXPECT_EQ(curves.evaluations[0].test_accuracy, 0.75);
}

TEST(BatchBytes, StacksOfSamplesAreWhole) {
  const auto stack = std::make_shared<CodeStack>(CodeStack{{{"/a < b > c/train.py", 9, "main"}, {"net.py", 3, "hot"}}, 2});
  BatchBuilder builder;
  Span span;
  span.duration = 1;
  span.name = builder.id(builder.name("hot (net.py:3) < main (/a < b > c/train.py:9)"));  // a name may look like a stack
  builder.row(TrackKind::Other, "ranges", "CPU").spans.push_back(span);
  for (int i = 0; i < 2; ++i) {
    span.start = i, span.name = builder.id(builder.name(stack));
    builder.row(TrackKind::Samples, "samples of MainThread", "CPU").spans.push_back(span);
  }
  const std::string bytes = encode_batch(builder.finish());
  Trace trace;
  append(trace, decode_batch(bytes)), append(trace, decode_batch(bytes));
  ASSERT_EQ(trace.span_count(), 6u);
  EXPECT_EQ(trace.name_count(), 2u) << "each name once";
  EXPECT_EQ(trace.stack(trace.tracks()[0].blocks[0].spans[0].name), nullptr);
  const NameId sampled = trace.tracks()[1].blocks[0].spans[3].name;
  ASSERT_TRUE(trace.stack(sampled));
  EXPECT_EQ(*trace.stack(sampled), *stack);
  EXPECT_EQ(trace.name(sampled), "hot (net.py:3) < main (/a < b > c/train.py:9)");
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    Trace other;
    try {
      append(other, decode_batch(damaged));
    } catch (const Failure&) {
    }
  }
}

TEST(BatchBytes, CutOrChangedOpsAreRefused) {
  const std::string good = encode_ops(3, {{"a", "b", "c", "d", Meaning::Loss, 1, 2}, {"e", "", "", "", Meaning::Other}});
  std::vector<OpTag> tags;
  decode_ops(good, tags);
  ASSERT_EQ(tags.size(), 5u);
  EXPECT_EQ(op_info(tags[3]).layer, "c");
  EXPECT_EQ(op_info(tags[4]).name, "e");
  for (size_t size = 0; size < good.size(); ++size) EXPECT_THROW(decode_ops(good.substr(0, size), tags), Failure) << size;
  std::string unknown = good;
  unknown[sizeof(OpTag) + 8 + 4 * 9] = 99;  // the meaning of the first
  EXPECT_THROW(decode_ops(unknown, tags), Failure);
}

TEST(Following, SecondProcessHasRowsOfItsOwnOnTheSameClock) {
  LiveFollower follower;
  const int64_t origin = steady_ns();
  LiveSender first(follower.address(), getpid(), origin), second(follower.address(), getpid(), origin + 5000);
  first.send(made_batch(1));
  ASSERT_TRUE(eventually([&] { return follower.status().kernels == 1; }));
  second.send(made_batch(1));
  Trace trace;
  EXPECT_TRUE(eventually([&] {
    for (TraceBatch batch = follower.take(); !batch.empty(); batch = follower.take()) append(trace, std::move(batch));
    return trace.span_count() == 2;
  }));
  ASSERT_EQ(trace.tracks().size(), 2u);
  EXPECT_EQ(trace.tracks()[0].group, "GPU 0");
  EXPECT_EQ(trace.tracks()[1].group.rfind("GPU 0 · process ", 0), 0u);
  EXPECT_EQ(trace.tracks()[1].blocks[0].first, 5000);
}

// Nobody reads at the other end of this socket: the program goes on, and says later what was left out.
TEST(Following, ASlowFollowerCostsTheProgramLittle) {
  LiveFollower follower;
  LiveSender sender(follower.address(), getpid(), steady_ns());
  TraceBatch batch = made_batch(500'000);
  const int64_t begin = steady_ns();
  for (int i = 0; i < 12; ++i) sender.send(batch);  // 190 MB
  if (!test::kSanitized) {
    EXPECT_LT(steady_ns() - begin, 30'000'000'000);
  }
  sender.finish();
  EXPECT_TRUE(eventually([&] { return follower.status().running == 0; }));
  EXPECT_GT(follower.status().left_out, 0u);  // nobody took them
}

// The recorder goes on to send what a slow follower had no space for, also when the program does nothing more.
TEST(Following, WhatHadNoSpaceComesWhileNothingIsNew) {
  const std::string address = test::own_file("slow-follower");
  sockaddr_un here{AF_UNIX, {}};
  ASSERT_LT(address.size(), sizeof here.sun_path);
  address.copy(here.sun_path, address.size());
  unlink(address.c_str());
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listening, reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  ASSERT_EQ(listen(listening, 1), 0);
  test::RecordedHere recorder(test::own_file("no-space.wsrun"), "made", {.level = TraceLevel::Kernels}, address);
  const int from = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  ASSERT_GE(from, 0);
  constexpr int kParts = 30, kSteps = 10'000;
  for (int part = 0; part < kParts; ++part) {
    for (int step = 0; step < kSteps; ++step) const StepScope scope(part * kSteps + step);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the collector takes them
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the recorder has sent what fits
  constexpr size_t kHeader = 16, kEnough = 1 << 20;
  std::string bytes;
  size_t whole = 0;  // up to here the frames are complete
  EXPECT_TRUE(eventually([&] {
    char part[1 << 16];
    for (ssize_t count = read(from, part, sizeof part); count > 0; count = read(from, part, sizeof part))
      bytes.append(part, static_cast<size_t>(count));
    for (uint64_t size = 0; bytes.size() >= whole + kHeader; whole += kHeader + size) {
      std::memcpy(&size, bytes.data() + whole + 8, sizeof size);
      if (bytes.size() < whole + kHeader + size) break;
    }
    return bytes.size() > kEnough && whole == bytes.size();
  })) << bytes.size() << " bytes came, " << whole << " in complete frames";
  close(from), close(listening);
  recorder.finish();
}

// A recorder that was killed leaves the folder of its socket. The next one removes it once it is old, and none that is in use.
TEST(Following, FoldersOfKilledRecordersAreRemoved) {
  namespace fs = std::filesystem;
  const std::string place = test::own_file("temporary");
  fs::create_directories(place);
  const char* const before = std::getenv("TMPDIR");
  const std::string restored = before ? before : "";
  setenv("TMPDIR", place.c_str(), 1);
  const auto folders = [&] { return std::distance(fs::directory_iterator(place), {}); };
  // What a killed recorder leaves: its folder is elsewhere when it ends. (A fork with other threads may start none of its own under
  // ThreadSanitizer.)
  const auto leave_one = [&](std::chrono::minutes age) {
    fs::path folder, aside;
    {
      LiveFollower follower;
      folder = fs::path(follower.address()).parent_path(), aside = folder.string() + ".aside";
      fs::rename(folder, aside);
    }
    fs::rename(aside, folder);
    for (const fs::path& made : {folder / "live", folder}) fs::last_write_time(made, fs::file_time_type::clock::now() - age);
  };
  {
    LiveFollower alive;
    fs::last_write_time(alive.address(), fs::file_time_type::clock::now() - std::chrono::hours(9));
    leave_one(std::chrono::minutes(2));
    EXPECT_EQ(folders(), 2);
    leave_one(std::chrono::minutes(0));
    EXPECT_EQ(folders(), 2) << "the old one is gone; the one in use and the new one stay";
    EXPECT_TRUE(fs::exists(alive.address()));
  }
  restored.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", restored.c_str(), 1);
}

// What the library in a recorded program does, without a GPU: marks go to the file and to who follows.
TEST(Following, RecorderSendsWhatItWrites) {
  LiveFollower follower;
  const std::string path = ::testing::TempDir() + "followed-" + std::to_string(getpid()) + ".wsrun";
  test::RecordedHere recorder(path, "made", {.level = TraceLevel::Kernels}, follower.address());
  for (int step = 0; step < 100; ++step) {
    const StepScope scope(step);
    const PhaseScope phase("forward");
  }
  recorder.finish();
  EXPECT_TRUE(eventually([&] { return follower.status().programs == 1 && follower.status().running == 0; }));
  EXPECT_EQ(follower.status().steps, 100u);
  Trace live;
  for (TraceBatch batch = follower.take(); !batch.empty(); batch = follower.take()) append(live, std::move(batch));
  RunFileReader reader(path);
  EXPECT_EQ(live.span_count(), reader.trace().span_count());
  EXPECT_EQ(live.span_count(), 200u);
  std::filesystem::remove(path);
}

// A program that marks its steps: they come while it runs, each with its kernels if it uses a GPU, and match the
// file in the end. `Ahead`: the GPU runs each step long after the host marked it.
TEST(Following, StepsComeWhileItRuns) {
  enum Uses { Host, Gpu, Ahead };
  for (const Uses uses : {Host, Gpu, Ahead}) {
    LiveFollower follower;
    const std::string path = ::testing::TempDir() + "steps-" + std::to_string(getpid()) + ".wsrun";
    std::atomic<int> wanted = 0, made = 0;
    const auto source = [&]() -> TraceBatch {
      if (made == wanted) return {};
      BatchBuilder builder;
      Span range;
      range.start = 1000 * ++made, range.duration = 1000, range.kind = static_cast<uint64_t>(SpanKind::Phase);
      range.name = builder.id(builder.name("step #"));
      builder.row(TrackKind::ProgramSteps, kProgramSteps, "CPU").spans.push_back(range);
      if (uses == Host) return builder.finish();
      Span launch = range;
      launch.duration = 10, launch.kind = static_cast<uint64_t>(SpanKind::Api), launch.meaning = static_cast<uint64_t>(Meaning::Launch);
      launch.correlation = static_cast<uint32_t>(made), launch.name = builder.id(builder.name("cudaLaunchKernel"));
      builder.row(TrackKind::Api, "thread 1 calls", "CPU").spans.push_back(launch);
      const int behind = uses == Ahead ? 4 : 0;
      if (made <= behind) return builder.finish();
      Span kernel = launch;
      kernel.start += 10, kernel.duration = 900, kernel.kind = static_cast<uint64_t>(SpanKind::Kernel), kernel.meaning = 0;
      kernel.correlation -= static_cast<uint32_t>(behind);
      builder.row(TrackKind::Stream, "stream 7", "GPU 0").spans.push_back(kernel);
      return builder.finish();
    };
    test::RecordedHere recorder(path, "made", {.level = TraceLevel::Off}, follower.address(), source);
    const uint64_t held_back = uses == Host ? 1 : uses == Gpu ? 2 : 6;  // each waits for a kernel of its successor
    for (const int now : {10, 40, 100}) {
      wanted = now;
      EXPECT_TRUE(eventually([&] { return follower.status().steps >= static_cast<uint64_t>(now) - held_back; })) << uses << " " << now;
    }
    recorder.finish();
    EXPECT_TRUE(eventually([&] { return follower.status().programs == 1 && follower.status().running == 0; }));
    Trace live;
    for (TraceBatch batch = follower.take(); !batch.empty(); batch = follower.take()) append(live, std::move(batch));
    const auto steps_of = [](const Trace& trace) {
      std::vector<std::pair<TimeNs, uint32_t>> steps;
      for (const Track& track : trace.tracks())
        if (track.kind == TrackKind::Steps)
          each_span(track, -kAlways, kAlways, [&](const Span& span) { steps.emplace_back(span.start, span.step); });
      return steps;
    };
    RunFileReader reader(path);
    Trace kept = reader.trace();
    reader.fill(kept);
    EXPECT_EQ(steps_of(live), steps_of(kept));
    EXPECT_EQ(steps_of(live).size(), 100u);
    EXPECT_EQ(follower.status().steps, 100u);
    EXPECT_EQ(steps_of(live).at(50).first, 51'000 + (uses == Ahead ? 4'010 : 0)) << uses;
    std::filesystem::remove(path);
  }
}

// The disk is full after a few kilobytes: the program goes on. It has opened a file of its own under the number of stderr, which
// gets no message.
TEST(Following, AFullDiskEndsTheRecordingAndNotTheProgram) {
  const std::string path = ::testing::TempDir() + "full-" + std::to_string(getpid()) + ".wsrun";
  test::RecordedHere recorder(path, "made", {.level = TraceLevel::Kernels});
  std::optional<test::FileSizeLimit> full(1000);
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 600; ++step) {
    const StepScope scope(step);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  recorder.finish();
  full.reset();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, "");
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
}

// Whoever closes the window does not wait for a program that ignores Ctrl+C.
TEST(Following, AProgramThatIsNotInterruptedIsEnded) {
  const std::string path = ::testing::TempDir() + "ended-" + std::to_string(getpid()) + ".wsrun";
  const int64_t begin = steady_ns();
  {
    RecordedProgram run({"sh", "-c", "trap '' INT; while :; do sleep 0.1; done"}, path, {.library = "/no/library"});
    EXPECT_FALSE(run.wait(300).has_value());
    EXPECT_FALSE(run.recorded());
  }
  EXPECT_LT(steady_ns() - begin, 40'000'000'000);
  RecordedProgram run({"sh", "-c", "exit 7"}, path, {.library = "/no/library"});
  EXPECT_EQ(run.wait(20'000), 7);
}

void copy_as_it_stands(const std::string& from, const std::string& to) {
  for (const char* suffix : {"", "-wal", "-shm"})
    if (std::filesystem::exists(from + suffix)) std::filesystem::copy_file(from + suffix, to + suffix);
}

// A file of 100 steps of four kernels, as it stands when the process that writes it is killed.
void make_unfinished(const std::string& path, const std::string& process, const std::string& recording = "") {
  const std::string made = path + ".made";
  {
    RunSummary summary;
    summary.origin = "record";
    summary.extra[kRecordProcess] = process, summary.extra[kRecordingKey] = recording;
    RunFileWriter writer(made, summary);
    BatchBuilder builder;
    auto& stream = builder.row(TrackKind::Stream, "stream 7", "GPU 0");
    for (int i = 0; i < 400; ++i) {
      Span kernel;
      kernel.start = i * 10'000 + (i / 4) * 30'000, kernel.duration = 5000;
      kernel.kind = static_cast<uint64_t>(SpanKind::Kernel);
      const char* name = i % 4 == 0   ? "gemm"
                         : i % 4 == 1 ? "relu"
                         : i % 4 == 2 ? "loss"
                         : "update";
      kernel.name = builder.id(builder.name(name));
      stream.spans.push_back(kernel);
    }
    builder.allocations({.step = 0, .allocations = 100, .frees = 100});
    TraceBatch batch = builder.finish();
    batch.losses.dropped_records = 5;
    writer.add(std::move(batch));
    writer.flush();
    copy_as_it_stands(made, path);
  }
  std::filesystem::remove(made);
}

// It is killed once its files are there.
std::vector<std::string> killed_after(const std::string& file) { return {"sh", "-c", "until [ -e " + file + " ]; do sleep 0.01; done; kill -9 $$"}; }

constexpr const char* kNoProcess = "2147483646 gone";

// The recorded program has no time to end its file: the one that started it does.
TEST(Following, TheFileOfAKilledProgramIsEnded) {
  const std::string path = ::testing::TempDir() + "killed-" + std::to_string(getpid()) + ".wsrun";
  const std::string made = path + ".there";
  RecordedProgram run(killed_after(made), path, {.library = "/no/library"});
  make_unfinished(path, kNoProcess, recording_mark(run.follower()));
  ASSERT_EQ(read_run_summary(path).status, "running");
  std::ofstream(made).put('1');
  EXPECT_EQ(run.wait(20'000), 128 + 9);
  RunFileReader reader(path);
  EXPECT_EQ(reader.summary().status, "stopped");
  EXPECT_NE(reader.summary().extra.at("message").find("signal 9"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(reader.summary().steps), 100, 2);
  EXPECT_NEAR(reader.summary().allocator_calls_per_step, 2, 0.1);
  const Trace trace = reader.trace();
  EXPECT_EQ(trace.losses.dropped_records, 5u);
  for (const std::string& file : {path, made}) std::filesystem::remove(file);
}

TEST(Following, EachProcessHasAFileThatOpensEverywhere) {
  const std::string folder = ::testing::TempDir() + "claims-" + std::to_string(getpid()) + "/";
  std::filesystem::create_directory(folder);
  const std::string number = std::to_string(getpid());
  EXPECT_EQ(claim_file(folder + "out.wsrun"), folder + "out.wsrun");
  EXPECT_EQ(claim_file(folder + "out.wsrun"), folder + "out." + number + ".wsrun");
  EXPECT_EQ(claim_file(folder + "out.wsrun"), folder + "out." + number + "-2.wsrun");
  EXPECT_EQ(claim_file(folder + "plain"), folder + "plain");
  EXPECT_EQ(claim_file(folder + "plain"), folder + "plain." + number + ".wsrun");
  EXPECT_THROW(claim_file("/no/such/folder/out.wsrun"), Failure);
  test::remove_folder(folder);
}

// A program of several processes is killed: the files of ended processes are ended, a living process keeps its file.
TEST(Following, TheFilesOfAllProcessesAreEnded) {
  const std::string folder = ::testing::TempDir() + "processes-" + std::to_string(getpid()) + "/";
  std::filesystem::create_directory(folder);
  const std::string path = folder + "out.wsrun";
  const std::vector<std::string> wanted{path, folder + "out.41.wsrun", folder + "out.123-2.wsrun",
                                        folder + "out.999.wsrun"};
  const Ownership lives(wanted[3]);
  // Others by such names: of an earlier recording, of another program, no recording at all.
  make_unfinished(folder + "out.7.wsrun", kNoProcess);
  make_unfinished(folder + "outer.8.wsrun", kNoProcess);
  make_unfinished(folder + "out.x8.wsrun", kNoProcess);
  RecordedProgram run(killed_after(folder + "there"), path, {.library = "/no/library"});
  for (const std::string& file : wanted) make_unfinished(file, kNoProcess, recording_mark(run.follower()));
  std::ofstream(folder + "there").put('1');
  EXPECT_EQ(run.wait(30'000), 128 + 9);
  EXPECT_EQ(run.paths(), wanted);
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(wanted[i]);
    RunFileReader reader(wanted[i]);
    EXPECT_EQ(reader.summary().status, "stopped");
    EXPECT_NEAR(static_cast<double>(reader.summary().steps), 100, 2);
    EXPECT_FALSE(is_still_written(wanted[i]));
  }
  EXPECT_TRUE(is_still_written(wanted[3]));
  for (const char* other : {"out.7.wsrun", "outer.8.wsrun", "out.x8.wsrun"})
    EXPECT_EQ(read_run_summary(folder + other).status, "running") << other;
  test::remove_folder(folder);
}

TEST(Following, WithoutAFollowerNothingHappens) {
  LiveSender sender("/no/such/socket", getpid(), steady_ns());
  EXPECT_FALSE(sender.connected());
  sender.send(made_batch(10));
  sender.finish();
}

}  // namespace
}  // namespace ws::prof
