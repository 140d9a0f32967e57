// Somebody moves a run over the file that `record` or `train` is writing, or will copy from another machine: it stays as it is,
// byte for byte, whatever ends next.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "profiling/base/process.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/program_writer.h"
#include "profiling/run_file/run_file.h"
#include "tests/support/kill_process.h"
#include "tests/support/own_file.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

class MovedRun : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(folder_); }
  void TearDown() override { test::remove_folder(folder_); }

  // A run that `record` would complete, or would explain, if it were its own.
  void make_good(const std::string& status, const std::string& message = "") {
    prof::RunSummary summary;
    summary.name = "good", summary.origin = "record", summary.status = status;
    if (!message.empty()) summary.extra["message"] = message;
    {
      prof::RunFileWriter writer(good_, summary);
      for (int i = 0; i < 1000; ++i) writer.add(prof::Metric{i, 1, 0.5, 0.5});
    }
    before_ = bytes(good_);
  }
  static std::string bytes(const fs::path& file) {
    std::ostringstream all;
    all << std::ifstream(file, std::ios::binary).rdbuf();
    return all.str();
  }
  test::Recorders recorders() const { return test::Recorders::of(run_); }
  static bool wait_until(const std::function<bool()>& ready) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30); std::chrono::steady_clock::now() < until;) {
      if (ready()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  int end_of(Process& process) {
    said_.clear();
    while (const auto more = process.output(1000)) said_ += *more;
    return process.wait();
  }
  // Records until `meanwhile` has ended, which moves a run.
  int record(std::vector<std::string> program, const std::function<void()>& meanwhile) {
    std::vector<std::string> words{WARPSIGHT_CLI, "record", "--library", "-", "--out", run_, "--"};
    words.insert(words.end(), program.begin(), program.end());
    Process record(words, Process::Output::CapturedWithErrors);
    EXPECT_TRUE(wait_until([&] { return prof::is_still_written(run_) && recorders().program > 0; }));
    meanwhile();
    return end_of(record);
  }
  void move_over(const std::string& name) { fs::rename(good_, name); }
  // The command works on another machine, which here is a folder, until `printed` was printed, and is interrupted.
  int work_there(std::vector<std::string> words, const std::string& printed) {
    words.insert(words.begin(), WARPSIGHT_CLI);
    words.insert(words.begin() + 2, {"--on", "pipe:exec " WARPSIGHT_CLI " serve --folder " + (folder_ / "there").string(), "--run", run_});
    Process command(words, Process::Output::CapturedWithErrors);
    std::string first;
    while (first.find(printed) == first.npos) {
      const auto more = command.output(1000);
      if (!more) break;
      first += *more;
    }
    move_over(run_);
    command.signal(SIGINT);
    const int ended = end_of(command);
    said_ = first + said_;
    return ended;
  }
  void expect_to_stay_beside_the_copy() {
    expect_unchanged(run_);
    EXPECT_NE(said_.find("live.wsrun: cannot be written: another file took this name meanwhile"), std::string::npos) << said_;
    EXPECT_NE(said_.find("To copy it again: warpsight attach"), std::string::npos) << said_;
  }
  void expect_unchanged(const std::string& name) {
    EXPECT_EQ(bytes(name) == before_, true) << said_;
    prof::RunFileReader reader(name);
    EXPECT_EQ(reader.summary().name, "good");
    EXPECT_EQ(reader.metrics().size(), 1000u);
  }
  bool reports(const std::string& name) const { return said_.find(name + " is another file now") != std::string::npos; }

  const fs::path folder_ = test::own_file("moved");
  const std::string run_ = (folder_ / "live.wsrun").string(), good_ = (folder_ / "good.wsrun").string();
  std::string before_, said_;
};

TEST_F(MovedRun, WhileAProgramIsRecordedThatComesToItsEnd) {
  for (const int ms : {0, 1, 5, 300}) {  // also between the moment in which the file is there and the moment in which it is opened
    fs::remove(run_);
    make_good("running");
    const int ended = record({RECORDED_PROGRAM, "300", "losses", "6"}, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      move_over(run_);
    });
    EXPECT_EQ(ended, 6);
    expect_unchanged(run_);
    EXPECT_TRUE(reports(run_)) << said_;
  }
}

TEST_F(MovedRun, WhileAProgramIsRecordedThatIsKilled) {
  for (const auto& [status, message] : {std::pair("running", ""), std::pair("stopped", prof::kProgramLeft)}) {
    make_good(status, message);
    const int ended = record({RECORDED_PROGRAM, "50000"}, [&] {
      const pid_t program = recorders().program;
      EXPECT_TRUE(wait_until([&] { return prof::bytes_of_log(run_) > 0; }));
      move_over(run_);
      EXPECT_TRUE(test::kill_process(program));
    });
    EXPECT_EQ(ended, 128 + SIGKILL);
    expect_unchanged(run_);
    EXPECT_TRUE(reports(run_)) << said_;
  }
}

