// remote_cost PROGRAM [SECONDS [KEY=VALUE…]]: what it costs a training to be watched from another machine, beside being
// traced into a file. Both happen to one training, in turns of a fifth of a second, so that no noise between processes
// is in it: in one turn its reports are dropped; in the next they are sent as a job sends them, PROGRAM serves them, and
// another process takes them, spans too. Each training takes SECONDS. Prints a table, and a line of JSON for each
// training. WARPSIGHT_TURNS=FOLDER keeps the turns as FOLDER/TRAINING.csv.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "app/core/remote/job_sender.h"
#include "app/core/remote/remote_run.h"
#include "app/core/runs/traced_training.h"
#include "engine/devices/devices.h"
#include "engine/plan/run_spec.h"
#include "profiling/base/clock.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/whole_file.h"
#include "tests/bench/turns.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

double now_s() { return static_cast<double>(prof::steady_ns()) * 1e-9; }

// The other machine's part: serve and a process that takes everything. It has to be another process: its work may not
// take the locks, the memory and the processor of the training's.
std::vector<std::string> watcher(const std::string& program, const fs::path& folder) {
  return {program_file(), "--watch", "pipe:exec '" + program + "' serve --folder '" + folder.string() + "'"};
}

int watch(const std::string& address) {
  RemoteLink link(parse_remote(address));
  RemoteRun run(link, "a", true);
  size_t steps = 0, spans = 0;
  std::vector<std::pair<double, double>> arrived;
  for (bool over = false; !over; std::this_thread::sleep_for(milliseconds(16))) {
    over = run.over();
    const RemoteUpdate update = run.take();
    const size_t before = spans;
    steps += update.run.steps.size();
    for (const prof::TraceBatch& batch : update.run.traces) spans += batch.span_count();
    if (spans > before) arrived.emplace_back(now_s(), spans - before);
  }
  const nlohmann::json seen{{"steps_seen", steps}, {"spans_seen", spans},
                            {"trace_left_out_mb", static_cast<double>(run.left_out()) * 1e-6}, {"arrived", arrived}};
  std::fputs(seen.dump().c_str(), stdout);
  return 0;
}

