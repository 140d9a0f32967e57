// kill -9 at random moments of a training and of an experiment: every run file opens, at most the last second is
// missing, the experiment goes on where it was.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "app/core/experiments/experiment.h"
#include "profiling/run_file/run_file.h"

extern char** environ;

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    words.insert(words.begin(), WARPSCOPE_CLI);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid_, arguments[0], &quiet, nullptr, arguments.data(), environ) != 0) pid_ = 0;
    posix_spawn_file_actions_destroy(&quiet);
  }
  ~Program() { end(SIGKILL); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  bool started() const { return pid_ > 0; }
  bool over() {
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
    return pid_ <= 0;
  }
  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

// How long the machine itself lets a thread of ours wait that only sleeps and writes a little: on a busy one a killed
// program has that much less of its last second.
class Pulse {
 public:
  explicit Pulse(const fs::path& folder)
      : thread_([this, folder](const std::stop_token& ended) { beat(folder, ended); }) {}
  double longest_wait() const { return longest_; }

 private:
  void beat(const fs::path& folder, const std::stop_token& ended) {
    std::ofstream file(folder / "pulse");
    while (!ended.stop_requested()) {
      const auto begin = Clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      file << std::string(4096, '.') << std::flush;
      longest_ = std::max<double>(longest_, Seconds(Clock::now() - begin).count() - 0.02);
    }
  }
  std::atomic<double> longest_{0};
  std::jthread thread_;
};

class Killing : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("warpscope-kill-" + std::to_string(getpid()));
  std::mt19937 rng_{20261121};
  double random(double least, double most) { return std::uniform_real_distribution(least, most)(rng_); }
};

double last_time(prof::RunFileReader& reader) {
  const auto metrics = reader.metrics();
  return metrics.empty() ? 0 : metrics.back().wall_s;
}

TEST_F(Killing, ARunFileOpensAndMissesASecondAtMost) {
  constexpr double kSecond = 1.0;
  for (int i = 0; i < 20; ++i) {
    const std::string file = (folder_ / ("run-" + std::to_string(i) + ".wsrun")).string();
    Program program({"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=100000000", "--set",
                     "train.eval_every=0", "--no-output", "--run", file, "--trace", i % 2 ? "full" : "off"});
    ASSERT_TRUE(program.started());
    const Pulse pulse(folder_);
    while (!fs::exists(file) && !program.over()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto begun = Clock::now();  // training begins once its file is there
    std::this_thread::sleep_for(Seconds(i < 14 ? random(0.0, 0.9) : random(1.2, 3.0)));
    ASSERT_FALSE(program.over()) << "the training ended by itself";
    const double trained = Seconds(Clock::now() - begun).count();
    program.end(SIGKILL);
    prof::RunFileReader reader(file);
    EXPECT_EQ(reader.summary().status, "running");
    EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
    // Sleeping, reading the clock, compressing, writing: at each of them a busy machine may keep the program waiting.
    EXPECT_GE(last_time(reader), trained - kSecond - 4 * pulse.longest_wait())
        << "killed after " << trained << " s on a machine that made others wait " << pulse.longest_wait() << " s";
    int64_t step = 0;
    for (const prof::Metric& metric : reader.metrics()) ASSERT_EQ(metric.step, step++) << "a hole in the losses";
    if (trained > 2) {
      EXPECT_GT(reader.summary().steps, 0) << "a list shows how far it came";
    }
  }
}

TEST_F(Killing, AnExperimentGoesOn) {
  const std::string out = (folder_ / "out").string(), file = (folder_ / "small.json").string();
  std::ofstream(file) << R"({"name": "small", "text": "t", "expect": "e",
    "spec": {"data": {"name": "iris"}, "model": {"hidden": [5]}, "train": {"epochs": 2500, "batch": 16, "eval_every": 0},
             "exec": {"device": "cpu"}},
    "axes": {"exec.allocator": ["direct", "arena"], "exec.fusion": ["off", "pointwise", "epilogue"]}, "repeats": 4})";
  const auto rows = [&] {
    std::ifstream in(out + "/results.jsonl");
    size_t count = 0;
    for (std::string line; std::getline(in, line);) count += nlohmann::json::accept(line);
    return count;
  };
  size_t before = 0, kills = 0;
  for (int i = 0; i < 60 && kills < 20; ++i) {
    Program program({"experiment", file, "--out", out});
    ASSERT_TRUE(program.started());
    const auto begun = Clock::now();
    const double until = random(0.02, 0.45);
    while (!program.over() && Seconds(Clock::now() - begun).count() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (program.over()) break;  // it came to its end before its twentieth death
    program.end(SIGKILL);
    ++kills;
    EXPECT_GE(rows(), before) << "a result was lost";
    before = rows();
    if (!fs::exists(out)) continue;  // killed before it made its folder
    for (const auto& entry : fs::directory_iterator(out))
      if (entry.path().extension() == ".wsrun") {
        prof::RunFileReader reader(entry.path().string());
        EXPECT_TRUE(reader.problems().empty()) << entry.path();
      }
  }
  EXPECT_EQ(kills, 20u);
  struct Count final : ExperimentSink {
    int trained = 0;
    void ended(const TrialRun&) override { ++trained; }
  } rest;
  const std::atomic<bool> never{false};
  const ExperimentResult result = run_experiment(load_experiment(file), out, never, rest);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(static_cast<size_t>(rest.trained) + before, 24u) << "what was there is not trained again";
  for (const TrialResult& trial : result.trials) {
    EXPECT_EQ(trial.runs.size(), 4u);
    for (const TrialRun& run : trial.runs) {
      EXPECT_EQ(run.status, "finished");
      EXPECT_EQ(prof::RunFileReader(out + "/" + run.file).summary().status, "finished");
    }
  }
}

}  // namespace
}  // namespace ws::app
