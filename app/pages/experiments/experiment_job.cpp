#include "app/pages/experiments/experiment_job.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "app/core/remote/job_folder.h"
#include "app/core/remote/job_request.h"
#include "engine/devices/devices.h"
#include "profiling/base/json_input.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

QString rows_file(const QString& folder) { return folder + "/results.jsonl"; }

// Run files of trainings and the table. The rows have come already.
RemoteWork::Copies copies_into(const QString& folder) {
  return [folder](const std::string& job, const std::vector<std::string>& files) {
    std::vector<RemoteWork::Copy> copies;
    for (const std::string& file : files) {
      const QString path = QDir(folder).filePath(QString::fromStdString(file));
      const bool table = file == "table.csv" || file == "chart.svg";
      if (!is_plain_name(file) || !(table || file.ends_with(".wsrun")) || (!table && QFileInfo::exists(path))) continue;
      copies.push_back({{{"run", job}, {"folder", "results"}, {"file", file}}, path});
    }
    return copies;
  };
}

}  // namespace

void ExperimentJob::startThere(const std::shared_ptr<RemoteMachine>& machine, const ExperimentSpec& spec, const QString& folder) {
  std::unique_ptr<ExperimentFolder> owned = prepare(spec, folder);
  const nlohmann::json job = experiment_request(spec.title, to_json(spec), rows_);
  const QString name = QString::fromStdString(RemoteRun::new_name(spec.name));
  follow(std::make_unique<RemoteWork>(machine, name, job, copies_into(folder), this), std::move(owned));
}

void ExperimentJob::follow(const std::shared_ptr<RemoteMachine>& machine, const QString& name, const ExperimentSpec& spec, const QString& folder) {
  std::unique_ptr<ExperimentFolder> owned = prepare(spec, folder);
  follow(std::make_unique<RemoteWork>(machine, name, nlohmann::json(), copies_into(folder), this), std::move(owned));
}

// Throws Failure if nothing can be written there, or if another process writes there.
std::unique_ptr<ExperimentFolder> ExperimentJob::prepare(const ExperimentSpec& spec, const QString& folder) {
  folder_ = folder;
  auto owned = std::make_unique<ExperimentFolder>(folder_.toStdString());
  prof::write_whole((folder_ + "/experiment.json").toStdString(), to_json(spec).dump(2) + "\n");
  const std::vector<std::string> known = result_rows(folder_.toStdString());
  rows_ = {known.begin(), known.end()};
  unwritten_.clear();
  return owned;
}

void ExperimentJob::follow(std::unique_ptr<RemoteWork> work, std::unique_ptr<ExperimentFolder> owned) {
  owned_ = std::move(owned);
  RemoteWork* there = there_.follow(std::move(work), [this](const QString& problem) {
    owned_.reset();
    emit ended(problem.isEmpty() ? unwritten_ : problem);
  });
  connect(there, &RemoteWork::received, this, &ExperimentJob::keepRows);
  connect(there, &RemoteWork::printed, this, &ExperimentJob::printed);
}

// Rows of other experiments and broken ones are left out when the results are read.
void ExperimentJob::keepRows(const std::vector<std::string>& results) {
  QByteArray lines;
  for (const std::string& text : results) {
    const nlohmann::json parsed = parse_json_or_null(text);
    const std::string row = parsed.is_object() && parsed.contains("row") && parsed["row"].is_string()
                                ? parsed["row"].get<std::string>()
                                : "";
    if (!row.empty() && row.find('\n') == row.npos && rows_.insert(row).second)
      lines += QByteArray::fromStdString(row + "\n");
  }
  if (lines.isEmpty()) return;
  QFile file(rows_file(folder_));
  const qint64 before = QFileInfo(file).size();
  if (!file.open(QIODevice::ReadWrite | QIODevice::Append) || file.write(lines) != lines.size() || !file.flush()) {
    unwritten_ = tr("%1 cannot be written: %2").arg(file.fileName(), file.errorString());
    file.resize(before);  // no half line
  }
  emit trained();
}

void ExperimentJob::cancel() {
  job_.cancel();
  there_.stop();
}

void ExperimentJob::leave() {
  if (!there_.leave()) return;
  owned_.reset();
  emit ended({});
}

void ExperimentJob::start(const ExperimentSpec& spec, const QString& folder) {
  if (running()) return;
  folder_ = folder;
  struct Forward final : ExperimentSink {
    Forward(ExperimentJob* whole, const Job::Side& its_side) : job(whole), side(its_side) {}
    void begins(const Trial& trial, int repeat, int done, int of) override {
      side.post([job = job, label = QString::fromStdString(trial.label), repeat, done, of] {
        emit job->began(label, repeat, done, of);
      });
    }
    void ended(const TrialRun&) override {
      side.post([job = job] { emit job->trained(); });
    }
    ExperimentJob* job;
    const Job::Side& side;
  };
  const auto work = [this, spec, path = folder.toStdString()](const Job::Side& side) {
    Forward sink(this, side);
    if (!run_experiment(spec, path, *side.cancelled(), sink).complete && gpu_lost())
      throw Failure("A fault on the GPU ended a training. Run the experiment again and it goes on with the next one.");
  };
  job_.start(work, [this](const QString& problem) { emit ended(problem); });
}

}  // namespace ws::app
