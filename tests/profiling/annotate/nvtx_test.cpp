// Whoever listens to NVTX while a network trains sees its steps, phases and ops, whether it is traced or not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace ws {
namespace {

namespace fs = std::filesystem;

struct SeenRanges {
  std::map<std::string, int> names;
  std::map<std::string, std::string> around;  // the range that a name first stood in
  int open = 0;                               // at the end
  bool nested = true;
};

SeenRanges read_ranges(const fs::path& file) {
  SeenRanges seen;
  std::vector<std::string> open;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t gap = line.find(' ');
    const std::string name = line.substr(gap + 1);
    if (name == ".") {
      seen.nested = seen.nested && !open.empty();
      if (!open.empty()) open.pop_back();
      continue;
    }
    seen.nested = seen.nested && std::stoul(line) == open.size();
    ++seen.names[name];
    seen.around.try_emplace(name, open.empty() ? "" : open.back());
    open.push_back(name);
  }
  seen.open = static_cast<int>(open.size());
  return seen;
}

class Nvtx : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  SeenRanges train(const std::string& trace, bool listen = true) {
    const std::string file = folder_ / "ranges";
    const std::string command =
        std::string(listen ? "NVTX_INJECTION64_PATH=" NVTX_LISTENER " " : "") + "NVTX_LISTENER_FILE=" + file +
        " " WARPSIGHT_CLI " train iris --set exec.device=cpu --set exec.fusion=off --set train.epochs=3 --trace " +
        trace + " --out " + (folder_ / "out").string() + " >" + (folder_ / "log").string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return read_ranges(file);
  }
  const fs::path folder_ = fs::path(::testing::TempDir()) / ("nvtx-" + std::to_string(getpid()));
};

TEST_P(Nvtx, StepsPhasesAndOpsAreRecorded) {
  const SeenRanges seen = train(GetParam());
  EXPECT_EQ(seen.names.count("step 0"), 1u);
  EXPECT_EQ(seen.names.count("step 1"), 1u);
  EXPECT_GE(seen.names.count("forward"), 1u);
  EXPECT_GE(seen.names.count("backward"), 1u);
  EXPECT_TRUE(seen.around.contains("forward") && seen.around.at("forward").starts_with("step "))
      << "a phase stands in its step";
  int ops = 0;
  for (const auto& [name, around] : seen.around) ops += around == "forward" || around == "backward";
  EXPECT_GE(ops, 2) << "ops stand in their phases";
  EXPECT_TRUE(seen.nested);
  EXPECT_EQ(seen.open, 0);
}

INSTANTIATE_TEST_SUITE_P(Traced, Nvtx, ::testing::Values("off", "steps", "kernels"),
                         [](const auto& level) { return std::string(level.param); });

TEST_F(Nvtx, NobodyListening) { EXPECT_TRUE(train("off", false).names.empty()); }

}  // namespace
}  // namespace ws
