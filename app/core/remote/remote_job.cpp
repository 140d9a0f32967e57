#include "app/core/remote/remote_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "app/core/lab/recorded_lab.h"
#include "app/core/remote/job_request.h"
#include "app/core/remote/job_sender.h"
#include "app/core/remote/remote_run.h"
#include "app/core/runs/run_ceilings.h"
#include "app/core/runs/torch_run.h"
#include "engine/devices/devices.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/whole_file.h"
#include "profiling/recording/command_words.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/record_program.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{10};  // interval for updates and requests
constexpr const char* kFollower = "follower";  // file of a recording: where the program's processes connect

void apply(const json& request, TracedTraining& run, JobSender& sender) {
  try {
    const JsonInput in(request, "");
    const std::string what = in.at("what").text();
    if (what == "pause") run.control().pause();
    if (what == "resume") run.control().resume();
    if (what == "step") run.control().step_once();
    if (what == "stop") run.control().stop();
    if (what == "change") run.control().change(in.at("key").text(), in.at("value").text());
    if (what == "trace") run.set_trace_level(prof::trace_level(in.at("level").text()));
  } catch (const std::exception& refused) {
    sender.say(refused.what());
  }
}

Summary failed(const RunSpec& spec, const std::string& why) {
  Summary summary;
  summary.status = RunStatus::Failed;
  summary.message = why;
  summary.spec = spec;
  return summary;
}

// The end of a job that writes one run file.
RemoteUpdate ended_with(const JobFolder& job, int exit_status) {
  RemoteUpdate end;
  std::error_code none;
  if (fs::exists(job.run_file(), none)) end.files = {job.name() + ".wsrun"};
  end.exit_status = exit_status;
  return end;
}

RecorderOptions recorder_options(const JobFolder& job, const JsonInput& in, const RunSpec& spec) {
  RecorderOptions options;
  options.path = job.run_file();
  options.may_go_unkept = true;
  options.title = in.at("title").text(spec.name);
  options.trace.level = prof::trace_level(in.at("trace").text("off"));
  options.trace.hardware_counters = in.at("counters").flag(false);
  options.trace.node_window = in.at("window").whole(0, 0), options.trace.node_every = in.at("every").whole(0, 0);
  options.trace.xray = {.length = in.at("xray").whole(0, 0), .every = in.at("xray_every").whole(0, 0), .again_by_time = in.at("xray_again_by_time").flag(false)};
  options.trace.untraced_share = 0.03;
  return options;
}

void train_job(const JobFolder& job, const JsonInput& in, JobSender& sender, const std::function<bool()>& interrupted) {
  std::vector<std::string> notes;
  const RunSpec spec = fit_to_machine(parse_spec(in.required("spec").value().dump()), device_info().cuda, notes);
  for (const std::string& note : notes) sender.say(note);
  RemoteUpdate end;
  try {
    JobRequests requests(job);
    TracedTraining run(spec, recorder_options(job, in, spec), {.checkpoint = job.file("checkpoint.wsck")});
    if (in.at("paused").flag(false)) run.control().pause();
    auto result = std::async(std::launch::async, [&] {
      if (const auto why = why_invalid(spec, device_info().cuda)) throw Failure(why->text);
      return run.run(data::load(spec.data));
    });
    for (bool over = false; !over;) {
      over = result.wait_for(kLookEvery) == std::future_status::ready;
      if (interrupted()) run.control().stop();
      for (const json& request : requests.take()) apply(request, run, sender);
      RemoteUpdate update{.run = run.take()};
      // It may come shortly before the training thread ends.
      if (update.run.summary) end.run.account = update.run.account, end.run.summary = std::exchange(update.run.summary, {});
      sender.send(update);
    }
    result.get();
  } catch (const std::exception& problem) {
    end.run.summary = failed(spec, problem.what());
  }
  const RemoteUpdate left = ended_with(job, end.run.summary && end.run.summary->status == RunStatus::Failed ? 1 : 0);
  end.files = left.files, end.exit_status = left.exit_status;
  sender.send(end);
}

bool asked_to_stop(JobRequests& requests, const std::function<bool()>& interrupted) {
  bool stop = interrupted();
  for (const json& request : requests.take()) stop |= request.value("what", json()) == "stop";
  return stop;
}

