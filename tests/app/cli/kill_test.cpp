// kill -9 at random moments of trainings, experiments, sweeps, recordings, conversions and reports, alone and two at a time:
// every run file opens, at most the last second is missing, nothing is a mixture of two, an experiment goes on where it was.
// 20 kills; WARPSIGHT_KILLS=300 for the whole, WARPSIGHT_KILL_SEED=1 for other moments. On a machine with a GPU the programs named by WARPSIGHT_KILL_DEVICE=cuda train
// there, and WARPSIGHT_KILL_RECORD="PROGRAM WORDS" is what is recorded.
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
#include <iterator>
#include <nlohmann/json.hpp>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "app/core/experiments/experiment.h"
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/run_file/run_file.h"
#include "tests/app/support/whole_run.h"
#include "tests/support/kill_process.h"
#include "tests/support/own_file.h"

extern char** environ;

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

double number(const char* name, double otherwise) {
  const char* wanted = std::getenv(name);
  return wanted ? std::atof(wanted) : otherwise;
}

// A share of the kills.
int kills(double share) { return std::max(2, static_cast<int>(share * number("WARPSIGHT_KILLS", 20))); }

class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    words.insert(words.begin(), WARPSIGHT_CLI);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t group;
    posix_spawnattr_init(&group);
    posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
    if (posix_spawn(&pid_, arguments[0], &quiet, &group, arguments.data(), environ) != 0) pid_ = 0;
    posix_spawnattr_destroy(&group);
    posix_spawn_file_actions_destroy(&quiet);
  }
  ~Program() { end_all(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  bool started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
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
  void end_all() {  // and the program that it records
    if (pid_ > 0) kill(-pid_, SIGKILL);
    end(SIGKILL);
  }

 private:
  pid_t pid_ = 0;
};

// How long a process has waited for a core: of its threads the one that waited longest.
double waited_for_core(pid_t process) {
  double longest = 0;
  std::error_code gone;
  for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(process) + "/task", gone)) {
    double ran_ns = 0, waited_ns = 0;
    std::ifstream(thread.path() / "schedstat") >> ran_ns >> waited_ns;
    longest = std::max(longest, waited_ns * 1e-9);
  }
  return longest;
}

