#include "app/pages/lab/lab_job.h"

#include <QDir>
#include <QFile>
#include <QMetaObject>

#include "app/core/lab/recorded_lab.h"
#include "profiling/base/ownership.h"
#include "profiling/base/process.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {
namespace {

class Forward final : public lab::LabSink {
 public:
  using OnPoint = std::function<void(lab::LabPoint)>;
  using OnProgress = std::function<void(int, int, QString)>;
  using OnCeilings = std::function<void(lab::Ceilings)>;
  Forward(LabJob* job, OnPoint on_point, OnProgress on_progress, OnCeilings on_ceilings)
      : job_(job),
        on_point_(std::move(on_point)),
        on_progress_(std::move(on_progress)),
        on_ceilings_(std::move(on_ceilings)) {}
  void point(const lab::LabPoint& p) override {
    QMetaObject::invokeMethod(
        job_, [f = on_point_, p] { f(p); }, Qt::QueuedConnection);
  }
  void progress(int done, int of, const std::string& what) override {
    QMetaObject::invokeMethod(
        job_, [f = on_progress_, done, of, text = QString::fromStdString(what)] { f(done, of, text); },
        Qt::QueuedConnection);
  }

  void ceilings(const lab::Ceilings& c) override {
    QMetaObject::invokeMethod(
        job_, [f = on_ceilings_, c] { f(c); }, Qt::QueuedConnection);
  }

 private:
  LabJob* job_;
  OnPoint on_point_;
  OnProgress on_progress_;
  OnCeilings on_ceilings_;
};

QString part_of(const QString& path) { return path + ".part"; }

}  // namespace

void LabJob::recover(const QString& folder) {
  for (const QFileInfo& part : QDir(folder).entryInfoList({"lab-*" + part_of("")}, QDir::Files)) {
    try {
      if (!owner_of(part.filePath().toStdString()).empty()) continue;
      prof::read_run_summary(part.filePath().toStdString());
    } catch (const std::exception&) {
      continue;  // not even begun
    }
    const QString whole = part.filePath().chopped(part_of("").size());
    for (const char* log : {"", "-wal", "-shm"}) QFile::rename(part.filePath() + log, whole + log);
  }
}

LabJob::~LabJob() { cancel_ = true; }

void LabJob::start(const lab::LabSpec& spec, const QString& path) {
  cancel_ = true;
  thread_ = {};  // waits for the old sweep, which stops within one call
  cancel_ = false;
  running_ = true;
  result_ = {};
  result_.spec = spec;
  path_ = path;
  const int mine = ++generation_;
  const auto on_point = [this, mine](lab::LabPoint p) {
    if (mine != generation_) return;
    result_.points.push_back(std::move(p));
    emit changed();
  };
  const auto on_progress = [this, mine](int done, int of, const QString& what) {
    if (mine == generation_) emit progressed(done, of, what);
  };
  const auto on_ceilings = [this, mine](const lab::Ceilings& c) {
    if (mine == generation_) result_.ceilings = c;
  };
  // The file has another name until it is whole: the library shows finished sweeps only.
  const std::string file = path.isEmpty() ? std::string() : part_of(path).toStdString();
  thread_ = std::jthread([this, spec, mine, on_point, on_progress, on_ceilings, file, path] {
    lab::LabResult done;
    QString problem;
    try {
      Forward sink(this, on_point, on_progress, on_ceilings);
      done = file.empty() ? lab::run_lab(spec, cancel_, sink) : run_recorded_lab(spec, file, cancel_, sink);
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
    if (!file.empty()) QFile::rename(part_of(path), path);
    QMetaObject::invokeMethod(
        this,
        [this, mine, done, problem] {
          if (mine != generation_) return;
          running_ = false;
          if (problem.isEmpty()) result_ = done;
          emit changed();
          emit ended(problem);
        },
        Qt::QueuedConnection);
  });
}

}  // namespace ws::app
