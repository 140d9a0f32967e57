// A sweep on a thread of its own; news comes to the window's thread.
#pragma once
#include "app/workspace/job.h"
#include "engine/lab/lab.h"

namespace ws::app {

class LabJob : public QObject {
  Q_OBJECT
 public:
  explicit LabJob(QObject* parent = nullptr) : QObject(parent) {}
  // In place of what runs. With a path the timeline of every point is recorded there.
  void start(const lab::LabSpec& spec, const QString& path = {});
  void cancel() { job_.cancel(); }
  static void recover(const QString& folder);  // sweeps of programs that were killed, as far as they came
  bool running() const { return job_.running(); }
  const lab::LabResult& result() const { return result_; }
  const QString& path() const { return path_; }  // of the run file; empty: none

 signals:
  void changed();  // a point came
  void progressed(int done, int of, const QString& what);
  void ended(const QString& problem);  // empty: all went well

 private:
  lab::LabResult result_;
  QString path_;
  Job job_;
};

}  // namespace ws::app