class Bench {
 public:
  Bench(const std::string& program, double seconds)
      : folder_(fs::temp_directory_path() / ("warpsight-cost-" + std::to_string(getpid()))), program_(program), seconds_(seconds) {
    fs::create_directories(JobFolder(folder_, "a").path());
  }
  ~Bench() { fs::remove_all(folder_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  nlohmann::json run(const RunSpec& spec) {
    const JobFolder job(folder_, "a");
    prof::write_whole(job.file("job.json"), "{}");
    std::optional<Process> seen;
    {
      const Ownership owned(job.path());
      JobSender sender(job);
      seen.emplace(watcher(program_, folder_), Process::Output::Captured);
      train(spec, job, sender);
    }
    std::string said;
    while (const auto more = seen->output(1000)) said += *more;
    if (seen->wait() != 0) throw std::runtime_error("the watcher failed");
    nlohmann::json result = nlohmann::json::parse(said);
    report(spec, bench::cost_of(turns_.all()), result);
    if (const char* folder = std::getenv("WARPSIGHT_TURNS")) bench::write_turns(turns_.all(), fs::path(folder) / (spec.name + ".csv"));
    return result;
  }

 private:
  void train(const RunSpec& spec, const JobFolder& job, JobSender& sender) {
    RecorderOptions options;
    options.path = job.run_file();
    options.trace.level = prof::TraceLevel::Full;
    TracedTraining training(spec, options);
    auto result = std::async(std::launch::async, [&] { return training.run(data::load(spec.data)); });
    double next = 0, end = 0;
    while (result.wait_for(milliseconds(10)) != std::future_status::ready) {
      RemoteUpdate update{.run = training.take()};
      const double now = now_s();
      turns_.add(update.run.steps, now);
      if (end == 0 && !update.run.steps.empty()) next = now, end = now + seconds_;
      if (end > 0 && now >= next) next = now + bench::kTurn, turns_.begin(now);
      if (turns_.watched()) sender.send(update);
      if (end > 0 && now >= end) training.control().stop();
    }
    RemoteUpdate last{.run = training.take()};
    turns_.add(last.run.steps, now_s());
    last.run.steps.clear(), last.run.epochs.clear(), last.run.traces.clear();
    last.exit_status = 0;
    sender.send(last);
    const Summary summary = result.get();
    if (summary.status == RunStatus::Failed) throw std::runtime_error(summary.message);
    device_ = summary.device;
  }

  void report(const RunSpec& spec, const bench::Cost& cost, nlohmann::json& result) const {
    const auto ratio = [](const Interval& log, double side) { return std::exp(log.value + side * log.half_width); };
    const double low = ratio(cost.log_ratio, -1), high = ratio(cost.log_ratio, 1);
    std::printf("%-8s %10.2f µs a step into a file, %10.2f watched: %.4f (95 %%: %.4f to %.4f, %zu turns)\n", spec.name.c_str(),
                cost.file_us.value, cost.watched_us.value, ratio(cost.log_ratio, 0), low, high, turns_.all().size());
    std::fflush(stdout);
    result["late_share"] = turns_.late_share(result["arrived"]);
    result.erase("arrived");
    result.update({{"training", spec.name},       {"device", device_},
                   {"launch", field_text(spec, "exec.launch")}, {"turns", turns_.all().size()},
                   {"turn_s", bench::kTurn},      {"settle_s", bench::kSettle},
                   {"into_a_file_us", cost.file_us.value},      {"watched_us", cost.watched_us.value},
                   {"ratio", ratio(cost.log_ratio, 0)},         {"low", low},
                   {"high", high},                {"whole_ratio", ratio(cost.whole_log_ratio, 0)},
                   {"whole_low", ratio(cost.whole_log_ratio, -1)}, {"whole_high", ratio(cost.whole_log_ratio, 1)}});
  }

  fs::path folder_;
  std::string program_, device_;
  double seconds_;
  bench::Turns turns_;
};

RunSpec spec_of(const char* name, const std::vector<std::pair<std::string, std::string>>& choices) {
  RunSpec spec = load_spec(name);
  set_field(spec, "train.epochs", "1000000000");
  set_field(spec, "train.eval_every", "0");
  for (const auto& [key, value] : choices) set_field(spec, key, value);
  std::vector<std::string> notes;
  return fit_to_machine(spec, device_info().cuda, notes);
}

// MNIST with launches that the host is busy with, and Iris as it is.
int measure(const std::string& program, double seconds, const std::vector<std::pair<std::string, std::string>>& choices) {
  auto launches = choices;
  launches.insert(launches.begin(), {{"exec.launch", "eager"}, {"exec.fusion", "off"}, {"exec.sync", "on-read"}});
  std::vector<nlohmann::json> results;
  for (const RunSpec& spec : {spec_of("iris", choices), spec_of("mnist", launches)}) {
    results.push_back(Bench(program, seconds).run(spec));
    std::printf("%s\n", results.back().dump().c_str());
    std::fflush(stdout);
  }
  bool watched = true;
  for (const nlohmann::json& result : results)
    watched &= result["steps_seen"] > 0 && result["spans_seen"] > 0 && result["ratio"].is_number();
  return watched ? 0 : 1;
}

}  // namespace
}  // namespace ws::app

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--watch") return ws::app::watch(argv[2]);
  if (argc < 2) {
    std::fputs("remote_cost PROGRAM [SECONDS [KEY=VALUE…]]\n", stderr);
    return 2;
  }
  std::vector<std::pair<std::string, std::string>> choices;
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    choices.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  return ws::app::measure(std::filesystem::absolute(argv[1]), argc > 2 ? std::atof(argv[2]) : 150, choices);
}