std::vector<std::string> words_of(const JsonInput& list) {
  std::vector<std::string> words;
  for (const JsonInput& word : list.items()) words.push_back(word.text());
  if (words.empty()) list.refuse("a command");
  return words;
}

std::vector<std::string> kept_files(const prof::RecordedProgram& program) {
  std::vector<std::string> names;
  if (!program.recorded()) return names;
  for (const std::string& path : program.paths()) {
    if (prof::is_still_written(path)) continue;
    keep_ceilings(path);
    names.push_back(fs::path(path).filename().string());
  }
  return names;
}

// Starts the program, or follows one that records itself.
prof::RecordedProgram recorded_program(const JobFolder& job, const JsonInput& in) {
  if (in.at("process").there()) return {in.at("process").text(), job.run_file()};
  return {words_of(in.required("command")),
          job.run_file(),
          {.level = prof::record_level(in.at("trace").text("full")),
           .library = in.at("library").text(),
           .counters = in.at("counters").flag(false),
           .python = prof::python_level(in.at("python").text("modules")),
           .window = in.at("window").text(),
           .captures = in.at("captures").flag(false),
           .folder = in.at("folder").text(),
           .prompt_output = true,
           .keep_command = in.at("keep_command").flag(true),
           .xray = in.at("xray").text()}};
}

// Once the program has been started, its request is only shown: keys and passwords do not stay on the disk or in lists of jobs.
void keep_without_secrets(const JobFolder& job, const JsonInput& in) {
  if (!in.at("command").there()) return;
  json request = in.value();
  if (in.at("keep_command").flag(true))
    request["command"] = prof::without_secrets(words_of(in.at("command")));
  else
    request.erase("command"), request.erase("folder");
  try {
    prof::write_whole(job.file("job.json"), request.dump(-1, ' ', false, json::error_handler_t::replace));
  } catch (const Failure&) {  // a full disk does not end the program; the folder is this user's alone
  }
}

void record_job(const JobFolder& job, const JsonInput& in, JobSender& sender, const std::function<bool()>& interrupted) {
  JobRequests requests(job);
  prof::RecordedProgram program = recorded_program(job, in);
  keep_without_secrets(job, in);
  say_now(job, kFollower, program.follower());
  const prof::IgnoreInterrupt ignore;
  constexpr milliseconds kStatusEvery{100};
  auto due = std::chrono::steady_clock::now();
  RemoteUpdate end;
  for (bool asked = false; !end.exit_status;) {
    end.exit_status = program.wait(static_cast<int>(kLookEvery.count()));
    if (!asked && asked_to_stop(requests, interrupted)) asked = true, program.interrupt();
    RemoteUpdate update{.run = take_update(program)};
    if (std::chrono::steady_clock::now() >= due || end.exit_status) {
      update.recording = program.status();
      due = std::chrono::steady_clock::now() + kStatusEvery;
    }
    sender.send(update);
  }
  for (const std::string& path : program.foreign())
    sender.say(path + " is another file now: it was moved there during the recording. It stays as it is.");
  end.files = kept_files(program);
  sender.send(end);
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.is_regular_file(none) && is_plain_name(entry.path().filename().string()))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Reports each new row of results.jsonl once.
class NewRows {
 public:
  explicit NewRows(std::string path) : path_(std::move(path)) {}
  void send(JobSender& sender) {
    std::error_code none;
    const auto size = fs::file_size(path_, none);
    if (none || size == std::exchange(size_, size)) return;
    RemoteUpdate update;
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line) && !in.eof();)  // the last line may be incomplete
      if (sent_.insert(line).second) update.results.push_back(json{{"row", line}}.dump());
    if (!update.results.empty()) sender.send(update);
  }

 private:
  std::string path_;
  uintmax_t size_ = 0;
  std::set<std::string> sent_;
};

