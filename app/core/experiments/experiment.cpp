#include "app/core/experiments/experiment.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/core/experiments/step_times.h"
#include "app/core/runs/data_shape.h"
#include "app/core/runs/traced_training.h"
#include "engine/devices/devices.h"
#include "profiling/base/json_fields.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"
#include "profiling/base/statistics.h"

namespace ws::app {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

void list(JsonFields& f, TrialRun& r) {
  f("trial", r.trial, 0, 1 << 30), f("repeat", r.repeat, 0, 1 << 30);
  f("status", r.status), f("message", r.message), f("file", r.file), f("device", r.device), f("identity", r.identity);
  // A diverged run has no finite loss, and JSON has no NaN: such numbers are stored as null.
  f.real("us_per_step", r.us_per_step), f.real("samples_per_s", r.samples_per_s), f.real("wall_s", r.wall_s);
  f.real("first_loss", r.first_loss), f.real("final_loss", r.final_loss), f.real("test_accuracy", r.test_accuracy);
  f("steps", r.steps, 0), f("peak_bytes", r.peak_bytes, 0);
  f.real("allocator_calls_per_step", r.allocator_calls_per_step);
}

json to_json(const TrialRun& run) { return written(run, list); }

TrialRun run_from_json(const JsonInput& row) {
  for (const char* key : {"trial", "repeat"}) (void)row.required(key);
  return read_from<TrialRun>(row, list);
}

// Reads the rows that a killed experiment left, without an incomplete last line. Rows without an identity are old:
// they belong to the trial with the same index in the folder's experiment.
std::vector<TrialRun> read_rows(const fs::path& folder, const std::vector<Trial>& as_kept) {
  std::vector<TrialRun> rows;
  std::ifstream in(folder / "results.jsonl");
  for (std::string line; std::getline(in, line);) try {
      const json object = parse_json(line, "results.jsonl");
      TrialRun& row = rows.emplace_back(run_from_json(JsonInput(object, "results.jsonl")));
      const auto place = static_cast<size_t>(row.trial);
      if (row.identity.empty() && place < as_kept.size()) row.identity = as_kept[place].identity;
    } catch (const Failure&) {
    }
  return rows;
}

// The trial that a row belongs to: the one with the same index if it still has the same identity,
// otherwise any with that identity.
const Trial* trial_of(const TrialRun& run, const std::vector<Trial>& trials) {
  const auto place = static_cast<size_t>(run.trial);
  if (run.trial >= 0 && place < trials.size() && trials[place].identity == run.identity) return &trials[place];
  const auto same = std::ranges::find(trials, run.identity, &Trial::identity);
  return same == trials.end() ? nullptr : &*same;
}

// Only the results of these trials: the experiment may have been edited since.
std::vector<TrialRun> results_of(const std::vector<Trial>& trials, const std::vector<TrialRun>& rows) {
  std::vector<TrialRun> runs;
  for (TrialRun row : rows) {
    const Trial* trial = row.identity.empty() ? nullptr : trial_of(row, trials);
    if (!trial) continue;
    row.trial = trial->index;
    const auto known = std::ranges::find_if(
        runs, [&](const TrialRun& r) { return r.trial == row.trial && r.repeat == row.repeat; });
    if (known == runs.end())
      runs.push_back(std::move(row));
    else if (known->failed())
      *known = std::move(row);
  }
  return runs;
}

std::vector<Trial> kept_trials(const fs::path& folder) {
  const fs::path path = folder / "experiment.json";
  if (!fs::exists(path)) return {};
  try {
    return trials_of(load_experiment(path.string()), device_info().cuda);
  } catch (const Failure&) {  // damaged, or from a newer version: rows with an identity are still usable
    return {};
  }
}

// Writes every row with its identity before the folder gets another experiment.
void keep_rows(const fs::path& folder, const std::vector<TrialRun>& rows) {
  std::string text;
  for (const TrialRun& row : rows) text += to_json(row).dump() + "\n";
  if (!text.empty()) prof::write_whole((folder / "results.jsonl").string(), text);
}

// A killed process may have left half a row. The next row begins on a new line.
void end_last_row(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() <= 0) return;
  in.seekg(-1, std::ios::end);
  if (in.get() == '\n') return;
  prof::SyncedFile log(file.string(), prof::SyncedFile::Begin::AtEnd);
  log.write("\n");
  log.close();
}

template <class Get>
std::vector<double> column(const std::vector<TrialRun>& runs, Get get) {
  std::vector<double> values;
  for (const TrialRun& r : runs) values.push_back(static_cast<double>(get(r)));
  return values;
}

