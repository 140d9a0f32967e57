// "Run the same in PyTorch": the script on a thread of its own, its result in the library.
#pragma once
#include <QObject>
#include <atomic>
#include <thread>

#include "engine/plan/run_spec.h"

namespace ws::app {

class Workspace;

class TorchJob : public QObject {
  Q_OBJECT
 public:
  TorchJob(Workspace& workspace, QObject* parent);
  ~TorchJob() override { cancel_ = true; }  // the thread is joined with the member
  bool running() const { return running_; }
  void setPython(const QString& python) { python_ = python; }
  void setScript(const QString& script) { script_ = script; }

 public slots:
  void start(const ws::RunSpec& spec);
  void stop() { cancel_ = true; }

 signals:
  void ended(const QString& problem);
  void runningChanged();

 private:
  void finish(const QString& path, const QString& problem);

  Workspace& workspace_;
  QString python_, script_;
  std::atomic<bool> cancel_{false};
  bool running_ = false;
  std::jthread thread_;
};

}  // namespace ws::app
