#include "app/lab/lab_job.h"

#include <QMetaObject>

namespace ws::app {
namespace {

class Forward final : public lab::LabSink {
 public:
  Forward(LabJob* job, std::function<void(lab::LabPoint)> on_point, std::function<void(int, int, QString)> on_progress)
      : job_(job), on_point_(std::move(on_point)), on_progress_(std::move(on_progress)) {}
  void point(const lab::LabPoint& p) override {
    QMetaObject::invokeMethod(
        job_, [f = on_point_, p] { f(p); }, Qt::QueuedConnection);
  }
  void progress(int done, int of, const std::string& what) override {
    QMetaObject::invokeMethod(
        job_, [f = on_progress_, done, of, text = QString::fromStdString(what)] { f(done, of, text); },
        Qt::QueuedConnection);
  }

 private:
  LabJob* job_;
  std::function<void(lab::LabPoint)> on_point_;
  std::function<void(int, int, QString)> on_progress_;
};

}  // namespace

LabJob::~LabJob() { cancel_ = true; }

void LabJob::start(const lab::LabSpec& spec) {
  cancel_ = true;
  thread_ = {};  // waits for the old sweep, which stops within one call
  cancel_ = false;
  running_ = true;
  result_ = {};
  result_.spec = spec;
  const int mine = ++generation_;
  const auto on_point = [this, mine](lab::LabPoint p) {
    if (mine != generation_) return;
    result_.points.push_back(std::move(p));
    emit changed();
  };
  const auto on_progress = [this, mine](int done, int of, const QString& what) {
    if (mine == generation_) emit progressed(done, of, what);
  };
  thread_ = std::jthread([this, spec, mine, on_point, on_progress] {
    lab::LabResult done;
    QString problem;
    try {
      Forward sink(this, on_point, on_progress);
      done = lab::run_lab(spec, cancel_, sink);
    } catch (const std::exception& failure) {
      problem = QString::fromUtf8(failure.what());
    }
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
