// "The same in PyTorch": the shipped script's sweep on a thread of its own, to be laid over ours.
#pragma once
#include <QObject>
#include <atomic>
#include <thread>

#include "engine/lab/lab.h"

namespace ws::app {

class LabTorch : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  ~LabTorch() override { cancel_ = true; }  // the thread is joined with the member
  bool running() const { return running_; }
  void setPython(const QString& python) { python_ = python; }
  void setScript(const QString& script) { script_ = script; }
  void start(const lab::LabSpec& spec);
  void stop() { cancel_ = true; }

 signals:
  void said(const QString& line);
  void measured(const ws::lab::LabResult& result);
  void ended(const QString& problem);  // after measured, or with a sentence

 private:
  void finish(const lab::LabResult& result, const QString& problem);

  QString python_ = "python3", script_;
  std::atomic<bool> cancel_{false};
  bool running_ = false;
  std::jthread thread_;
};

}  // namespace ws::app
