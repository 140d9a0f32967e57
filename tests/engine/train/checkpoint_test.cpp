#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/train/checkpoint.h"
#include "tests/engine/train/train_support.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/own_file.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

namespace fs = std::filesystem;

Checkpoint made_up() {
  Checkpoint c;
  c.spec = test::small_spec();
  c.state.step = 7;
  c.state.parameters = {{1.5f, -2.0f, 3.25f}, {}, {0.0f}};
  c.state.moments[0] = {{0.5f, 0.5f, 0.5f}, {}, {9.0f}};
  c.state.loss_scale = 1024;
  c.epoch = 1;
  c.row = 48;
  c.wall_s = 0.1;
  c.epoch_loss = 1.0 / 3;
  return c;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CheckpointFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = test::own_file("checkpoint");
  std::string path_ = (folder_ / "c.wsck").string();
};

TEST_F(CheckpointFile, ComesBackAsItWas) {
  const Checkpoint c = made_up();
  save_checkpoint(c, path_);
  const Checkpoint back = load_checkpoint(path_);
  EXPECT_EQ(back.spec, c.spec);
  EXPECT_EQ(back.state.step, 7);
  EXPECT_EQ(back.state.parameters, c.state.parameters);
  EXPECT_EQ(back.state.moments[0], c.state.moments[0]);
  EXPECT_TRUE(back.state.moments[1].empty());
  EXPECT_EQ(back.state.loss_scale, 1024);
  EXPECT_EQ(back.row, 48);
  EXPECT_EQ(back.wall_s, 0.1);
  EXPECT_EQ(back.epoch_loss, 1.0 / 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "no temporary file stays";
}

TEST_F(CheckpointFile, RefusesEveryTruncationAndEveryFlippedByte) {
  save_checkpoint(made_up(), path_);
  const std::string good = bytes_of(path_);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse_checkpoint(good.substr(0, length), "cut"), Failure) << length;
  for (size_t at = 0; at < good.size(); at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_THROW(parse_checkpoint(bad, "flipped"), Failure) << at;
  }
  EXPECT_THROW(parse_checkpoint(good + "x", "longer"), Failure);
}

TEST_F(CheckpointFile, NamesWhatIsWrongWithAFile) {
  EXPECT_THROW(load_checkpoint((folder_ / "none").string()), Failure);
  EXPECT_THROW(load_checkpoint(folder_.string()), Failure);
  std::ofstream(path_) << "hello, I am a text";
  try {
    load_checkpoint(path_);
    FAIL();
  } catch (const Failure& problem) {
    EXPECT_NE(std::string(problem.what()).find(path_), std::string::npos);
  }
}

TEST_F(CheckpointFile, TheOldOneSurvivesAFullDisk) {
  save_checkpoint(made_up(), path_);
  const std::string before = bytes_of(path_);
  Checkpoint larger = made_up();
  larger.state.parameters.emplace_back(100'000, 1.0f);
  std::string message;
  {
    test::FileSizeLimit limit(10'000);
    try {
      save_checkpoint(larger, path_);
    } catch (const Failure& problem) {
      message = problem.what();
    }
  }
  EXPECT_NE(message.find("an earlier one is unchanged"), std::string::npos) << message;
  EXPECT_EQ(bytes_of(path_), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(CheckpointFile, ARunThatCannotKeepItReportsItAtItsEnd) {
  const auto data = test::random_data(50, 6, 3, true);
  TrainControl control;
  test::Recorder sink;
  TrainOptions options;
  options.checkpoint = (folder_ / "no such folder" / "c.wsck").string();
  const Summary s = train(test::small_spec(), data, control, sink, options);
  EXPECT_EQ(s.status, RunStatus::Failed);
  EXPECT_NE(s.message.find("cannot be created"), std::string::npos) << s.message;
  EXPECT_EQ(s.steps, 12) << "the training itself went to its end";
}

}  // namespace
}  // namespace ws
