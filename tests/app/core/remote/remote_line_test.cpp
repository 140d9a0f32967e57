// The whole line: a server there, a client here, over a pipe and over a real sshd on the loopback that the test starts and
// ends itself. Train, change in mid-run, cut, come back, copy: nothing is lost and the files are the same, byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "app/core/lab/recorded_lab.h"
#include "app/core/remote/fetch_file.h"
#include "app/core/remote/frame.h"
#include "app/core/remote/job_sender.h"
#include "app/core/remote/pipe_process.h"
#include "app/core/remote/remote_run.h"
#include "app/core/remote/serve.h"
#include "app/core/remote/server_copy.h"
#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/base/whole_file.h"
#include "profiling/recording/process_files.h"
#include "profiling/run_file/run_file.h"
#include "tests/support/failure_text.h"
#include "tests/support/kill_process.h"
#include "tests/support/machine.h"
#include "tests/support/network.h"
#include "tests/support/own_sshd.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using test::bytes_of;
using test::OwnSshd;
using test::quiet_output;

int cuts(bool ssh) {
  const char* wanted = std::getenv("WARPSIGHT_CUTS");
  return wanted ? std::max(1, std::atoi(wanted)) : ssh ? 4 : 10;  // a connection over ssh takes half a second
}

// One for all tests; nullptr where there is none to start.
class SharedSshd : public testing::Environment {
 public:
  void TearDown() override {
    if (!sshd_) return;
    sshd_.reset();
    fs::remove_all(folder_);
  }
  static OwnSshd* get() {
    if (!sshd_ && OwnSshd::there()) {
      sshd_ = std::make_unique<OwnSshd>(folder_);
      if (!sshd_->answers()) ADD_FAILURE() << "sshd does not answer";
    }
    return sshd_.get();
  }

 private:
  static inline const fs::path folder_ = fs::temp_directory_path() / ("warpsight-sshd-" + std::to_string(getpid()));
  static inline std::unique_ptr<OwnSshd> sshd_;
};
const auto* const shared_sshd = testing::AddGlobalTestEnvironment(new SharedSshd);

class LineTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fs::create_directories(there());
    if (GetParam() == "pipe") return;
    sshd_ = SharedSshd::get();
    if (!sshd_) GTEST_SKIP() << "There is no sshd here: the same runs over a pipe.";
    sshd_->write_config("user", "known");
    sshd_->set_home("", "");
    path_ = std::getenv("PATH");
    setenv("PATH", (sshd_->bin() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    end_jobs();
    if (!path_.empty()) setenv("PATH", path_.c_str(), 1);
    std::error_code busy;  // a program that outlives its test may still close its file
    fs::remove_all(folder_, busy);
  }
  std::string there() const { return (folder_ / "there").string(); }
  RemoteAddress address() const {
    RemoteAddress a = parse_remote(GetParam() == "pipe" ? "pipe:exec " WARPSIGHT_CLI " serve --folder " + there()
                                                        : "ssh://there" + there());
    a.program = WARPSIGHT_CLI;
    return a;
  }
  pid_t owner_of_job(const fs::path& job) const {
    std::ifstream owner(job / ".owner");
    std::string line;
    for (int i = 0; i < 3; ++i) std::getline(owner, line);  // "1234 warpsight"
    return std::atoi(line.c_str());
  }
  // What a test that fails leaves running there.
  void end_jobs() const {
    std::error_code none;
    for (const auto& job : fs::directory_iterator(there() + "/.jobs", none))
      if (const pid_t owner = owner_of_job(job.path()); owner > 1) test::kill_process(owner);
  }
  // About 10,000 steps per second, each with a loss and some spans.
  static json training(const char* trace, int epochs = 100'000'000) {
    RunSpec spec = load_spec("iris");
    for (const auto& [key, value] : {std::pair{"exec.device", "cpu"}, {"train.batch", "0"}, {"model.hidden", "64"}, {"train.eval_every", "0"}})
      set_field(spec, key, value);
    set_field(spec, "train.epochs", std::to_string(epochs));
    return {{"kind", "train"}, {"spec", to_json(spec)}, {"trace", trace}, {"title", "a test"}};
  }

  fs::path folder_ = fs::temp_directory_path() / ("warpsight-line-" + std::to_string(getpid()));
  OwnSshd* sshd_ = nullptr;
  std::string path_;
};

// What a person sees of a run there, and whether it is whole.
struct Seen {
  int64_t steps = 0;
  size_t spans = 0, holes = 0;
  std::vector<Change> changes;
  std::vector<std::string> messages;
  std::optional<Progress> progress;
  std::optional<Summary> summary;
  std::vector<std::string> files;
  std::optional<int> exit_status;

