// "Run the same in PyTorch": runs the script on its own thread and adds the result to the library.
#pragma once
#include "app/workspace/job.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

class Workspace;

class TorchJob : public QObject {
  Q_OBJECT
 public:
  TorchJob(Workspace& workspace, QObject* parent);
  bool running() const { return job_.running(); }
  void setPython(const QString& python) { python_ = python; }
  void setScript(const QString& script) { script_ = script; }

 public slots:
  void start(const ws::RunSpec& spec);
  void stop() { job_.cancel(); }

 signals:
  void ended(const QString& problem);
  void runningChanged();

 private:
  void finish(const QString& path, const QString& problem);

  Workspace& workspace_;
  QString python_, script_;
  Job job_;
};

}  // namespace ws::app
