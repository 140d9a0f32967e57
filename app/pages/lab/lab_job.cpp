#include "app/pages/lab/lab_job.h"

#include <QDir>
#include <QFile>
#include <QScopeGuard>
#include <nlohmann/json.hpp>

#include "app/core/lab/recorded_lab.h"
#include "app/core/remote/job_request.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {
using nlohmann::json;

namespace {

QString part_of(const QString& path) { return path + ".part"; }

}  // namespace

void LabJob::recover(const QString& folder) {
  for (const QFileInfo& part : QDir(folder).entryInfoList({"lab-*" + part_of("")}, QDir::Files)) {
    try {
      if (!owner_of(part.filePath().toStdString()).empty()) continue;
      prof::read_run_summary(part.filePath().toStdString());
    } catch (const std::exception&) {
      continue;  // it did not even begin
    }
    const QString whole = part.filePath().chopped(part_of("").size());
    prof::move_database(part.filePath().toStdString(), whole.toStdString());
  }
}

void LabJob::begin(const lab::LabSpec& spec, const QString& path) {
  job_.drop();  // the old sweep stops within one call, before the new one begins
  there_.stop();
  there_.leave();
  result_ = {};
  result_.spec = spec;
  whole_.reset();
  path_ = path;
}

void LabJob::start(const lab::LabSpec& spec, const QString& path) {
  begin(spec, path);
  if (!machine_) return startHere();
  follow(QString::fromStdString(RemoteRun::new_name("lab-" + std::string(to_string(spec.operation)))),
         lab_request(spec, !path.isEmpty()));
}

void LabJob::follow(const QString& name, const lab::LabSpec& spec, const QString& path) {
  begin(spec, path);
  follow(name, json());
}

void LabJob::follow(const QString& name, const json& job) {
  const auto run_file = [path = path_](const std::string& run, const std::vector<std::string>& files) {
    std::vector<RemoteWork::Copy> copies;
    if (!path.isEmpty() && !files.empty()) copies.push_back({{{"file", run + ".wsrun"}}, path});
    return copies;
  };
  const auto ended_there = [this](const QString& problem) {
    if (whole_) result_ = std::move(*whole_);
    if (!QFile::exists(path_)) path_.clear();  // not copied
    emit changed();
    emit ended(problem);
  };
  RemoteWork* there = there_.follow(std::make_unique<RemoteWork>(machine_, name, job, run_file, this), ended_there);
  connect(there, &RemoteWork::received, this, &LabJob::take);
}

void LabJob::take(const std::vector<std::string>& results) {
  bool points = false;
  for (const std::string& text : results) try {
      const json parsed = parse_json(text, "A point");
      const JsonInput in(parsed, "");
      if (in.at("whole").there()) whole_ = lab::lab_result_from_json(in.at("whole").value());
      if (in.at("what").there())
        emit progressed(static_cast<int>(in.at("done").whole(0, 0, 1 << 30)),
                        static_cast<int>(in.at("of").whole(0, 0, 1 << 30)),
                        QString::fromStdString(in.at("what").text()));
      if (!in.at("lab").there()) continue;
      const lab::LabResult one = lab::lab_result_from_json(in.at("lab").value());
      result_.ceilings = one.ceilings;
      result_.points.insert(result_.points.end(), one.points.begin(), one.points.end());
      points = true;
    } catch (const std::exception&) {  // a newer version may tell more; the whole result comes at the end
    }
  if (points) emit changed();
}

void LabJob::cancel() {
  job_.cancel();
  there_.stop();
}

void LabJob::leave() {
  if (!there_.leave()) return;
  path_.clear();
  emit ended({});
}

void LabJob::startHere() {
  struct Forward final : lab::LabSink {
    Forward(LabJob* whole, const Job::Side& its_side) : job(whole), side(its_side) {}
    void point(const lab::LabPoint& p) override {
      side.post([job = job, p] {
        job->result_.points.push_back(p);
        emit job->changed();
      });
    }
    void progress(int done, int of, const std::string& what) override {
      side.post([job = job, done, of, text = QString::fromStdString(what)] { emit job->progressed(done, of, text); });
    }
    void ceilings(const lab::Ceilings& c) override {
      side.post([job = job, c] { job->result_.ceilings = c; });
    }
    LabJob* job;
    const Job::Side& side;
  };
  // The file has another name until it is complete, because the library shows only finished sweeps.
  const std::string file = path_.isEmpty() ? std::string() : part_of(path_).toStdString();
  const auto whole = std::make_shared<lab::LabResult>();
  const auto work = [this, spec = result_.spec, file, path = path_, whole](const Job::Side& side) {
    const auto keep = qScopeGuard([&] {
      if (!file.empty()) QFile::rename(part_of(path), path);
    });
    Forward sink(this, side);
    *whole = run_sweep(spec, file, *side.cancelled(), sink);
  };
  job_.start(work, [this, whole](const QString& problem) {
    if (problem.isEmpty()) result_ = *whole;
    emit changed();
    emit ended(problem);
  });
}

}  // namespace ws::app
