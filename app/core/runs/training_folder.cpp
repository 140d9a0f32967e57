#include "app/core/runs/training_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "app/core/runs/data_shape.h"
#include "app/core/runs/machine.h"
#include "profiling/base/json_input.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kHeader = "step,epoch,wall_s,train_loss,train_accuracy,test_loss,test_accuracy\n";

json finite(double value) { return std::isfinite(value) ? json(value) : json(); }

std::string cell(double value) { return std::isnan(value) ? "" : formatted("{:.9g}", value); }

}  // namespace

json summary_json(const Summary& s, const prof::RunSummary& account) {
  const prof::StepTime& time = account.step_time;
  json out = {{"status", to_string(s.status)},
              {"steps", s.steps},
              {"epochs", s.epochs},
              {"final_train_loss", finite(s.final_train_loss)},
              {"test_loss", finite(s.test_loss)},
              {"test_accuracy", finite(s.test_accuracy)},
              {"wall_s", finite(s.wall_s)},
              {"step_time_us",
               {{"median", finite(time.us.value)}, {"p5", finite(time.p5_us)}, {"p95", finite(time.p95_us)}}},
              {"mean_of_whole_run_us", finite(s.us_per_step)},
              {"samples_per_s", finite(rows_of_a_step(s.spec) * 1e6 / time.us.value)},
              {"peak_bytes", s.peak_bytes},
              {"allocator_calls",
               {{"allocate", s.calls.allocate},
                {"free", s.calls.free},
                {"device_allocate", s.calls.device_allocate},
                {"device_free", s.calls.device_free}}},
              {"device", s.device},
              {"spec", to_json(s.spec)},
              {"machine", account.machine.empty() ? machine_json() : parse_json_or_null(account.machine)}};
  if (account.tracing_cost.known())
    out["tracing_cost"] = {{"share", account.tracing_cost.value}, {"half_width", account.tracing_cost.half_width}};
  if (!s.message.empty()) out["message"] = s.message;
  return out;
}

TrainingFolder::TrainingFolder(const std::string& folder, int64_t steps_per_epoch, int64_t keep_steps)
    : folder_(folder),
      metrics_path_(folder + "/metrics.csv"),
      steps_per_epoch_(std::max<int64_t>(1, steps_per_epoch)),
      keep_steps_(keep_steps) {
  std::error_code error;
  made_ = fs::create_directories(folder, error) || (!error && fs::is_empty(folder, error));
  if (error) throw Failure(folder + ": cannot be made: " + error.message());
  // Report it before the training, not after it.
  if (access(folder.c_str(), W_OK | X_OK) != 0) throw Failure(folder + ": cannot be written: " + std::strerror(errno));
  for (const std::string& path : {metrics_path_, folder + "/summary.json", checkpoint_path(folder)}) prof::file_to_write(path);
  if (fs::exists(metrics_path_, error) && access(metrics_path_.c_str(), W_OK) != 0)
    throw Failure(metrics_path_ + ": cannot be written: " + std::strerror(errno));
  owned_ = std::make_unique<Ownership>(folder);
}

std::string TrainingFolder::make_new(const std::string& name) {
  std::error_code error;
  fs::create_directories(fs::path(name).parent_path(), error);
  std::string folder = name;
  for (int i = 2; !fs::create_directory(folder, error); ++i) {
    if (error) throw Failure(folder + ": cannot be made: " + error.message());
    folder = name + "-" + std::to_string(i);
  }
  return folder;
}

void TrainingFolder::begin() {
  std::error_code error;
  if (keep_steps_ == 0)
    for (const std::string& path : {checkpoint_path(folder_), folder_ + "/summary.json"})
      if (!fs::remove(link_target(path), error) && error) throw Failure(path + ": cannot be replaced: " + error.message());
  open();
}

void TrainingFolder::open() {
  if (keep_steps_ > 0) keep_rows();
  metrics_.open(metrics_path_, keep_steps_ > 0 ? std::ios::app : std::ios::trunc);
  if (!metrics_) throw Failure(metrics_path_ + ": cannot be written: " + std::strerror(errno));
  if (keep_steps_ == 0) metrics_ << kHeader;
}

