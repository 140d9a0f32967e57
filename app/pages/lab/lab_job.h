// Runs a sweep on its own thread and reports to the window's thread.
#pragma once
#include "app/workspace/job.h"
#include "engine/lab/lab.h"

namespace ws::app {

class LabJob : public QObject {
  Q_OBJECT
 public:
  explicit LabJob(QObject* parent = nullptr) : QObject(parent) {}
  // Replaces a running sweep. If there is a path, the timeline of every point is recorded there.
  void start(const lab::LabSpec& spec, const QString& path = {});
  void cancel() { job_.cancel(); }
  static void recover(const QString& folder);  // restores the sweeps of programs that were killed
  bool running() const { return job_.running(); }
  const lab::LabResult& result() const { return result_; }
  const QString& path() const { return path_; }  // run file; empty if there is none

 signals:
  void changed();  // a new point
  void progressed(int done, int of, const QString& what);
  void ended(const QString& problem);  // empty if all went well

 private:
  lab::LabResult result_;
  QString path_;
  Job job_;
};

}  // namespace ws::app