// Runs the command `experiment`, because it restarts itself after a GPU fault. What it prints to stderr goes to the
// log. Its table, on stdout, is among the files.
void experiment_job(const JobFolder& job, const JsonInput& in, JobSender& sender, const std::function<bool()>& interrupted) {
  JobRequests requests(job);
  const std::string results = job.file("results"), rows_file = results + "/results.jsonl";
  prof::write_whole(job.file("experiment.json"), in.required("experiment").value().dump());
  std::string known;
  for (const JsonInput& row : in.at("rows").items()) known += row.text() + "\n";
  fs::create_directories(results);
  if (!known.empty()) prof::write_whole(rows_file, known);
  Process command({program_file().string(), "experiment", job.file("experiment.json"), "--out", results},
                  Process::Output::Captured);
  NewRows rows(rows_file);
  RemoteUpdate end;
  for (bool asked = false; !end.exit_status;) {
    end.exit_status = command.wait(static_cast<int>(kLookEvery.count()));
    command.output(0);
    if (!asked && asked_to_stop(requests, interrupted)) asked = true, command.signal(SIGINT);
    rows.send(sender);
  }
  end.files = files_in(results);
  sender.send(end);
}

// Reports each point of a sweep when it is measured.
class LabSender final : public lab::LabSink {
 public:
  LabSender(JobSender& sender, lab::LabSpec spec) : sender_(sender) { one_.spec = std::move(spec); }
  void point(const lab::LabPoint& point) override {
    one_.points = {point};
    send({{"lab", to_json(one_)}});
  }
  void progress(int done, int of, const std::string& what) override {
    send({{"done", done}, {"of", of}, {"what", what}});
  }
  void ceilings(const lab::Ceilings& c) override { one_.ceilings = c; }
  void whole(const lab::LabResult& result) { send({{"whole", to_json(result)}}); }

 private:
  void send(const json& what) {
    const std::lock_guard lock(mutex_);
    RemoteUpdate update;
    update.results = {what.dump(-1, ' ', false, json::error_handler_t::replace)};
    sender_.send(update);
  }
  JobSender& sender_;
  lab::LabResult one_;
  std::mutex mutex_;
};

// Turns requests to stop into a flag, for work that polls one.
class StopFlag {
 public:
  StopFlag(const JobFolder& job, const std::function<bool()>& interrupted)
      : requests_(job), thread_([this, interrupted](const std::stop_token& ended) {
          for (; !ended.stop_requested(); std::this_thread::sleep_for(kLookEvery))
            if (asked_to_stop(requests_, interrupted)) asked_ = true;
        }) {}
  const std::atomic<bool>& asked() const { return asked_; }

 private:
  JobRequests requests_;
  std::atomic<bool> asked_{false};
  std::jthread thread_;
};

TorchTools torch_tools(const JsonInput& in) {
  TorchTools tools = find_torch(in.at("python").text("python3"), program_file().string());
  if (in.at("script").there()) tools.script = in.at("script").text(), tools.problem.clear();
  return tools;
}

// Prints a line of PyTorch's script to the log.
void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void lab_job(const JobFolder& job, const JsonInput& in, JobSender& sender, const std::function<bool()>& interrupted) {
  const lab::LabSpec spec = lab::lab_spec_from_json(in.required("lab").value());
  const StopFlag stop(job, interrupted);
  LabSender sink(sender, spec);
  if (in.at("torch").flag(false))
    sink.whole(run_torch_lab(spec, torch_tools(in), stop.asked(), print_line));
  else
    sink.whole(run_sweep(spec, in.at("record").flag(true) ? job.run_file() : std::string(), stop.asked(), sink));
  sender.send(ended_with(job, 0));
}

void torch_job(const JobFolder& job, const JsonInput& in, JobSender& sender, const std::function<bool()>& interrupted) {
  TorchRequest request;
  request.spec = parse_spec(in.required("spec").value().dump());
  request.out = job.run_file(), request.title = in.at("title").text();
  request.compile = in.at("compile").flag(false), request.record = in.at("record").flag(true);
  const StopFlag stop(job, interrupted);
  run_torch(request, torch_tools(in), stop.asked(), print_line);
  sender.send(ended_with(job, 0));
}

using Work = void (*)(const JobFolder&, const JsonInput&, JobSender&, const std::function<bool()>&);
const std::map<std::string, Work> kWorkOf{{"train", train_job},
                                          {"record", record_job},
                                          {"experiment", experiment_job},
                                          {"lab", lab_job},
                                          {"torch", torch_job}};

bool has_begun(const JobFolder& job) {
  std::error_code none;
  return job.running() || fs::exists(job.file("news"), none);
}

