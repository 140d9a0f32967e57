#include "profiling/base/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "profiling/base/failure.h"

namespace ws {
namespace {

std::string everything(Process& process) {
  std::string all;
  while (const auto piece = process.output(1000)) all += *piece;
  return all;
}

TEST(Process, ReportsWhatItWroteAndHowItEnded) {
  Process shell({"sh", "-c", "echo $GREETING; echo aside >&2; exit 3"}, Process::Output::CapturedWithErrors,
                {{"GREETING", "good day"}});
  EXPECT_EQ(everything(shell), "good day\naside\n");
  EXPECT_EQ(shell.wait(), 3);
  EXPECT_EQ(shell.ended_by(), 0);
}

TEST(Process, ReplacesASettingAndKeepsTheRest) {
  Process shell({"sh", "-c", "echo $HOME; test -n \"$PATH\""}, Process::Output::Captured, {{"HOME", "/nowhere"}});
  EXPECT_EQ(everything(shell), "/nowhere\n");
  EXPECT_EQ(shell.wait(), 0);
}

TEST(Process, EndsByASignal) {
  Process sleeper({"sleep", "60"});
  EXPECT_EQ(sleeper.wait(20), std::nullopt);
  sleeper.signal(SIGTERM);
  EXPECT_EQ(sleeper.wait(), 128 + SIGTERM);
  EXPECT_EQ(sleeper.ended_by(), SIGTERM);
  sleeper.signal(SIGTERM);  // its number may be another's by now
}

TEST(Process, AGroupEndsAsAWhole) {
  Process shell({"sh", "-c", "sleep 77 & echo $!; wait"}, Process::Output::Captured, {}, {.group = true});
  std::string line;
  while (!line.ends_with("\n")) line += shell.output(1000).value();
  const int64_t sleeper = std::stoll(line);
  EXPECT_TRUE(is_alive(sleeper));
  shell.signal(SIGKILL);
  EXPECT_EQ(shell.wait(), 128 + SIGKILL);
  while (is_alive(sleeper)) std::this_thread::yield();
}

TEST(Process, ReportsWhyItCannotBeStarted) {
  try {
    Process process({"/no/such/program"});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("/no/such/program cannot be started: No such file"));
  }
}

// Not by its number alone: that may be another's by now.
TEST(Process, LearnsOfTheEndOfAnother) {
  Process sleeper({"sleep", "100"});
  pid_t number = 0;
  std::ifstream("/proc/self/task/" + std::to_string(getpid()) + "/children") >> number;
  const std::string mark = process_mark(number);
  const OtherProcess other(mark), reused(mark + "1");
  EXPECT_TRUE(reused.ended(0));
  reused.signal(SIGKILL);
  EXPECT_FALSE(other.ended(20));
  other.signal(SIGTERM);
  EXPECT_TRUE(other.ended(5000)) << "nobody has waited for it yet";
  EXPECT_EQ(sleeper.wait(5000), 128 + SIGTERM);
}

TEST(Process, KnowsWhoIsAlive) {
  EXPECT_TRUE(is_alive(int64_t{getpid()}));
  EXPECT_TRUE(is_alive(process_mark()));
  EXPECT_FALSE(is_alive(std::string()));
  EXPECT_FALSE(is_alive(process_mark() + "1")) << "same number, other start";
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_alive(int64_t{child})) << "a zombie";
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace ws