TrialResult summarise(const Trial& trial, std::vector<TrialRun> runs) {
  TrialResult out;
  out.trial = trial;
  out.runs = runs;
  std::erase_if(runs, &TrialRun::failed);
  if (runs.empty()) return out;
  const auto us = column(runs, [](const TrialRun& r) { return r.us_per_step; });
  out.us_per_step = median(us);
  out.low = *std::ranges::min_element(us);
  out.high = *std::ranges::max_element(us);
  out.first_loss = median(column(runs, [](const TrialRun& r) { return r.first_loss; }));
  out.final_loss = median(column(runs, [](const TrialRun& r) { return r.final_loss; }));
  out.test_accuracy = median(column(runs, [](const TrialRun& r) { return r.test_accuracy; }));
  out.samples_per_s = median(column(runs, [](const TrialRun& r) { return r.samples_per_s; }));
  out.allocator_calls_per_step = median(column(runs, [](const TrialRun& r) { return r.allocator_calls_per_step; }));
  out.peak_bytes = static_cast<int64_t>(median(column(runs, [](const TrialRun& r) { return r.peak_bytes; })));
  return out;
}

// Results may come from another machine. Name the device they ran on, not the device here.
std::string device_of(const std::vector<TrialRun>& runs) {
  std::vector<std::string> names;
  for (const TrialRun& r : runs)
    if (!r.device.empty() && std::ranges::find(names, r.device) == names.end()) names.push_back(r.device);
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  if (!all.empty()) return all;
  return device_info().cuda ? device_info().name : device_info().name + " (CPU)";
}

ExperimentResult collect(const ExperimentSpec& spec, const std::vector<Trial>& trials,
                         const std::vector<TrialRun>& runs) {
  ExperimentResult result;
  result.spec = spec;
  result.device = device_of(runs);
  result.complete = true;
  for (const Trial& trial : trials) {
    std::vector<TrialRun> mine;
    std::ranges::copy_if(runs, std::back_inserter(mine), [&](const TrialRun& r) { return r.trial == trial.index; });
    const auto asked = std::ranges::count_if(mine, [&](const TrialRun& r) { return r.repeat < spec.repeats && !r.failed(); });
    if ((trial.skipped.empty() || !mine.empty()) && asked < spec.repeats) result.complete = false;
    result.trials.push_back(summarise(trial, std::move(mine)));
  }
  return result;
}

// Trains one trial, or times its steps. It keeps the data set if the next trial uses the same.
class Runner {
 public:
  Runner(fs::path folder, TrialMeasure measure) : folder_(std::move(folder)), measure_(measure) {}

  TrialRun run(const Trial& trial, int repeat, const std::atomic<bool>& cancel) {
    TrialRun out;
    out.trial = trial.index;
    out.repeat = repeat;
    out.identity = trial.identity;
    try {
      measure_ == TrialMeasure::Steps ? time(out, trial) : train(out, trial, repeat, cancel);
    } catch (const Failure& failure) {
      out.status = "failed";
      out.message = failure.what();
    }
    return out;
  }

 private:
  void train(TrialRun& out, const Trial& trial, int repeat, const std::atomic<bool>& cancel) {
    RecorderOptions options;
    options.path = (folder_ / (file_name_of(trial.label) + "_" + std::to_string(trial.index) + "_" + std::to_string(repeat) + "_" +
                               trial.identity.substr(0, 8) + ".wsrun"))
                       .string();
    options.title = trial.label;
    options.trace.level = prof::TraceLevel::Steps;
    fs::remove(options.path);
    out.file = fs::path(options.path).filename();
    TracedTraining recorded(trial.spec, options);
    const std::jthread watch([&](const std::stop_token& done) {
      while (!done.stop_requested() && !cancel) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (cancel) recorded.control().stop();
    });
    fill(out, recorded.run(data(trial.spec.data)), recorded);
  }

  void time(TrialRun& out, const Trial& trial) {
    const StepTimes times = time_steps(trial.spec, data(trial.spec.data));
    out.status = "finished";
    out.device = times.device;
    out.us_per_step = times.us;
    out.samples_per_s = static_cast<double>(times.batch) * 1e6 / times.us;
    out.steps = times.steps;
    out.first_loss = out.final_loss = out.test_accuracy = out.allocator_calls_per_step = std::nan("");
  }

  const data::Dataset& data(const data::DataSpec& spec) {
    if (!loaded_ || !(loaded_->first == spec)) loaded_.emplace(spec, data::load(spec));
    return loaded_->second;
  }

