// Frames go from a program to the process that writes its run file through shared memory that outlives the program.
#include "profiling/recording/frame_ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "profiling/recording/program_frames.h"

namespace ws::prof {
namespace {

TEST(FrameRing, BytesComeInOrderAlsoAroundItsEnd) {
  FrameRing ring;
  std::string sent, got;
  std::mt19937 random(1);
  for (int i = 0; i < 300'000; ++i) sent += static_cast<char>(random());
  constexpr int kTimes = 200;  // 60 MB through 16 MiB
  std::thread reader([&, own = ring.number()] {
    FrameRing read(own);
    while (got.size() < kTimes * sent.size())
      if (!read.take(got)) std::this_thread::yield();
  });
  for (int i = 0; i < kTimes; ++i)
    for (size_t at = 0; at < sent.size(); at += ring.put(std::string_view(sent).substr(at))) std::this_thread::yield();
  reader.join();
  for (int i = 0; i < kTimes; ++i) ASSERT_EQ(got.compare(i * sent.size(), sent.size(), sent), 0) << i;
}

TEST(FrameRing, TakesOnlyWhatFits) {
  FrameRing ring;
  const std::string much(FrameRing::kBytes + 5, 'x');
  EXPECT_EQ(ring.put(much), FrameRing::kBytes);
  EXPECT_EQ(ring.put("y"), 0u);
  FrameRing read(ring.number());
  std::string got;
  EXPECT_TRUE(read.take(got));
  EXPECT_EQ(got.size(), FrameRing::kBytes);
  EXPECT_FALSE(read.take(got));
  EXPECT_EQ(ring.put("yz"), 2u);
}

TEST(FrameRing, KnowsThatItsWriterEndedBeforeAnybodyReapsIt) {
  FrameRing ring;
  int holds[2];
  ASSERT_EQ(pipe(holds), 0);
  EXPECT_FALSE(ring.writer_died()) << "it has not begun";
  const pid_t writer = fork();
  if (writer == 0) {
    FrameRing own(ring.number());
    own.hold();
    if (write(holds[1], "h", 1) == 1) pause();
    _exit(1);
  }
  char held = 0;
  ASSERT_EQ(read(holds[0], &held, 1), 1);
  EXPECT_FALSE(ring.writer_died());
  kill(writer, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(writer), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(kill(writer, 0), 0) << "nobody has reaped it";
  EXPECT_TRUE(ring.writer_died());
  EXPECT_TRUE(ring.writer_died()) << "also when asked again";
  EXPECT_EQ(waitpid(writer, nullptr, 0), writer);
  close(holds[0]), close(holds[1]);
}

TEST(FrameRing, IsReleasedByAWriterThatHasFinished) {
  FrameRing ring;
  FrameRing own(ring.number());
  own.hold();
  own.release();
  EXPECT_FALSE(ring.writer_died());
}

TEST(FrameRing, KeepsWhatAProgramSentBeforeItWasKilled) {
  FrameRing ring;
  const int own = ring.number();
  const pid_t program = fork();
  if (program == 0) {
    ring.put("last words");
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(program, nullptr, 0), program);
  FrameRing read(own);
  std::string got;
  EXPECT_TRUE(read.take(got));
  EXPECT_EQ(got, "last words");
}

TEST(FrameRing, IsOnlyForItsOwnKind) {
  EXPECT_THROW(FrameRing read(-1), Failure);
  const int foreign = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  EXPECT_THROW(FrameRing read(foreign), Failure);
  shmctl(foreign, IPC_RMID, nullptr);
}

// Nothing stays behind after both have gone, and no descriptor is there meanwhile.
TEST(FrameRing, LeavesNothing) {
  const auto files = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = files();
  int number = 0;
  {
    FrameRing ring;
    number = ring.number();
    FrameRing read(number);
    EXPECT_EQ(files(), before);
  }
  EXPECT_THROW(FrameRing read(number), Failure);
}

TEST(FrameRing, OnlyTheFirstTroubleCounts) {
  FrameRing ring;
  EXPECT_EQ(ring.trouble(), "");
  ring.report("The disk is full.");
  ring.report("Something else.");
  EXPECT_EQ(ring.trouble(), "The disk is full.");
}

TEST(ProgramFrames, GoAndComeBack) {
  ProgramBegin begin{.path = "/r.wsrun", .name = "r", .follower = "/f", .process = "7 python3", .mark = "m", .traced = "all.", .number = 7,
                     .origin_ns = 3, .began_ns = 2, .device = 5, .file = 6, .rank = {.rank = 1, .ranks = 4}, .captures = true};
  const ProgramBegin came = decode_begin(encode(begin));
  EXPECT_EQ(came.path, "/r.wsrun");
  EXPECT_EQ(came.process, "7 python3");
  EXPECT_EQ(came.rank.ranks, 4);
  EXPECT_EQ(came.file, 6u);
  EXPECT_TRUE(came.captures);
  HostNotes notes;
  notes.scalar("loss", 0.5, 3);
  const CodeStack stack{{{"a.py", 9, "main"}}, 1};
  notes.sample("row", notes.stack(stack), 5, 6);
  notes.name("text");
  notes.fact("key", "value");
  notes.capture(true);
  const HostNotes::Taken taken = decode_notes(encode(notes.take()));
  ASSERT_EQ(taken.scalars.size(), 1u);
  EXPECT_EQ(taken.scalars[0].value, 0.5);
  ASSERT_EQ(taken.names.size(), 2u);
  EXPECT_EQ(*std::get<1>(taken.names[0]), stack);
  EXPECT_EQ(std::get<0>(taken.names[1]), "text");
  EXPECT_EQ(taken.samples.at(0).row, "row");
  EXPECT_EQ(taken.facts.at("key"), "value");
  EXPECT_EQ(taken.captures.at(0).on, 1);
  const ProgramStatus status = decode_status(encode(ProgramStatus{true, 2, 3, "H200", "d", "9.0", {{"traced", "all."}}}));
  EXPECT_EQ(status.device, "H200");
  EXPECT_EQ(status.kept.at("traced"), "all.");
}

// The writer reads what another program wrote: any bytes, at any length, end in a Failure or in values.
TEST(ProgramFrames, OfADamagedProgramAreRefused) {
  HostNotes notes;
  for (int i = 0; i < 20; ++i) notes.scalar("loss", i, i), notes.sample("row", notes.name("n" + std::to_string(i)), i, i + 1);
  const std::string whole = encode(notes.take());
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole.substr(0, random() % (whole.size() + 1));
    for (int change = 0; change < 3 && !damaged.empty(); ++change) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      NotesReader reader;
      RunSummary summary;
      reader.read(decode_notes(damaged), 0, summary);
    } catch (const Failure&) {
    }
  }
  std::string frames;
  add_frame(frames, FrameKind::Notes, "abc");
  frames[0] ^= 1;
  EXPECT_THROW(take_frames(frames, [](FrameKind, std::string_view) {}), Failure);
}

}  // namespace
}  // namespace ws::prof
