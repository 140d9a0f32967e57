// "The same in PyTorch": runs the shipped script's sweep on its own thread, as an overlay for ours.
#pragma once
#include "app/workspace/job.h"
#include "engine/lab/lab.h"

namespace ws::app {

class LabTorch : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  bool running() const { return job_.running(); }
  void setPython(const QString& python) { python_ = python; }
  void setScript(const QString& script) { script_ = script; }
  void start(const lab::LabSpec& spec);
  void stop() { job_.cancel(); }

 signals:
  void said(const QString& line);
  void measured(const ws::lab::LabResult& result);
  void ended(const QString& problem);  // after measured(), or with an error sentence

 private:
  QString python_ = "python3", script_;
  Job job_;
};

}  // namespace ws::app
