// Somebody moves a run over one that is being written, or whose writer was killed: the log that lies there is of the run that is
// gone, and nobody replays it into the one that has the name now.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "profiling/base/failure.h"
#include "profiling/base/sqlite_log.h"
#include "tests/profiling/run_file/run_file_support.h"

namespace ws::prof {
namespace {

class MovedFile : public RunFile {
 protected:
  static constexpr size_t kSteps = 3000;
  void SetUp() override {
    RunFile::SetUp();
    RunFileWriter good(good_, named("good"));
    for (size_t i = 0; i < kSteps; ++i) good.add(Metric{static_cast<int64_t>(i), 1, 0.5, 0.5});
    good.finish();
    before_ = bytes(good_);
  }
  static RunSummary named(const char* name) {
    RunSummary summary = summary_of_test();
    summary.name = name;
    return summary;
  }
  static std::string bytes(const std::string& file) {
    std::ostringstream all;
    all << std::ifstream(file, std::ios::binary).rdbuf();
    return all.str();
  }
  static void write_some(RunFileWriter& writer) {
    for (int64_t i = 0; i < 200; ++i) writer.add(Metric{i, 1, 9, 0});
    writer.add(batch_of(0, 5000));
    writer.flush();
  }
  void expect_good() {
    {
      RunFileReader reader(path);
      EXPECT_EQ(reader.summary().name, "good");
      EXPECT_EQ(reader.metrics().size(), kSteps);
      EXPECT_TRUE(reader.problems().empty());
    }
    EXPECT_EQ(bytes(path), before_);
  }
  const std::string good_ = (folder / "good.wsrun").string();
  std::string before_;
};

TEST_F(MovedFile, OverOneThatIsBeingWritten) {
  {
    RunFileWriter writer(path, named("live"));
    write_some(writer);
    EXPECT_GT(bytes_of_log(path), 0);
    std::filesystem::rename(good_, path);
    expect_good();  // the writer has not noticed yet
    writer.add(Metric{200, 1, 9, 0});
    EXPECT_THROW(writer.flush(), Failure);
    EXPECT_EQ(bytes_of_log(path), 0);
    expect_good();
  }
  expect_good();
}

// The other file came with a log of its own, in the place of ours.
TEST_F(MovedFile, ALogThatIsNotOursStays) {
  const std::string log = path + kLogEndings[0];
  {
    RunFileWriter writer(path, named("live"));
    write_some(writer);
    std::filesystem::rename(good_, path);
    std::filesystem::remove(log);
    std::ofstream(log) << "another log";
    writer.add(Metric{200, 1, 9, 0});
    EXPECT_THROW(writer.flush(), Failure);
    EXPECT_EQ(bytes(log), "another log");
  }
  EXPECT_EQ(bytes(log), "another log");
}

TEST_F(MovedFile, OverOneWhoseWriterWasKilled) {
  const pid_t writing = fork();
  if (writing == 0) {
    RunFileWriter writer(path, named("killed"));
    write_some(writer);
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(writing, nullptr, 0), writing);
  ASSERT_GT(bytes_of_log(path), 0);
  { RunFileWriter other((folder / "other.wsrun").string(), named("other")); }  // clears the locks of killed writers in this folder
  std::filesystem::rename(good_, path);
  expect_good();
  annotate_run(path, "a note");
  EXPECT_EQ(bytes_of_log(path), 0);
  RunFileReader reader(path);
  EXPECT_EQ(reader.summary().notes, "a note");
  EXPECT_EQ(reader.metrics().size(), kSteps);
}

// The log of a killed writer is still read where it belongs, and in a copy.
TEST_F(MovedFile, AKilledRunKeepsItsLog) {
  const pid_t writing = fork();
  if (writing == 0) {
    RunFileWriter writer(path, named("killed"));
    write_some(writer);
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(writing, nullptr, 0), writing);
  const std::string copy = (folder / "copy.wsrun").string();
  for (const char* ending : {"", "-wal"}) std::filesystem::copy_file(path + ending, copy + ending);
  for (const std::string& file : {copy, path}) {
    RunFileReader reader(file);
    EXPECT_EQ(reader.summary().name, "killed");
    EXPECT_EQ(reader.metrics().size(), 200u);
  }
}

}  // namespace
}  // namespace ws::prof