// Starts the job, whose output goes to the log, and waits until it owns its folder or has ended.
void begin_job(const JobFolder& job) {
  Process child({program_file().string(), "job", job.path()}, Process::Output::Ours, {}, {.folder = {}, .output = job.file("log"), .detached = true});
  constexpr int kMostWaits = 4000;
  for (int i = 0; i < kMostWaits && !job.running(); ++i) {
    if (child.wait(0)) break;
    usleep(5000);
  }
  if (!has_begun(job)) throw Failure(job.name() + " did not start; see " + job.file("log"));
}

// After a cut the client asks again: the second request waits until the first has started the job. The system frees
// the lock of a server that was killed.
class OneStarter {
 public:
  explicit OneStarter(const JobFolder& job) : folder_(open(job.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_ >= 0) flock(folder_, LOCK_EX);
  }
  ~OneStarter() {
    if (folder_ >= 0) close(folder_);
  }
  OneStarter(const OneStarter&) = delete;
  OneStarter& operator=(const OneStarter&) = delete;

 private:
  int folder_;
};

// Deletes trace pieces of jobs that have ended: their run files have all of it.
void forget_old_traces(const std::string& runs) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(runs + "/.jobs", none)) {
    const std::string path = entry.path().string();
    if (!owner_of(path).empty()) continue;
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(none);
    if (age > std::chrono::hours(1)) PieceJournal::remove_all(path, kTracePieces);
  }
}

}  // namespace

void start_job(const JobFolder& job, const json& what) {
  std::error_code error;
  if (!fs::exists(job.path(), error) && fs::exists(job.run_file(), error))
    throw Failure("There is a run " + job.name() + " already; choose another name.");
  fs::create_directories(job.path(), error);
  if (error) throw Failure(job.path() + ": cannot be made: " + error.message());
  fs::permissions(job.path(), fs::perms::owner_all, error);
  const OneStarter alone(job);
  if (has_begun(job)) return;
  forget_old_traces(job.runs());
  try {
    prof::write_whole(job.file("job.json"), what.dump(-1, ' ', false, json::error_handler_t::replace));
    begin_job(job);
  } catch (...) {
    fs::remove_all(job.path(), error);
    throw;
  }
}

namespace {

std::vector<std::string> command_of(int64_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

// The job writes it after it has begun.
std::string follower_of(const JobFolder& job) {
  constexpr int kMostWaits = 2000;
  std::string address;
  for (int i = 0; i < kMostWaits && address.empty() && job.running(); ++i, usleep(5000))
    std::getline(std::ifstream(job.file(kFollower)), address);
  if (address.empty()) throw Failure(job.name() + " follows nothing; see " + job.file("news"));
  return address;
}

}  // namespace

std::string follow_process(const std::string& runs, int64_t process) {
  const std::vector<std::string> command = command_of(process);
  if (command.empty()) return "";
  const std::string name = printable(prof::name_of_command(command));
  const JobFolder job(fs::absolute(runs).lexically_normal().string(), RemoteRun::new_name(name));
  json request = record_request(prof::without_secrets(command), prof::options_of_environment());
  request["process"] = process_mark(process);
  start_job(job, request);
  return job.run_file() + "\n" + follower_of(job) + "\n" + name + "\n" +
         (request["keep_command"] == true ? request["command"].dump(-1, ' ', false, json::error_handler_t::replace) : prof::kNoCommand) + "\n";
}

int run_job(const JobFolder& job, const std::function<bool()>& interrupted) {
  const Ownership owned(job.path());
  const json what = read_json(job.file("job.json"));
  JobSender sender(job);
  try {
    const JsonInput in(what, "");
    const std::string kind = in.required("kind").text();
    const auto work = kWorkOf.find(kind);
    if (work == kWorkOf.end())
      throw Failure("This version cannot run a job of kind \"" + kind + "\". Install the same version on both "
                                                                        "machines.");
    work->second(job, in, sender, interrupted);
    return 0;
  } catch (const std::exception& problem) {
    RemoteUpdate end;
    end.run.messages.push_back({problem.what(), true});
    end.exit_status = 1;
    sender.send(end);
    return 1;
  }
}

}  // namespace ws::app
