#include "app/pages/lab/lab_job.h"

#include <QDir>
#include <QFile>
#include <QScopeGuard>

#include "app/core/lab/recorded_lab.h"
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {
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
    for (const char* log : {"", "-wal", "-shm"}) QFile::rename(part.filePath() + log, whole + log);
  }
}

void LabJob::start(const lab::LabSpec& spec, const QString& path) {
  job_.drop();  // the old sweep stops within one call, before the new one begins
  result_ = {};
  result_.spec = spec;
  path_ = path;

  struct Forward final : lab::LabSink {
    Forward(LabJob* whole, const Job::Side& its_side) : job(whole), side(its_side) {}
    void point(const lab::LabPoint& p) override {
      side.tell([job = job, p] {
        job->result_.points.push_back(p);
        emit job->changed();
      });
    }
    void progress(int done, int of, const std::string& what) override {
      side.tell([job = job, done, of, text = QString::fromStdString(what)] { emit job->progressed(done, of, text); });
    }
    void ceilings(const lab::Ceilings& c) override {
      side.tell([job = job, c] { job->result_.ceilings = c; });
    }
    LabJob* job;
    const Job::Side& side;
  };
  // The file has another name until it is complete, because the library shows only finished sweeps.
  const std::string file = path.isEmpty() ? std::string() : part_of(path).toStdString();
  const auto whole = std::make_shared<lab::LabResult>();
  const auto work = [this, spec, file, path, whole](const Job::Side& side) {
    const auto keep = qScopeGuard([&] {
      if (!file.empty()) QFile::rename(part_of(path), path);
    });
    Forward sink(this, side);
    *whole = file.empty() ? lab::run_lab(spec, *side.cancelled(), sink)
                          : run_recorded_lab(spec, file, *side.cancelled(), sink);
  };
  job_.start(work, [this, whole](const QString& problem) {
    if (problem.isEmpty()) result_ = *whole;
    emit changed();
    emit ended(problem);
  });
}

}  // namespace ws::app