// How long the disk lets a thread of ours wait that only sleeps and writes a little: on a busy machine a killed program has
// that much less of its last second.
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
    test::remove_folder(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { test::remove_folder(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("warpsight-kill-" + std::to_string(getpid()));
  std::mt19937 rng_{20261121u + static_cast<unsigned>(number("WARPSIGHT_KILL_SEED", 0))};
  double random(double least, double most) { return std::uniform_real_distribution(least, most)(rng_); }
};

std::string device() {
  const char* wanted = std::getenv("WARPSIGHT_KILL_DEVICE");
  return std::string("exec.device=") + (wanted ? wanted : "cpu");
}

// A recording of a program that goes on for seconds.
std::vector<std::string> recording(const std::string& out) {
  std::vector<std::string> words{"record"};
  const char* wanted = std::getenv("WARPSIGHT_KILL_RECORD");
  if (!wanted) words.insert(words.end(), {"--library", "-"});
  words.insert(words.end(), {"--out", out, "--"});
  std::istringstream command(wanted ? wanted : RECORDED_PROGRAM " 2000");
  words.insert(words.end(), std::istream_iterator<std::string>(command), {});
  return words;
}

double last_time(prof::RunFileReader& reader) {
  const auto metrics = reader.metrics();
  return metrics.empty() ? 0 : metrics.back().wall_s;
}

TEST_F(Killing, ARunFileOpensAndMissesASecondAtMost) {
  constexpr double kSecond = 1.0;
  for (int i = 0; i < kills(0.2); ++i) {
    const std::string file = (folder_ / ("run-" + std::to_string(i) + ".wsrun")).string();
    Program program({"train", "iris", "--set", device(), "--set", "train.epochs=100000000", "--set",
                     "train.eval_every=0", "--no-output", "--run", file, "--trace", i % 2 ? "full" : "off"});
    ASSERT_TRUE(program.started());
    const Pulse pulse(folder_);
    while (!fs::exists(file) && !program.over()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto begun = Clock::now();  // training begins once its file is there
    std::this_thread::sleep_for(Seconds(i % 4 ? random(0.0, 0.9) : random(1.2, 3.0)));
    ASSERT_FALSE(program.over()) << "the training ended by itself";
    const double waited = waited_for_core(program.pid()), trained = Seconds(Clock::now() - begun).count();
    program.end(SIGKILL);
    prof::RunFileReader reader(file);
    EXPECT_EQ(reader.summary().status, "running");
    EXPECT_TRUE(reader.problems().empty()) << reader.problems().front();
    EXPECT_GE(last_time(reader), trained - kSecond - waited - 4 * pulse.longest_wait())
        << "killed after " << trained << " s, of which it waited " << waited << " s for a core; writing took " << pulse.longest_wait() << " s";
    int64_t step = 0;
    for (const prof::Metric& metric : reader.metrics()) ASSERT_EQ(metric.step, step++) << "a hole in the losses";
    if (trained > 2) {
      EXPECT_GT(reader.summary().steps, 0) << "a list shows how far it came";
    }
  }
}

// A program that is recorded: it dies with its recorder, or the recorder alone does and it goes on.
TEST_F(Killing, ARecordingOpensAndMissesASecondAtMost) {
  for (int i = 0; i < kills(0.1); ++i) {
    const std::string file = (folder_ / ("recorded-" + std::to_string(i) + ".wsrun")).string();
    Program program(recording(file));
    ASSERT_TRUE(program.started());
    const Pulse pulse(folder_);
    const auto holds_something = [&] { std::error_code none; const auto bytes = fs::file_size(file, none); return !none && bytes > 0; };
    while (!holds_something() && !program.over()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto begun = Clock::now();  // the program waits for its writer, which has begun
    std::this_thread::sleep_for(Seconds(random(1.2, 2.5)));
    ASSERT_FALSE(program.over()) << "the recording ended by itself";
    const test::Recorders recorders = test::Recorders::of(file);
    const double waited = waited_for_core(program.pid()) + waited_for_core(recorders.writer) + waited_for_core(recorders.program);
    const double recorded = Seconds(Clock::now() - begun).count();
    program.end_all();
    EXPECT_EQ(why_run_is_damaged(file), "");
    prof::RunFileReader reader(file);
    const prof::Trace trace = reader.trace();
    EXPECT_GE(static_cast<double>(trace.last_time() - trace.first_time()) * 1e-9, recorded - 1 - waited - 4 * pulse.longest_wait())
        << "killed after " << recorded << " s, of which three programs waited " << waited << " s for a core; writing took " << pulse.longest_wait() << " s";
  }
}

// One of the three is killed: what was recorded half a second before is there, and the other two come to their end.
TEST_F(Killing, OfARecordingOnlyTheRecorderTheProgramOrTheWriter) {
  enum Victim { TheRecorder, TheProgram, TheWriter };
  constexpr int kSteps = 500;  // of 2 ms and more
  for (int i = 0; i < 3 * kills(0.1); ++i) {
    const auto victim = static_cast<Victim>(i % 3);
    const fs::path file = folder_ / ("one-of-" + std::to_string(i) + ".wsrun");
    Process record({WARPSIGHT_CLI, "record", "--library", "-", "--out", file, "--", RECORDED_PROGRAM, std::to_string(kSteps)},
                   Process::Output::CapturedWithErrors);
    const Pulse pulse(folder_);
    test::Recorders recorders;
    for (const auto until = Clock::now() + std::chrono::seconds(30); recorders.program == 0 && Clock::now() < until; recorders = test::Recorders::of(file))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_GT(recorders.program, 0);
    const auto begun = Clock::now();
    std::this_thread::sleep_for(Seconds(random(0.2, 0.7)));
    const double waited = waited_for_core(recorders.writer) + waited_for_core(recorders.program);
    const double recorded = Seconds(Clock::now() - begun).count();
    if (victim == TheRecorder) record.signal(SIGKILL);
    else ASSERT_TRUE(test::kill_process(victim == TheProgram ? recorders.program : recorders.writer));
    std::string said;
    while (const auto more = record.output(1000)) said += *more;  // until the program has ended, too
    const int status = record.wait();
    for (const auto until = Clock::now() + std::chrono::seconds(30); !owner_of(file).empty() && Clock::now() < until;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(status, victim == TheWriter ? 0 : 128 + SIGKILL) << said;
    EXPECT_EQ(why_run_is_damaged(file), "") << victim;
    prof::RunFileReader reader(file);
    const prof::Trace trace = reader.trace();
    EXPECT_GE(static_cast<double>(trace.last_time() - trace.first_time()) * 1e-9, recorded - 0.5 - waited - 4 * pulse.longest_wait()) << victim;
    if (victim == TheRecorder) {
      EXPECT_EQ(reader.summary().status, "finished");
      EXPECT_EQ(reader.summary().steps, kSteps);
    } else {
      EXPECT_EQ(reader.summary().status, "stopped");
    }
    if (victim == TheWriter) {
      EXPECT_NE(said.find("nothing more is recorded"), std::string::npos) << said;
    }
  }
}

TEST_F(Killing, AnExperimentGoesOn) {
  const std::string out = (folder_ / "out").string(), file = (folder_ / "small.json").string();
  std::ofstream(file) << R"({"name": "small", "text": "t", "expect": "e",
    "spec": {"data": {"name": "iris"}, "model": {"hidden": [5]}, "train": {"epochs": 2500, "batch": 16, "eval_every": 0},
             "exec": {"device": "cpu"}},
    "axes": {"exec.allocator": ["direct", "arena"], "exec.fusion": ["off", "pointwise", "epilogue"]}, "repeats": 4})";
  const auto rows = [&] { return rows_of_results(out + "/results.jsonl"); };
  const auto wanted = static_cast<size_t>(kills(0.2));
  size_t before = 0, kills = 0;
  for (size_t i = 0; i < 3 * wanted && kills < wanted; ++i) {
    Program program({"experiment", file, "--out", out});
    ASSERT_TRUE(program.started());
    const auto begun = Clock::now();
    const double until = random(0.02, 0.45);
    while (!program.over() && Seconds(Clock::now() - begun).count() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (program.over()) fs::remove_all(out), before = 0;  // it came to its end: from the beginning
    if (program.over()) continue;
    program.end(SIGKILL);
    ++kills;
    EXPECT_GE(rows(), before) << "a result was lost";
    before = rows();
    if (!fs::exists(out)) continue;  // killed before it made its folder
    for (const auto& entry : fs::directory_iterator(out))
      if (is_run(entry.path())) {
        prof::RunFileReader reader(entry.path().string());
        EXPECT_TRUE(reader.problems().empty()) << entry.path();
      }
  }
  EXPECT_EQ(kills, wanted);
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

// What is there when it was killed, whatever was being done.
class Outputs {
 public:
  explicit Outputs(const fs::path& folder) : folder_(folder) {
    std::ofstream(at("e.json")) << R"({"name": "e", "text": "t", "expect": "e", "repeats": 100,
      "spec": {"data": {"name": "iris"}, "train": {"epochs": 200, "eval_every": 0}, "exec": {"device": "cpu"}},
      "axes": {"exec.fusion": ["off", "pointwise"]}})";
    Program made({"train", "iris", "--set", device(), "--no-output", "--run", at("whole.wsrun"), "--trace", "full"});
    while (!made.over()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fs::copy_file(at("whole.wsrun"), at("copy.wsrun"));
    std::ofstream(at("page.html")) << "earlier</html>";
  }

  // One of the commands; two of a number work on the same output.
  std::vector<std::string> command(int which) const {
    const std::vector<std::string> endless{"--set", device(), "--set", "train.epochs=100000000", "--set",
                                       "train.eval_every=0"};
    std::vector<std::string> words;
    switch (which) {
      case 0: words = {"train", "iris", "--run", at("train.wsrun"), "--no-output", "--trace", "full"}; break;
      case 1: words = {"train", "iris", "--out", at("out")}; break;
      case 2: return {"experiment", at("e.json"), "--out", at("experiment")};
      case 3: return {"lab", "add", "--ways", "cpu", "--sizes", "16,1024,65536", "--seconds", "1", "--run", at("lab.wsrun")};
      case 4: return recording(at("record.wsrun"));
      case 5: return {"convert", at("whole.wsrun"), at("copy.wsrun")};
      default: return {"report", at("whole.wsrun"), "--out", at("page.html")};
    }
    words.insert(words.end(), endless.begin(), endless.end());
    return words;
  }

  void check() {
    for (const char* file : {"train.wsrun", "lab.wsrun", "copy.wsrun"}) {
      EXPECT_EQ(why_run_is_damaged(at(file)), "");
      EXPECT_EQ(seen_.why_lost(at(file)), "");
    }
    for (const char* file : {"out/metrics.csv", "experiment/results.jsonl"}) EXPECT_EQ(seen_.why_lost(at(file)), "");
    EXPECT_EQ(why_run_is_damaged(newest_recording()), "");
    recorded_ = recorded_ || fs::exists(newest_recording());
    EXPECT_EQ(fs::exists(newest_recording()), recorded_) << "a recording was lost";
    EXPECT_EQ(why_table_is_damaged(at("out/metrics.csv")), "");
    const size_t rows = rows_of_results(at("experiment/results.jsonl"));
    EXPECT_GE(rows, rows_) << "a result was lost";
    rows_ = rows;
    if (fs::exists(at("experiment")))
      for (const auto& entry : fs::directory_iterator(at("experiment")))
        if (is_run(entry.path())) {
          EXPECT_EQ(why_run_is_damaged(entry.path()), "");
        }
    EXPECT_NE(text_of(at("page.html")).find("</html>"), std::string::npos) << "half a page";
  }

 private:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  // A recording that was killed before it wrote anything has left the earlier one aside; the next one takes it back.
  std::string newest_recording() const {
    std::error_code none;
    const std::string path = at("record.wsrun");
    return fs::file_size(path, none) > 0 && !none ? path : at(".before-record.wsrun");
  }

  fs::path folder_;
  SeenFiles seen_;
  size_t rows_ = 0;
  bool recorded_ = false;
};

TEST_F(Killing, ARunThatIsGoneIsALoss) {
  SeenFiles seen;
  const std::string file = (folder_ / "a.wsrun").string();
  EXPECT_EQ(seen.why_lost(file), "") << "it was never there";
  std::ofstream(file) << "a run";
  EXPECT_EQ(seen.why_lost(file), "");
  fs::remove(file);
  EXPECT_NE(seen.why_lost(file), "");
}

TEST_F(Killing, NothingIsLostOrMixed) {
  constexpr int kCommands = 7;
  const double latest = device() == "exec.device=cpu" ? 0.7 : 2.5;  // a GPU takes longer to start
  Outputs outputs(folder_);
  for (int done = 0, round = 0; done < kills(0.5) && !HasFailure(); ++round) {
    const int which = round % kCommands, other = (round / kCommands) % 2 ? which : (which + 1) % kCommands;
    std::vector<std::unique_ptr<Program>> programs;
    programs.push_back(std::make_unique<Program>(outputs.command(which)));
    if (round % 3) programs.push_back(std::make_unique<Program>(outputs.command(other)));
    std::this_thread::sleep_for(Seconds(random(0.02, latest)));
    for (const auto& program : programs) {
      done += !program->over();
      random(0, 1) < 0.5 ? program->end(SIGKILL) : program->end_all();
      outputs.check();
    }
  }
}

}  // namespace
}  // namespace ws::app