TEST_F(MovedRun, AfterTheWriterWasKilled) {
  make_good("running");
  const int ended = record({RECORDED_PROGRAM, "500"}, [&] {
    const pid_t writer = recorders().writer;
    EXPECT_TRUE(test::kill_process(writer));
    EXPECT_TRUE(wait_until([&] { return !test::kill_process(writer, 0); }));
    move_over(run_);
  });
  EXPECT_EQ(ended, 0);
  expect_unchanged(run_);
}

// A name that a further process of the program has: it is neither joined nor removed.
TEST_F(MovedRun, ToTheNameOfAFurtherProcess) {
  make_good("running");
  std::string further;
  record({"sh", "-c", RECORDED_PROGRAM " 50000 & first=$!; " RECORDED_PROGRAM " 50000; wait $first"}, [&] {
    EXPECT_TRUE(wait_until([&] {
      const auto files = prof::further_files(run_);
      return files.size() == 1 && prof::holds_something(further = files[0]);
    }));
    move_over(further);
    const pid_t second = std::atoi(fs::path(further).stem().extension().c_str() + 1);
    const pid_t first = recorders().program;
    EXPECT_TRUE(test::kill_process(second));
    EXPECT_TRUE(test::kill_process(first));
  });
  expect_unchanged(further);
  EXPECT_TRUE(reports(further)) << said_;
  EXPECT_EQ(prof::read_run_summary(run_).status, "stopped");
}

// Its own file is still completed, also under this name again.
TEST_F(MovedRun, ItsOwnFileIsStillCompleted) {
  const int ended = record({RECORDED_PROGRAM, "50000"}, [&] {
    const pid_t program = recorders().program;
    EXPECT_TRUE(test::kill_process(recorders().writer));
    EXPECT_TRUE(test::kill_process(program));
  });
  EXPECT_EQ(ended, 128 + SIGKILL);
  const prof::RunSummary summary = prof::read_run_summary(run_);
  EXPECT_EQ(summary.status, "stopped");
  EXPECT_NE(summary.said("message").find("signal 9"), std::string::npos) << summary.said("message");
}

TEST_F(MovedRun, WhileItTrains) {
  make_good("running");
  Process train({WARPSIGHT_CLI, "train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=100000000", "--set", "train.eval_every=0", "--out",
                 (folder_ / "out").string(), "--run", run_, "--trace", "full"},
                Process::Output::CapturedWithErrors);
  EXPECT_TRUE(wait_until([&] { return prof::is_still_written(run_); }));
  move_over(run_);
  std::string said;
  while (said.find("no longer written") == said.npos) {
    const auto more = train.output(1000);
    if (!more) break;
    said += *more;
  }
  train.signal(SIGINT);
  EXPECT_NE(end_of(train), 0);
  said_ = said + said_;
  expect_unchanged(run_);
  EXPECT_NE(said_.find("was moved, deleted or replaced"), std::string::npos) << said_;
  EXPECT_FALSE(fs::exists(run_ + ".wsck")) << "weights of another training";
}

TEST_F(MovedRun, WhileItTrainsElsewhere) {
  make_good("finished");
  EXPECT_EQ(work_there({"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=100000000", "--set", "train.eval_every=0", "--no-output"}, "epoch"), 1);
  expect_to_stay_beside_the_copy();
}

TEST_F(MovedRun, WhileAProgramIsRecordedElsewhere) {
  make_good("finished");
  EXPECT_EQ(work_there({"record", "--library", "-", "--live", "--", RECORDED_PROGRAM, "3000"}, "steps"), 1);
  expect_to_stay_beside_the_copy();
}

// An earlier run of this name is replaced, as it was asked for.
TEST_F(MovedRun, AnEarlierRunIsStillReplacedFromElsewhere) {
  make_good("finished");
  move_over(run_);
  Process train({WARPSIGHT_CLI, "train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=1", "--no-output", "--run", run_, "--on",
                 "pipe:exec " WARPSIGHT_CLI " serve --folder " + (folder_ / "there").string()},
                Process::Output::CapturedWithErrors);
  EXPECT_EQ(end_of(train), 0) << said_;
  EXPECT_NE(prof::read_run_summary(run_).name, "good");
}

}  // namespace
}  // namespace ws::app