  static void fill(TrialRun& out, const Summary& summary, TracedTraining& recorded) {
    const RunUpdate update = recorded.take();
    out.status = to_string(summary.status);
    out.message = summary.message;
    out.device = summary.device;
    out.us_per_step = std::max(0.0, update.account.step_time.us.value);
    out.samples_per_s = out.us_per_step > 0 ? rows_of_a_step(summary.spec) * 1e6 / out.us_per_step : 0;
    out.wall_s = summary.wall_s;
    out.first_loss = update.steps.empty() ? std::nan("") : static_cast<double>(update.steps.front().loss);
    out.final_loss = summary.final_train_loss;
    out.test_accuracy = summary.test_accuracy;
    out.steps = summary.steps;
    out.peak_bytes = summary.peak_bytes;
    if (summary.steps > 0)
      out.allocator_calls_per_step = static_cast<double>(summary.calls.device_allocate + summary.calls.device_free) /
                                     static_cast<double>(summary.steps);
  }

  fs::path folder_;
  TrialMeasure measure_;
  std::optional<std::pair<data::DataSpec, data::Dataset>> loaded_;
};

}  // namespace

ExperimentFolder::ExperimentFolder(const std::string& path) : path_(path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Failure(path + ": cannot be made: " + error.message());
  for (const char* name : {"experiment.json", "results.jsonl", "table.csv", "chart.svg"})
    prof::file_to_write(path + "/" + name);
  owned_.emplace(path);
  end_last_row(fs::path(path) / "results.jsonl");
}

ExperimentFolder::~ExperimentFolder() {
  owned_.reset();
  rmdir(path_.c_str());  // removes only an empty folder
}

ExperimentResult run_experiment(const ExperimentSpec& spec, const std::string& folder, const std::atomic<bool>& cancel,
                                ExperimentSink& sink, bool retry_failed) {
  const ExperimentFolder owned(folder);
  const auto trials = trials_of(spec, device_info().cuda);
  const auto order = run_order(spec, trials);
  const std::vector<TrialRun> rows = read_rows(folder, kept_trials(folder));
  std::vector<TrialRun> runs = results_of(trials, rows);
  keep_rows(folder, rows);
  prof::write_whole((fs::path(folder) / "experiment.json").string(), to_json(spec).dump(2) + "\n");
  prof::SyncedFile log((fs::path(folder) / "results.jsonl").string(), prof::SyncedFile::Begin::AtEnd);
  Runner runner(folder, spec.measure);
  for (const auto& [trial, repeat] : order) {
    if (cancel) break;
    const auto known = std::ranges::find_if(
        runs, [t = trial, n = repeat](const TrialRun& r) { return r.trial == t && r.repeat == n; });
    if (known != runs.end() && !(known->failed() && retry_failed)) continue;
    if (known != runs.end()) runs.erase(known);  // it failed: try it again
    sink.begins(trials[static_cast<size_t>(trial)], repeat, static_cast<int>(runs.size()),
                static_cast<int>(order.size()));
    const TrialRun run = runner.run(trials[static_cast<size_t>(trial)], repeat, cancel);
    if (cancel) break;  // cut short: the trial is trained again
    log.write(to_json(run).dump() + "\n");
    log.sync();
    runs.push_back(run);
    sink.ended(run);
    if (!sink.goes_on()) break;
  }
  return collect(spec, trials, runs);
}

std::vector<std::string> result_rows(const std::string& folder) {
  std::vector<std::string> rows;
  std::ifstream in(fs::path(folder) / "results.jsonl");
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && !in.eof()) rows.push_back(line);  // without a line end it may be incomplete
  return rows;
}

ExperimentResult read_experiment(const std::string& folder, bool cuda) {
  const ExperimentSpec spec = load_experiment((fs::path(folder) / "experiment.json").string());
  const auto trials = trials_of(spec, cuda);
  return collect(spec, trials, results_of(trials, read_rows(folder, trials)));
}

json to_json(const ExperimentResult& result) {
  json trials = json::array();
  for (const TrialResult& t : result.trials) {
    json runs = json::array();
    for (const TrialRun& r : t.runs) runs.push_back(to_json(r));
    trials.push_back({{"label", t.trial.label},
                      {"skipped", t.trial.skipped},
                      {"us_per_step", t.us_per_step},
                      {"low", t.low},
                      {"high", t.high},
                      {"test_accuracy", t.test_accuracy},
                      {"first_loss", t.first_loss},
                      {"allocator_calls_per_step", t.allocator_calls_per_step},
                      {"peak_bytes", t.peak_bytes},
                      {"runs", runs}});
  }
  return {{"experiment", to_json(result.spec)},
          {"device", result.device},
          {"complete", result.complete},
          {"trials", trials}};
}

}  // namespace ws::app
