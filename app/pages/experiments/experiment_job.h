// Runs an experiment on its own thread and reports to the window's thread.
#pragma once
#include "app/core/experiments/experiment.h"
#include "app/workspace/job.h"

namespace ws::app {

class ExperimentJob : public QObject {
  Q_OBJECT
 public:
  explicit ExperimentJob(QObject* parent = nullptr) : QObject(parent) {}
  void start(const ExperimentSpec& spec, const QString& folder);  // only while nothing runs
  void cancel() { job_.cancel(); }
  bool running() const { return job_.running(); }
  const QString& folder() const { return folder_; }

 signals:
  void began(const QString& label, int repeat, int done, int of);
  void trained();                      // the results in the folder have one more line
  void ended(const QString& problem);  // empty if it went well or was stopped

 private:
  QString folder_;
  Job job_;
};

}  // namespace ws::app