  void take(RemoteRun& run) {
    const RemoteUpdate news = run.take();
    for (const StepResult& step : news.run.steps) holes += step.step != steps, steps = step.step + 1;
    for (const prof::TraceBatch& batch : news.run.traces) spans += batch.span_count();
    changes.insert(changes.end(), news.run.changes.begin(), news.run.changes.end());
    for (const RunMessage& message : news.run.messages) messages.push_back(message.text);
    if (news.run.progress) progress = news.run.progress;
    if (news.run.summary) summary = news.run.summary;
    if (!news.files.empty()) files = news.files;
    if (news.exit_status) exit_status = news.exit_status;
  }
  template <class Until>
  bool until(RemoteRun& run, const Until& reached, double most_s = 120) {
    for (const auto end = Clock::now() + std::chrono::duration<double>(most_s); Clock::now() < end;) {
      take(run);
      if (reached()) return true;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return false;
  }
  bool to_the_end(RemoteRun& run) {
    const bool over = until(run, [&] { return run.over(); });
    take(run);
    return over;
  }
};

// Nobody waits for the writer of a program whose recorder is gone.
size_t losses_in(const std::string& path, size_t expected) {
  size_t losses = 0;
  for (const auto end = Clock::now() + std::chrono::seconds(20); losses < expected && Clock::now() < end;) {
    if (prof::holds_something(path)) losses = prof::RunFileReader(path).metrics().size();
    std::this_thread::sleep_for(milliseconds(2));
  }
  return losses;
}

// False: there is none to cut just now.
bool cut(const RemoteLink& link) {
  const pid_t line = link.status().process;
  return test::kill_process(line);
}

// The servers of that folder: over ssh they are other processes than the line.
std::vector<pid_t> servers_of(const std::string& folder) {
  std::vector<pid_t> servers;
  std::error_code none;
  for (const auto& process : fs::directory_iterator("/proc", none)) {
    const pid_t number = std::atoi(process.path().filename().c_str());
    const std::string command = number > 0 ? bytes_of((process.path() / "cmdline").string()) : "";
    if (command == std::string(WARPSIGHT_CLI) + '\0' + "serve" + '\0' + "--folder" + '\0' + folder + '\0') servers.push_back(number);
  }
  return servers;
}

bool kill_servers(const std::string& folder) {
  return std::ranges::count_if(servers_of(folder), [](pid_t server) { return test::kill_process(server); }) > 0;
}

size_t spans_in(const std::string& path) {
  prof::RunFileReader reader(path);
  EXPECT_TRUE(reader.problems().empty());
  return reader.trace().span_count();
}

TEST_P(LineTest, ATrainingThereIsSeenWholeAndItsFileIsTheSame) {
  RemoteLink link(address());
  RemoteRun::start(link, "a", training("full", 3000));
  RemoteRun::start(link, "a", training("full", 1));  // asked twice, as after a cut: it is there
  RemoteRun run(link, "a", true);
  Seen seen;
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_EQ(seen.steps, 3000);
  EXPECT_EQ(seen.holes, 0u);
  ASSERT_TRUE(seen.summary);
  EXPECT_EQ(seen.summary->steps, 3000);
  EXPECT_THAT(seen.files, testing::ElementsAre("a.wsrun"));
  const std::string here = (folder_ / "here.wsrun").string();
  fetch_file(link, {{"file", "a.wsrun"}}, here);
  EXPECT_EQ(bytes_of(here), bytes_of(there() + "/a.wsrun"));
  if (run.left_out() == 0) {
    EXPECT_EQ(seen.spans, spans_in(here));
  }
  EXPECT_EQ(prof::RunFileReader(here).metrics().size(), 3000u);
}

TEST_P(LineTest, ItIsSteeredFromHere) {
  RemoteLink link(address());
  json job = training("steps");
  job["paused"] = true;
  RemoteRun::start(link, "a", job);
  RemoteRun run(link, "a", false);
  Seen seen;
  ASSERT_TRUE(seen.until(run, [&] { return seen.progress && seen.progress->paused; }));
  EXPECT_EQ(seen.steps, 0);
  run.step_once();
  ASSERT_TRUE(seen.until(run, [&] { return seen.steps == 1; }));
  run.change("exec.fusion", "off");
  run.change("model.hidden", "9");  // cannot change in mid-run
  run.resume();
  ASSERT_TRUE(seen.until(run, [&] { return seen.steps > 100 && !seen.changes.empty(); }));
  EXPECT_EQ(seen.changes[0].key, "exec.fusion");
  EXPECT_THAT(seen.messages, testing::Contains(HasSubstr("model.hidden")));
  run.stop();
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_EQ(seen.summary->status, RunStatus::Stopped);
  run.pause();
  EXPECT_TRUE(seen.until(run, [&] { return !seen.messages.empty() && seen.messages.back() == "a has ended."; }));
}

// The line, or the server at its other end, is killed at random moments while it trains and while its file is copied.
TEST_P(LineTest, ACutLosesNothing) {
  RemoteLink link(address());
  RemoteRun::start(link, "a", training("steps"));
  RemoteRun run(link, "a", true);
  Seen seen;
  std::mt19937 random(20261123);
  ASSERT_TRUE(seen.until(run, [&] { return seen.steps > 0; }));
  const int all = cuts(sshd_ != nullptr);
  for (int i = 0; i < all; ++i) {
    const int up = link.status().times_up;
    const auto moment = Clock::now() + milliseconds(std::uniform_int_distribution(0, 150)(random));
    seen.until(run, [&] { return Clock::now() >= moment; });
    if (i % 3 == 0) {
      // On a busy machine two requests may come before the same step, which then changes once.
      ASSERT_TRUE(seen.until(run, [&] { return seen.changes.size() == static_cast<size_t>(i / 3); }));
      run.change("train.lr", i % 2 ? "0.01" : "0.02");  // on its way when the line goes
    }
    ASSERT_TRUE(i % 2 == 0 ? cut(link) : kill_servers(there()));
    ASSERT_TRUE(seen.until(run, [&] { return link.status().times_up > up && link.status().state == LineState::Up; }));
  }
  const int64_t before = seen.steps;
  ASSERT_TRUE(seen.until(run, [&] { return seen.steps > before + 100; })) << "it goes on";
  run.stop();
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_EQ(seen.holes, 0u);
  ASSERT_TRUE(seen.summary);
  EXPECT_EQ(seen.steps, seen.summary->steps);
  EXPECT_EQ(seen.changes.size(), static_cast<size_t>((all + 2) / 3)) << "each request is taken, and once";
  const std::string here = (folder_ / "here.wsrun").string();
  int left = 5;
  fetch_file(link, {{"file", "a.wsrun"}}, here, [&](uint64_t bytes) {
    if (bytes > 0 && left > 0) left -= cut(link);
    return true;
  });
  EXPECT_EQ(bytes_of(here), bytes_of(there() + "/a.wsrun"));
  EXPECT_EQ(prof::RunFileReader(here).metrics().size(), static_cast<size_t>(seen.steps));
  if (run.left_out() == 0) {
    EXPECT_EQ(seen.spans, spans_in(here));
  }
}

// The request to start is sent again after the cut: the job runs once, and all of it is seen.
TEST_P(LineTest, ACutWhileItStartsLosesNothing) {
  RemoteLink link(address());
  link.ask({{"do", "hello"}});
  std::mt19937 random(20261124);
  const int all = cuts(sshd_ != nullptr);
  for (int i = 0; i < all; ++i) {
    const std::string name = "a" + std::to_string(i);
    RemoteRun run(link, name, false, training("steps", 100));
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, 40'000)(random)));
    cut(link);
    Seen seen;
    ASSERT_TRUE(seen.to_the_end(run));
    EXPECT_EQ(run.refused(), "");
    ASSERT_TRUE(seen.summary) << name;
    EXPECT_EQ(seen.steps, 100);
    EXPECT_EQ(seen.holes, 0u);
  }
  EXPECT_EQ(link.ask({{"do", "list"}})["runs"].size(), static_cast<size_t>(all));
}

// A server that was killed while it started a job left only the job's description.
TEST_P(LineTest, AHalfStartedJobIsStarted) {
  const json job = training("steps", 100);
  fs::create_directories(there() + "/.jobs/a");
  std::ofstream(there() + "/.jobs/a/job.json") << job.dump();
  RemoteLink link(address());
  RemoteRun run(link, "a", false, job);
  Seen seen;
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_EQ(run.refused(), "");
  EXPECT_EQ(seen.steps, 100);
}

TEST_P(LineTest, ItRunsOnWhenNobodyIsThereAndSeveralMayWatch) {
  {
    RemoteLink link(address());
    RemoteRun::start(link, "a", training("off"));
  }
  std::this_thread::sleep_for(milliseconds(300));
  RemoteLink first(address()), second(address());
  RemoteRun a(first, "a", false), b(second, "a", false);
  Seen by_a, by_b;
  ASSERT_TRUE(by_a.until(a, [&] { return by_a.steps > 100; }));
  ASSERT_TRUE(by_b.until(b, [&] { return by_b.steps > 100; }));
  b.stop();
  ASSERT_TRUE(by_a.to_the_end(a));
  ASSERT_TRUE(by_b.to_the_end(b));
  EXPECT_EQ(by_a.steps, by_b.steps);
  EXPECT_EQ(by_a.holes + by_b.holes, 0u);
  const json rows = first.ask({{"do", "list"}})["runs"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["file"], "a.wsrun");
  EXPECT_EQ(rows[0]["status"], "stopped");
}

// A program that a person starts in a shell, after eval "$(warpsight record --environment)".
class StartedBySomebody {  // with interrupts, which scripts turn off for what they start in the background
 public:
  StartedBySomebody(const std::string& runs, const std::string& arguments)
      : program_({"env", "--default-signal=INT", "sh", "-c",
                  "eval \"$(" WARPSIGHT_CLI " record --environment --library -)\"; exec " RECORDED_PROGRAM " " + arguments},
                 Process::Output::Ours, {{"WARPSIGHT_RUNS", runs}}) {}
  ~StartedBySomebody() { program_.signal(SIGKILL); }
  std::optional<int> wait(int most_ms) { return program_.wait(most_ms); }
  void signal(int number) { program_.signal(number); }

