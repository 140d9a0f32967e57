// Runs one experiment, on its own thread or on another machine, and reports to the window's thread.
#pragma once
#include <QObject>
#include <QString>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/core/experiments/experiment.h"
#include "app/workspace/job.h"
#include "app/workspace/remote_work.h"

namespace ws::app {

class ExperimentJob : public QObject {
  Q_OBJECT
 public:
  explicit ExperimentJob(QObject* parent = nullptr) : QObject(parent) {}
  void start(const ExperimentSpec& spec, const QString& folder);  // only while nothing runs
  // Trains on that machine. New results are added to `folder`; the results that it has are not measured again.
  void startThere(const std::shared_ptr<RemoteMachine>& machine, const ExperimentSpec& spec, const QString& folder);
  // Follows an experiment that already runs there.
  void follow(const std::shared_ptr<RemoteMachine>& machine, const QString& name, const ExperimentSpec& spec, const QString& folder);
  void cancel();
  void leave();  // stops following; the experiment continues there
  bool running() const { return job_.running() || there_; }
  QString place() const { return there_.place(); }  // the other machine it runs on; empty if it runs here
  const QString& folder() const { return folder_; }

 signals:
  void began(const QString& label, int repeat, int done, int of);
  void printed(const QString& line);   // by an experiment on another machine
  void trained();                      // the results in the folder have one more line
  void ended(const QString& problem);  // empty if it went well or was stopped

 private:
  std::unique_ptr<ExperimentFolder> prepare(const ExperimentSpec& spec, const QString& folder);
  void follow(std::unique_ptr<RemoteWork> work, std::unique_ptr<ExperimentFolder> owned);
  void keepRows(const std::vector<std::string>& results);

  QString folder_, unwritten_;  // unwritten_: why rows could not be kept
  Job job_;
  FollowedWork there_;
  std::unique_ptr<ExperimentFolder> owned_;  // while it runs on another machine
  std::set<std::string> rows_;               // lines of results.jsonl in the folder
};

}  // namespace ws::app