// A killed run may have written more rows than its last checkpoint has. A power cut leaves zeros in between.
void TrainingFolder::keep_rows() const {
  std::string kept = kHeader;
  {
    std::ifstream old(metrics_path_);
    if (!old && fs::exists(metrics_path_)) throw Failure(metrics_path_ + ": cannot be read: " + std::strerror(errno));
    std::string line;
    std::getline(old, line);
    for (int64_t last = -1; std::getline(old, line) && last + 1 < keep_steps_;) {
      const int64_t step = std::strtoll(line.c_str(), nullptr, 10);
      if (step <= last || step >= keep_steps_) continue;
      kept += line + "\n";
      last = step;
    }
    if (old.bad()) throw Failure(metrics_path_ + ": cannot be read to its end.");
  }
  prof::write_whole(metrics_path_, kept);
}

void TrainingFolder::add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs) {
  for (const StepResult& step : steps) held_.push_back({step, step.step / steps_per_epoch_ + 1, {}});
  auto epoch = epochs.begin();
  for (Row& row : held_) {
    while (epoch != epochs.end() && epoch->step < row.result.step + 1) ++epoch;
    if (epoch != epochs.end() && epoch->step == row.result.step + 1) row.test = epoch->test;
  }
  // If an epoch ends at the newest row, the row waits, because its test values come later.
  const bool wait = !held_.empty() && ends_epoch(held_.back());
  const auto ready = held_.end() - (wait ? 1 : 0);
  if (ready == held_.begin()) return;
  if (!metrics_.is_open()) open();
  for (auto row = held_.begin(); row != ready; ++row) write(*row);
  held_.erase(held_.begin(), ready);
  metrics_.flush();
}

void TrainingFolder::write(const Row& row) {
  const StepResult& r = row.result;
  metrics_ << r.step << ',' << row.epoch << ',' << cell(r.finished_s) << ',' << cell(static_cast<double>(r.loss))
           << ',' << cell(static_cast<double>(r.accuracy)) << ',';
  if (row.test)
    metrics_ << cell(row.test->loss) << ',' << cell(row.test->accuracy);
  else
    metrics_ << ',';
  metrics_ << '\n';
}

void TrainingFolder::finish(const Summary& summary, const prof::RunSummary& account) {
  if (summary.steps <= keep_steps_) {
    std::error_code error;
    if (metrics_.is_open() && keep_steps_ == 0) {
      metrics_.close();
      fs::remove(metrics_path_, error);
    }
    if (keep_steps_ > 0 && summary.status != RunStatus::Failed && !has_summary_of(summary.steps))
      write_summary(summary, account);  // the earlier write failed
    owned_.reset();
    if (made_) fs::remove(folder_, error);  // removes only an empty folder
    return;
  }
  if (!metrics_.is_open()) open();
  if (!held_.empty() && !held_.back().test && std::isfinite(summary.test_loss) &&
      held_.back().result.step + 1 == summary.steps)
    held_.back().test = Evaluation{summary.test_loss, summary.test_accuracy, 0};
  for (const Row& row : held_) write(row);
  held_.clear();
  metrics_.close();
  if (!metrics_) throw Failure(metrics_path_ + ": could not be written completely; is the disk full?");
  prof::SyncedFile(metrics_path_, prof::SyncedFile::Begin::AtEnd).close();
  write_summary(summary, account);
  owned_.reset();
}

bool TrainingFolder::has_summary_of(int64_t steps) const {
  try {
    const json kept = read_json(folder_ + "/summary.json");
    return JsonInput(kept, "summary").at("steps").whole(-1) == steps;
  } catch (const Failure&) {
    return false;
  }
}

void TrainingFolder::write_summary(const Summary& summary, const prof::RunSummary& account) const {
  prof::write_whole(folder_ + "/summary.json", summary_json(summary, account).dump(2) + '\n');
}

}  // namespace ws::app
