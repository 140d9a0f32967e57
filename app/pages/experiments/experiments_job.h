// An experiment on a thread of its own; news comes to the window's thread.
#pragma once
#include <QObject>
#include <atomic>
#include <thread>

#include "app/core/experiments/experiment.h"

namespace ws::app {

class ExperimentJob : public QObject {
  Q_OBJECT
 public:
  explicit ExperimentJob(QObject* parent = nullptr) : QObject(parent) {}
  ~ExperimentJob() override { cancel_ = true; }                   // the thread is joined with the member
  void start(const ExperimentSpec& spec, const QString& folder);  // only when nothing runs
  void cancel() { cancel_ = true; }
  bool running() const { return running_; }
  const QString& folder() const { return folder_; }

 signals:
  void began(const QString& label, int repeat, int done, int of);
  void trained();                      // one more line in the folder's results
  void ended(const QString& problem);  // empty: it went well, or was stopped

 private:
  std::atomic<bool> cancel_{false};
  bool running_ = false;
  QString folder_;
  std::jthread thread_;
};

}  // namespace ws::app