 private:
  Process program_;
};

std::vector<std::string> jobs_there(RemoteLink& link, size_t wanted) {
  std::vector<std::string> names;
  for (int i = 0; i < 3000 && names.size() < wanted; ++i, usleep(20'000)) {
    names.clear();
    const json jobs = link.ask({{"do", "jobs"}})["jobs"];
    for (const json& job : jobs) names.push_back(job["run"]);
  }
  return names;
}

// Two such programs: windows come to one, the line is cut, they leave again. Nothing happens to the programs.
TEST_P(LineTest, AProgramOfAnyShellIsAttachedToAndLeft) {
  StartedBySomebody program(there(), "1500 losses 5"), other(there(), "1500 losses 5");
  RemoteLink first(address()), second(address());
  const std::vector<std::string> names = jobs_there(first, 2);
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) EXPECT_THAT(name, HasSubstr("-program_to_record-"));
  Seen by_first, by_second;
  RemoteRun run(first, names[0], true);
  {
    RemoteRun again(second, names[0], false);
    ASSERT_TRUE(by_second.until(again, [&] { return by_second.steps > 100; }));
  }
  ASSERT_TRUE(by_first.until(run, [&] { return by_first.steps > 100 && cut(first); }));
  ASSERT_TRUE(by_first.to_the_end(run));
  EXPECT_EQ(program.wait(20'000), 5);
  EXPECT_EQ(other.wait(20'000), 5);
  EXPECT_EQ(by_first.exit_status, 5);
  EXPECT_GT(by_first.steps, 1490) << "the last ones may come with the file only";
  EXPECT_EQ(by_first.holes + by_second.holes, 0u);
  EXPECT_GT(by_first.spans, 1000u);
  ASSERT_THAT(by_first.files, testing::ElementsAre(names[0] + ".wsrun"));
  const std::string here = (folder_ / "here.wsrun").string();
  fetch_file(first, {{"file", by_first.files[0]}}, here);
  EXPECT_EQ(bytes_of(here), bytes_of(there() + "/" + by_first.files[0]));
  EXPECT_EQ(prof::RunFileReader(here).metrics().size(), 1500u);
}

// What follows it is killed: the program goes on, and its file is whole. A stop there is an interrupt, as of Ctrl+C.
TEST_P(LineTest, AProgramOfAnyShellOutlivesWhatFollowsIt) {
  StartedBySomebody program(there(), "500 losses"), stopped(there(), "100000");
  RemoteLink link(address());
  const std::vector<std::string> names = jobs_there(link, 2);
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) {
    if (link.ask({{"do", "job"}, {"run", name}})["command"].size() == 3) {
      ASSERT_GT(losses_in(there() + "/" + name + ".wsrun", 1), 0u) << "nobody follows it yet";
      ASSERT_TRUE(test::kill_process(owner_of_job(there() + "/.jobs/" + name)));
      EXPECT_EQ(program.wait(20'000), 0);
      EXPECT_EQ(losses_in(there() + "/" + name + ".wsrun", 500), 500u);
    } else {
      RemoteRun run(link, name, true);
      Seen seen;
      ASSERT_TRUE(seen.until(run, [&] { return seen.spans > 0; })) << "an interrupt before leaves no file";
      run.stop();
      ASSERT_TRUE(seen.to_the_end(run));
      EXPECT_EQ(stopped.wait(20'000), 128 + SIGINT);
      EXPECT_THAT(seen.files, testing::ElementsAre(name + ".wsrun"));
    }
  }
}

// A job that is killed there says nothing more; what it wrote is one file that opens.
TEST_P(LineTest, AKilledJobLeavesItsRun) {
  RemoteLink link(address());
  RemoteRun::start(link, "a", training("steps"));
  RemoteRun run(link, "a", false);
  Seen seen;
  ASSERT_TRUE(seen.until(run, [&] { return seen.steps > 2000; }));
  ASSERT_TRUE(test::kill_process(owner_of_job(there() + "/.jobs/a")));
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_FALSE(seen.summary);
  const std::string here = (folder_ / "here.wsrun").string();
  fetch_file(link, {{"file", "a.wsrun"}}, here);
  EXPECT_EQ(bytes_of(here), bytes_of(there() + "/a.wsrun"));
  EXPECT_FALSE(prof::RunFileReader(here).metrics().empty());
}

// Names are data: nothing outside the folder is read or written, on either side.
TEST_P(LineTest, NamesLeadNowhere) {
  RemoteLink link(address());
  std::ofstream(folder_ / "secret.wsrun") << "secret";
  for (const char* name : {"../secret.wsrun", "/etc/passwd", ".jobs/../../secret.wsrun", ".."}) {
    EXPECT_THROW(fetch_file(link, {{"file", name}}, (folder_ / "got").string()), Failure) << name;
    EXPECT_THROW(link.ask({{"do", "output"}, {"command", "stats"}, {"file", name}}), Failure) << name;
    EXPECT_THROW(RemoteRun::start(link, name, training("off", 1)), Failure) << name;
  }
  EXPECT_THROW(link.ask({{"do", "output"}, {"command", "train"}, {"file", "a"}}), Failure);
  EXPECT_FALSE(fs::exists(folder_ / "got"));
  EXPECT_FALSE(fs::exists(folder_ / "secret"));
}

INSTANTIATE_TEST_SUITE_P(Over, LineTest, testing::Values("pipe", "ssh"), [](const auto& which) { return which.param; });

// One clear sentence for each of what people meet.
// Waits for a job that is no training; returns what it reports.
std::vector<json> results_of(RemoteRun& run, std::optional<int>& exit_status) {
  std::vector<json> results;
  for (int i = 0; i < 6000; ++i, usleep(20'000)) {
    const bool over = run.over();
    const RemoteUpdate update = run.take();
    for (const std::string& text : update.results) results.push_back(json::parse(text));
    if (update.exit_status) exit_status = update.exit_status;
    if (over) break;
  }
  return results;
}

TEST_P(LineTest, ASweepReportsItsPointsAndLeavesItsFile) {
  RemoteLink link(address());
  const json spec{{"operation", "add"}, {"sizes", {1024, 4096}}, {"ways", {"cpu"}}, {"repeats", 3}};
  RemoteRun::start(link, "sweep", {{"kind", "lab"}, {"lab", spec}});
  RemoteRun run(link, "sweep", false);
  std::optional<int> exit_status;
  const std::vector<json> results = results_of(run, exit_status);
  EXPECT_EQ(exit_status, 0);
  EXPECT_EQ(std::ranges::count_if(results, [](const json& t) { return t.contains("lab"); }), 2);
  ASSERT_TRUE(results.back().contains("whole"));
  EXPECT_EQ(lab::lab_result_from_json(results.back()["whole"]).points.size(), 2u);
  const std::string here = (folder_ / "here.wsrun").string();
  fetch_file(link, {{"file", "sweep.wsrun"}}, here);
  EXPECT_EQ(read_lab(here)->points.size(), 2u);
}

TEST_P(LineTest, AnExperimentGoesOnFromKnownRows) {
  RemoteLink link(address());
  RunSpec spec = load_spec("iris");
  set_field(spec, "exec.device", "cpu");
  set_field(spec, "train.epochs", "5");
  json experiment{
      {"name", "small"}, {"spec", to_json(spec)}, {"axes", {{"exec.fusion", {"off", "epilogue"}}}}, {"repeats", 1}};
  std::vector<std::string> rows;
  for (const char* name : {"first", "second"}) {
    RemoteRun::start(link, name, {{"kind", "experiment"}, {"experiment", experiment}, {"rows", rows}});
    RemoteRun run(link, name, false);
    std::optional<int> exit_status;
    rows.clear();
    for (const json& result : results_of(run, exit_status)) rows.push_back(result["row"]);
    EXPECT_EQ(exit_status, 0);
    if (name == std::string("first")) {
      EXPECT_EQ(rows.size(), 2u);
      experiment["repeats"] = 2;
    }
  }
  EXPECT_EQ(rows.size(), 4u) << "two were known, two are new";
}

TEST_P(LineTest, APytorchThatIsMissingIsSaid) {
  RemoteLink link(address());
  RemoteRun::start(link, "torch",
                   {{"kind", "torch"}, {"spec", to_json(load_spec("iris"))}, {"python", "/no/such/python3"}});
  RemoteRun run(link, "torch", false);
  Seen seen;
  for (int i = 0; i < 6000 && !run.over(); ++i, usleep(10'000)) seen.take(run);
  seen.take(run);
  ASSERT_FALSE(seen.messages.empty());
  EXPECT_THAT(seen.messages.back(), HasSubstr("/no/such/python3"));
}

class SentenceTest : public LineTest {
 protected:
  std::string why(RemoteAddress a, milliseconds patience = std::chrono::seconds(60)) {
    RemoteLink link(std::move(a), patience);
    return test::failure_text([&] { link.ask({{"do", "hello"}}, 60); });
  }
  std::string refusal_of_copy(const RemoteAddress& a) {
    return test::failure_text([&] { const ServerCopy copy(a, WARPSIGHT_CLI); });
  }
  std::string why(const std::string& text) {
    RemoteAddress a = parse_remote(text);
    if (a.pipe.empty()) a.program = WARPSIGHT_CLI;
    return why(a);
  }
};

TEST_P(SentenceTest, OfALineThatDoesNotComeAbout) {
  if (GetParam() == "pipe") {
    EXPECT_THAT(why("pipe:exec /nowhere/warpsight serve"), HasSubstr("there is no program"));
    EXPECT_THAT(why("pipe:echo warpsight-serve 99 9.9.9; cat"), HasSubstr("version 9.9.9 there"));
    EXPECT_THAT(why("pipe:echo Welcome; echo Your password:"), HasSubstr("the answer does not come from Warpsight"));
    EXPECT_THAT(why("pipe:yes noise"), HasSubstr("the answer does not come from Warpsight"));
    EXPECT_THAT(why("pipe:exit 3"), HasSubstr("without a message"));
    EXPECT_THAT(why("pipe:echo 'cat: motd: Permission denied' >&2; exit 3"), HasSubstr("the connection ended: cat: motd: Permission denied"));
    EXPECT_THAT(why(parse_remote("pipe:sleep 20"), milliseconds(200)), HasSubstr("nothing answers there"));
    EXPECT_EQ(why("pipe:echo Welcome to gpu7!; printf 'no end of line'; exec " WARPSIGHT_CLI " serve --folder " + there()), "");
    return;
  }
  EXPECT_THAT(why("ssh://no-such-machine.invalid"), HasSubstr("no machine of that name"));
  RemoteAddress missing = address();
  missing.program = "/nowhere/warpsight";
  EXPECT_THAT(why(missing), HasSubstr("there is no program /nowhere/warpsight"));
  EXPECT_EQ(why("ssh://there"), "") << "with a banner, which sshd shows first";
  EXPECT_EQ(why("ssh://jumped"), "") << "over another machine";
  EXPECT_THAT(why("ssh://lost"), HasSubstr("the jump host (ProxyJump) cannot reach it: ssh: connect to host 127.0.0.1 port 1: Connection refused"));
  EXPECT_THAT(why("ssh://behind"), testing::AllOf(HasSubstr("the jump host (ProxyJump) cannot reach it"), HasSubstr("Connection refused")));
  sshd_->write_config("stranger", "known");
  EXPECT_THAT(why("ssh://there"), HasSubstr("accepts neither your key nor your password"));
  sshd_->write_config("user", "known_wrong");
  EXPECT_THAT(why("ssh://there"), HasSubstr("its key is not the one that ssh remembers"));
  sshd_->write_config("user", "unwritten");
  EXPECT_THAT(why("ssh://there"), HasSubstr("ssh does not know the key"));
}

// After a cut as well: each attempt would ask the person again, or be one of too many.
TEST_P(SentenceTest, ARefusedLoginIsNotTriedAgain) {
  if (GetParam() == "pipe") GTEST_SKIP() << "goes over ssh only";
  RemoteLink link(address());
  link.ask({{"do", "hello"}}, 60);
  sshd_->write_config("stranger", "known");
  ASSERT_TRUE(cut(link));
  for (int i = 0; i < 6000 && link.status().state != LineState::Refused; ++i) usleep(10'000);
  EXPECT_EQ(link.status().state, LineState::Refused);
  EXPECT_THAT(link.status().sentence, HasSubstr("accepts neither your key nor your password"));
}

// Stands in for the window's dialog. ssh starts it with a question.
class AskProgram {
 public:
  explicit AskProgram(const fs::path& folder) : program_(folder / "ask"), asked_(folder / "asked") {
    setenv("SSH_ASKPASS", program_.c_str(), 1);
    setenv("SSH_ASKPASS_REQUIRE", "prefer", 1);  // as the window does
    setenv("DISPLAY", ":0", 0);
  }
  ~AskProgram() { unsetenv("SSH_ASKPASS"); unsetenv("SSH_ASKPASS_REQUIRE"); }
  AskProgram(const AskProgram&) = delete;
  AskProgram& operator=(const AskProgram&) = delete;
  void does(const std::string& what) const {
    fs::remove(asked_);
    std::ofstream(program_) << "#!/bin/sh\necho \"$1\" >>" + asked_.string() + "\n" + what + "\n";
    fs::permissions(program_, fs::perms::owner_all);
  }
  std::string asked() const { return bytes_of(asked_.string()); }

 private:
  fs::path program_, asked_;
};

// ssh asks for the password of a key in its own way: by a program, which is the window's dialog.
TEST_P(SentenceTest, OfAKeyWithAPassword) {
  if (GetParam() == "pipe") GTEST_SKIP() << "goes over ssh only";
  sshd_->write_config("locked", "known");
  const AskProgram dialog(folder_);
  dialog.does("echo a secret");
  EXPECT_EQ(why("ssh://there"), "");
  EXPECT_THAT(dialog.asked(), HasSubstr("Enter passphrase for key"));
  for (const char* answer : {"echo wrong", "exit 1"}) {  // the second closes the dialog
    dialog.does(answer);
    EXPECT_THAT(why("ssh://there"), HasSubstr("accepts neither your key nor your password"));
  }
}

// The password of a real account, asked by a real sshd with PAM.
TEST_P(SentenceTest, OfAnAccountWithAPassword) {
  if (GetParam() == "pipe") GTEST_SKIP() << "goes over ssh only";
  const auto place = test::place_with_password(folder_, "a secret");
  if (!place) GTEST_SKIP() << "A password for this test alone needs root, openssl and PAM.";
  const OwnSshd sshd(folder_ / "sshd", *place);
  setenv("PATH", (sshd.bin() + ":" + path_).c_str(), 1);
  ASSERT_TRUE(sshd.answers());
  sshd.write_config("stranger", "known", "BatchMode no\nNumberOfPasswordPrompts 1\n");
  const AskProgram dialog(folder_);
  dialog.does("echo a secret");
  EXPECT_EQ(why("ssh://there"), "");
  EXPECT_THAT(dialog.asked(), HasSubstr("'s password: "));
  for (const char* answer : {"echo wrong", "exit 1"}) {
    dialog.does(answer);
    EXPECT_THAT(why("ssh://there"), HasSubstr("accepts neither your key nor your password"));
  }
}

// A machine that ssh has never seen: the same dialog asks whether to trust it.
TEST_P(SentenceTest, OfAMachineSeenForTheFirstTime) {
  if (GetParam() == "pipe") GTEST_SKIP() << "goes over ssh only";
  const std::string known = (folder_ / "known").string();
  sshd_->write_config("user", "known", "BatchMode no\nStrictHostKeyChecking ask\nUserKnownHostsFile " + known + "\n");
  const AskProgram dialog(folder_);
  dialog.does("echo no");
  EXPECT_THAT(why("ssh://there"), HasSubstr("ssh does not know the key"));
  EXPECT_THAT(dialog.asked(), HasSubstr("(yes/no"));
  dialog.does("echo yes");
  EXPECT_EQ(why("ssh://there"), "");
  EXPECT_THAT(bytes_of(known), HasSubstr("ssh-ed25519"));
  dialog.does("echo no");
  EXPECT_EQ(why("ssh://there"), "");
  EXPECT_EQ(dialog.asked(), "") << "once trusted, it is not asked again";
}

// The program, the libraries that are missing there and the data sets, into a home of its own there, checked by hash.
TEST_P(SentenceTest, ACopyOfTheProgramServesThere) {
  if (GetParam() == "pipe") GTEST_SKIP() << "goes over ssh only";
  const fs::path home = folder_ / "home";
  fs::create_directories(home);
  sshd_->set_home(home.string(), "");
  RemoteAddress there_now = parse_remote("ssh://there" + there());
  EXPECT_THAT(why(there_now), HasSubstr("Copy it there: warpsight install --on ssh://there"));
  {
    RemoteLink link(there_now);
    EXPECT_THROW(link.ask({{"do", "hello"}}, 20), Failure);
    EXPECT_TRUE(link.status().copy_helps);
  }
  const ServerCopy copy(there_now, WARPSIGHT_CLI);
  EXPECT_GT(copy.bytes(), 1u << 20);
  EXPECT_THAT(copy.question(), HasSubstr(copy_folder()));
  copy.copy();
  copy.copy();  // once more, over it
  RemoteLink link(there_now);
  EXPECT_EQ(link.ask({{"do", "hello"}}, 20)["folder"], there());
  RemoteRun::start(link, "a", training("steps", 30));
  RemoteRun run(link, "a", false);
  Seen seen;
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_EQ(seen.steps, 30);
  std::ifstream program(home / copy_folder() / "program/warpsight");
  EXPECT_TRUE(program.good());
  sshd_->set_program(home.string(), "uname", "[ $1 = -s ] && echo Linux || echo aarch64");
  EXPECT_THAT(refusal_of_copy(there_now), HasSubstr("it is Linux aarch64, this program is for Linux"));
  sshd_->set_program(home.string(), "df", "echo a b c 5");
  EXPECT_THAT(refusal_of_copy(there_now), HasSubstr("the disk there is too full"));
  sshd_->set_program(home.string(), "sha256sum", "exit 1");
  EXPECT_THROW(copy.copy(), Failure) << "a file that arrived damaged takes no place";
  EXPECT_TRUE(fs::exists(home / copy_folder() / "bin/warpsight")) << "what was there stays";
}

// A program of another architecture, a library that is missing, a banner and a noisy profile.
TEST_P(SentenceTest, OfAProgramThatCannotRun) {
  const std::string foreign = (folder_ / "foreign").string();
  std::ofstream(foreign) << "\177ELF\002\001\001 of no machine that we know";
  fs::permissions(foreign, fs::perms::owner_all);
  if (GetParam() != "pipe") {
    RemoteAddress there_now = address();
    there_now.program = foreign;
    EXPECT_THAT(why(there_now), HasSubstr("It may be of another architecture"));
    sshd_->set_home((folder_ / "home").string(), "echo Welcome to this machine; echo 'no mail' >&2; ");
    EXPECT_EQ(why("ssh://there" + there()), "");
    sshd_->set_home("", "");
    return;
  }
  for (const char* shell : {"bash", "sh"})
    EXPECT_THAT(why("pipe:exec " + std::string(shell) + " -c '" + foreign + " serve'"), HasSubstr("It may be of another architecture"));
  fs::permissions(foreign, fs::perms::owner_read);
  EXPECT_THAT(why("pipe:exec " + foreign + " serve"), HasSubstr("Make the file executable"));
  EXPECT_THAT(why("pipe:echo 'x: error while loading shared libraries: libz.so.9: cannot open' >&2; exit 127"), HasSubstr("because a library is missing"));
  EXPECT_THAT(why("pipe:echo 'channel 0: open failed: connect failed' >&2; echo 'stdio forwarding failed' >&2; exit 255"), HasSubstr("ProxyJump"));
}

class PipeTest : public SentenceTest {};

TEST_P(PipeTest, ReportsThatNothingCanBeWrittenThere) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "Its runtime cannot start without files.";
  RemoteLink link(parse_remote("pipe:ulimit -f 0; exec " WARPSIGHT_CLI " serve --folder " + there()));
  try {
    RemoteRun::start(link, "a", training("off", 1));
    ADD_FAILURE() << "the disk there is too full";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("File too large"));
  }
}

TEST_P(PipeTest, ReportsThatThereIsNoGpu) {
  RemoteLink link(parse_remote("pipe:CUDA_VISIBLE_DEVICES= exec " WARPSIGHT_CLI " serve --folder " + there()));
  EXPECT_TRUE(link.ask({{"do", "hello"}})["machine"]["gpu"].is_null());
  json job = training("off", 1);
  job["spec"]["exec"]["device"] = "cuda";
  RemoteRun::start(link, "b", job);
  RemoteRun run(link, "b", false);
  Seen seen;
  ASSERT_TRUE(seen.to_the_end(run));
  ASSERT_TRUE(seen.summary);
  EXPECT_EQ(seen.summary->message, "cuda: no NVIDIA GPU can be used here.");
}

// A disk that fills while it trains: said at once, the training goes on, and its end arrives.
TEST_P(PipeTest, ReportsThatTheDiskThereIsFull) {
  const std::string disk = "mount -t tmpfs -o size=1500k none " + there();
  if (Process({"unshare", "-m", "sh", "-c", disk}, Process::Output::CapturedWithErrors).wait() != 0)
    GTEST_SKIP() << "A small disk needs root.";
  RemoteLink link(parse_remote("pipe:exec unshare -m sh -c '" + disk + "; exec " WARPSIGHT_CLI " serve --folder " + there() + "'"));
  json job = training("full");
  job["spec"]["train"]["time_limit_s"] = 30;
  RemoteRun::start(link, "a", job);
  RemoteRun run(link, "a", true);
  Seen seen;
  ASSERT_TRUE(seen.until(run, [&] { return seen.messages.size() > 1; }));
  EXPECT_THAT(seen.messages.back(), testing::AllOf(HasSubstr("its run file is no longer written"), HasSubstr("a.wsrun: "), HasSubstr("full")));
  run.stop();
  ASSERT_TRUE(seen.to_the_end(run));
  ASSERT_TRUE(seen.summary);
  EXPECT_EQ(seen.summary->status, RunStatus::Failed) << "its checkpoint could not be kept";
  EXPECT_THAT(seen.summary->message, HasSubstr("No space left"));
}

TEST_P(PipeTest, ReportsThatItRunsNoSuchJob) {
  RemoteLink link(address());
  RemoteRun::start(link, "a", {{"kind", "dream"}});
  RemoteRun run(link, "a", false);
  Seen seen;
  ASSERT_TRUE(seen.to_the_end(run));
  ASSERT_FALSE(seen.messages.empty());
  EXPECT_EQ(seen.messages.back(), "This version cannot run a job of kind \"dream\". Install the same version on both "
                                  "machines.");
}

// The losses that a recorded program logs are as live as its spans.
TEST_P(PipeTest, LossesOfARecordedProgramAreSeen) {
  RemoteLink link(address());
  RemoteRun::start(link, "a", {{"kind", "record"}, {"command", {RECORDED_PROGRAM, "100", "losses"}}, {"library", "-"}});
  RemoteRun run(link, "a", true);
  Seen seen;
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_GT(seen.steps, 30) << "the last ones may come with the file only, on a busy machine more of them";
  EXPECT_EQ(seen.holes, 0u);
  EXPECT_THAT(seen.files, testing::ElementsAre("a.wsrun"));
}

// Nobody asks any more, and nobody closes the line: the network is gone.
TEST_P(PipeTest, AServerThatReceivesNothingEnds) {
  int to[2], from[2];
  ASSERT_EQ(pipe(to) + pipe(from), 0);
  const auto begin = Clock::now();
  serve(to[0], from[1], there(), milliseconds(300));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
}

// A raw line to a server: requests as they come, and what is answered.
class RawLine {
 public:
  explicit RawLine(const RemoteAddress& address) : server_(address.command()) {}
  pid_t server() const { return server_.id(); }
  // Returns false if the server takes no more for a while.
  bool send(const json& request) {
    const std::string bytes = frame_of(static_cast<uint8_t>(LineKind::Request), request.dump());
    size_t at = 0;
    for (auto until = Clock::now() + milliseconds(1500); at < bytes.size() && Clock::now() < until;) {
      const size_t went = server_.write(std::string_view(bytes).substr(at));
      at += went;
      if (went > 0) until = Clock::now() + milliseconds(1500);
      else std::this_thread::sleep_for(milliseconds(1));
    }
    return at == bytes.size();
  }
  std::vector<json> take() {
    std::vector<json> answers;
    const std::string more = server_.read_output().value_or("");
    if (greeted_) {
      frames_.add(more);
    } else if (greeting_ += more; greeting_.find('\n', 1) != std::string::npos) {
      greeted_ = true;
      frames_.add(std::string_view(greeting_).substr(greeting_.find('\n', 1) + 1));
    }
    while (const auto frame = frames_.next()) answers.push_back(json::parse(frame->payload));
    return answers;
  }

 private:
  PipeProcess server_;
  std::string greeting_;
  bool greeted_ = false;
  FrameReader frames_{"The line"};
};

size_t children_of(pid_t process) {
  size_t count = 0;
  std::error_code none;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task", none)) {
    std::istringstream numbers(bytes_of((task.path() / "children").string()));
    for (std::string number; numbers >> number;) ++count;
  }
  return count;
}

// A client that asks without end: a few questions are worked on, some wait, the rest is refused.
TEST_P(PipeTest, AFloodOfQuestionsStartsAFewChildren) {
  { prof::RunFileWriter made(there() + "/a.wsrun", {}); }
  RawLine line(address());
  constexpr int kQuestions = 300, kAnswers = 6;
  for (int i = 0; i < kQuestions; ++i)
    ASSERT_TRUE(line.send({{"do", "output"}, {"number", i}, {"command", "stats"}, {"options", json::array()}, {"file", "a.wsrun"}}));
  size_t most = 0, answered = 0, refused = 0;
  for (const auto until = Clock::now() + std::chrono::seconds(120); (answered < kAnswers || refused < 40) && Clock::now() < until;) {
    most = std::max(most, children_of(line.server()));
    for (const json& answer : line.take()) answer.contains("error") ? ++refused : ++answered;
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_GE(answered, static_cast<size_t>(kAnswers));
  EXPECT_GE(refused, 40u);
  EXPECT_LE(most, 4u);
}

// A client that asks and never reads: the server takes no more than it can keep.
TEST_P(PipeTest, AnswersThatNobodyReadsStayFew) {
  RawLine line(address());
  const std::string unknown(60'000, 'x');
  int sent = 0;
  constexpr int kMany = 1000;  // 60 MB
  while (sent < kMany && line.send({{"do", unknown}, {"number", sent}})) ++sent;
  EXPECT_LT(sent, kMany / 2);
}

// A job that prints without end, while nobody takes its words.
TEST_P(PipeTest, WordsThatNobodyTakesStayFew) {
  const JobFolder job(there(), "a");
  fs::create_directories(job.path());
  prof::write_whole(job.file("job.json"), "{}");
  {
    const Ownership owned(job.path());
    JobSender sender(job);
    for (int i = 0; i < 100; ++i) {
      RemoteUpdate update;
      for (int k = 0; k < 500; ++k) update.run.messages.push_back({"word " + std::to_string(500 * i + k), false});
      if (i == 99) update.exit_status = 0;
      sender.send(update);
    }
  }
  RemoteLink link(address());
  RemoteRun run(link, "a", false);
  for (const auto until = Clock::now() + std::chrono::seconds(60); !run.over() && Clock::now() < until;) std::this_thread::sleep_for(milliseconds(5));
  const auto messages = run.take().run.messages;
  EXPECT_LE(messages.size(), 10'001u);
  EXPECT_GT(messages.size(), 1000u);
  EXPECT_TRUE(std::ranges::any_of(messages, [](const RunMessage& one) { return one.text == "word 49999"; })) << "the newest are kept";
  EXPECT_TRUE(std::ranges::any_of(messages, [](const RunMessage& one) { return one.problem; }));
}

// Its data are freed after its end: the news of the end are there before the training is over.
TEST_P(PipeTest, ReceivesHowABigTrainingEnded) {
  RemoteLink link(address());
  json job = training("off", 1);
  RunSpec spec = load_spec("mnist");
  set_field(spec, "exec.device", "cpu");
  set_field(spec, "train.time_limit_s", "0.1");
  job["spec"] = to_json(spec);
  for (const char* name : {"a"}) {
    RemoteRun::start(link, name, job);
    RemoteRun run(link, name, false);
    Seen seen;
    ASSERT_TRUE(seen.to_the_end(run));
    ASSERT_TRUE(seen.summary) << name;
    EXPECT_EQ(seen.summary->status, RunStatus::TimeUp);
  }
}

// A server that lies: the line is closed with a sentence, nothing is written, nobody crashes.
TEST_P(PipeTest, EndsTheLineToAServerThatLies) {
  const std::vector<std::string> lies = {"\\377\\377\\377\\377\\001", "\\002\\000\\000\\000\\002{]", "\\002\\000\\000\\000\\011{}",
                                         "\\004\\000\\000\\000\\003abcd", "\\017\\000\\000\\000\\002{\"number\": \"x\"}"};
  for (const std::string& lie : lies) {
    RemoteLink link(parse_remote("pipe:printf 'warpsight-serve " + std::to_string(kLineProtocol) + " x\\n" + lie + "'; cat > /dev/null"));
    bool cut = false;
    for (int i = 0; i < 12'000 && !cut; ++i, usleep(5000)) cut = link.status().state == LineState::Cut;
    EXPECT_TRUE(cut) << lie;
    EXPECT_NE(link.status().sentence, "") << lie;
  }
}

// A line with a turn of 50 ms. From a request to the news that it was done is more than from what happens there to here.
struct SlowLine {
  const char* name;
  double bits_a_s, lost_percent;
  double reply_ms = 0, pause_ms = 0, behind_ms = 0;  // the 99th percentile, and the slowest of two
  double spans_a_s = 0, steps_a_s = 0;
};

double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

void measure(RemoteRun& run, Seen& seen, SlowLine& line) {
  std::vector<double> replies;
  const size_t spans = seen.spans;
  const int64_t steps = seen.steps;
  const auto begin = Clock::now();
  for (int i = 0; i < 12; ++i) {
    const size_t changes = seen.changes.size();
    const auto asked = Clock::now();
    run.change("train.lr", i % 2 ? "0.01" : "0.02");
    ASSERT_TRUE(seen.until(run, [&] { return seen.changes.size() > changes; }));
    replies.push_back(ms_since(asked));
  }
  line.spans_a_s = static_cast<double>(seen.spans - spans) / (ms_since(begin) * 1e-3);
  line.steps_a_s = static_cast<double>(seen.steps - steps) / (ms_since(begin) * 1e-3);
  std::ranges::sort(replies);
  line.reply_ms = replies[replies.size() * 99 / 100];
  for (int i = 0; i < 3; ++i) {
    const auto asked = Clock::now();
    run.pause();
    ASSERT_TRUE(seen.until(run, [&] { return seen.progress && seen.progress->paused; }));
    line.pause_ms = std::max(line.pause_ms, ms_since(asked));
    // All that happened before the pause is here: so far behind was the view.
    ASSERT_TRUE(seen.until(run, [&] { return seen.steps == seen.progress->step; }));
    line.behind_ms = std::max(line.behind_ms, ms_since(asked));
    run.resume();
    ASSERT_TRUE(seen.until(run, [&] { return !seen.progress->paused; }));
  }
}

int64_t memory_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + 8) * 1024;
  return 0;
}

const std::vector<SlowLine> kSlowLines{{"100 Mbit/s", 100e6, 0}, {"5 Mbit/s", 5e6, 0}, {"5 Mbit/s, 1 % lost", 5e6, 1}};

class SlowTest : public PipeTest {
 protected:
  void watch_and_steer(RemoteAddress slow, SlowLine line);
};

// The network of a few µs per step sends more losses than the slow line carries.
void SlowTest::watch_and_steer(RemoteAddress slow, SlowLine line) {
  const bool fast = line.bits_a_s > 1e7;
  const std::string name = fast ? "fast" : line.lost_percent > 0 ? "lossy" : "slow";
  RemoteLink link(std::move(slow));
  json job = training(fast ? "full" : "off");
  job["spec"]["train"]["batch"] = fast ? 16 : 4;
  job["spec"]["model"]["hidden"] = {fast ? 64 : 1};
  RemoteRun::start(link, name, job);
  const std::vector<pid_t> servers = servers_of(there());
  ASSERT_EQ(servers.size(), 1u);
  const int64_t idle = memory_of(servers[0]);
  RemoteRun run(link, name, true);
  Seen seen;
  ASSERT_TRUE(seen.until(run, [&] { return seen.steps > 1000; }));
  const auto warm = Clock::now() + milliseconds(1000);
  seen.until(run, [&] { return Clock::now() > warm; });
  const test::Pulse pulse;
  measure(run, seen, line);
  const int64_t memory = memory_of(servers[0]), job_memory = memory_of(owner_of_job(there() + "/.jobs/" + name));
  run.stop();
  ASSERT_TRUE(seen.to_the_end(run));
  EXPECT_EQ(run.thinned(), seen.holes > 0);
  EXPECT_EQ(seen.steps, seen.summary->steps);
  std::printf("%s: reply p99 %.0f ms, pause %.0f ms and %.0f ms behind at most, %.0f steps/s and %.0f spans/s, %s losses live, "
              "%.1f MB of spans came later; serve takes %.0f MB, the job %.0f; the machine made others wait %.0f ms\n",
              line.name, line.reply_ms, line.pause_ms, line.behind_ms, line.steps_a_s, line.spans_a_s, run.thinned() ? "thinned" : "all",
              static_cast<double>(run.left_out()) * 1e-6, static_cast<double>(memory) * 1e-6, static_cast<double>(job_memory) * 1e-6,
              pulse.longest_ms());
  // Times of a machine with nothing else to do; on any other the view must stay within a few of them: a queue that only
  // grows takes it out of all bounds.
  const double busy = test::busy(), wait = 4 * pulse.longest_ms(),
               slower = fast                    ? 0
                        : line.lost_percent > 0 ? 250
                                                : 100;
  EXPECT_LE(line.reply_ms, busy * (250 + slower) + wait);
  EXPECT_LE(line.pause_ms, busy * (200 + slower) + wait);
  EXPECT_LE(line.behind_ms, busy * 1000 + wait);
  if (test::kMemoryCounts) {
    EXPECT_LE(memory, idle + (64 << 20)) << "one batch that is thinned, and one that comes";
  }
  // Nothing is lost: the run file has every step.
  RemoteLink quick(address());
  const std::string here = (folder_ / (name + ".wsrun")).string();
  fetch_file(quick, {{"file", name + ".wsrun"}}, here);
  EXPECT_EQ(bytes_of(here), bytes_of(there() + "/" + name + ".wsrun"));
  EXPECT_EQ(prof::RunFileReader(here).metrics().size(), static_cast<size_t>(seen.steps));
}

TEST_P(SlowTest, WatchesAndSteersOverASlowLine) {
  for (const SlowLine& line : kSlowLines)
    watch_and_steer(parse_remote("pipe:exec " WARPSIGHT_SLOW_LINE " 25 " + std::to_string(line.bits_a_s) + " " +
                                 std::to_string(line.lost_percent) + " " WARPSIGHT_CLI " serve --folder " + there()),
                    line);
}

// ssh and TCP of the system between two network namespaces, whose line delays and loses packets.
TEST_P(SlowTest, WatchesAndSteersOverASlowLineOfPackets) {
  if (!OwnSshd::there()) GTEST_SKIP() << "There is no sshd here.";
  for (const SlowLine& line : kSlowLines) {
    std::optional<test::Network> network;
    try {
      network.emplace(WARPSIGHT_PACKET_LINE, 25, line.bits_a_s, line.lost_percent);
    } catch (const std::exception& why) {
      GTEST_SKIP() << why.what();
    }
    const fs::path folder = folder_ / std::to_string(&line - kSlowLines.data());
    const OwnSshd sshd(folder, network->place());
    ASSERT_TRUE(sshd.answers());
    std::printf("%s: ", network->made_by());
    watch_and_steer(parse_remote("pipe:exec " + sshd.bin() + "/ssh there 'exec " WARPSIGHT_CLI " serve --folder " + there() + "'"), line);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, SlowTest, testing::Values("pipe"), [](const auto& which) { return which.param; });
INSTANTIATE_TEST_SUITE_P(Over, PipeTest, testing::Values("pipe"), [](const auto& which) { return which.param; });
INSTANTIATE_TEST_SUITE_P(Over, SentenceTest, testing::Values("pipe", "ssh"), [](const auto& which) { return which.param; });

}  // namespace
}  // namespace ws::app
