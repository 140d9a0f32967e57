// "The same in PyTorch": runs the shipped script's sweep on its own thread, as an overlay for ours.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "app/workspace/job.h"
#include "app/workspace/remote_work.h"
#include "engine/lab/lab.h"

namespace ws::app {

class LabTorch : public QObject {
  Q_OBJECT
 public:
  explicit LabTorch(QObject* parent = nullptr) : QObject(parent) {}
  bool running() const { return job_.running() || there_; }
  void setPython(const QString& python) { python_ = python; }
  void setScript(const QString& script) { script_ = script; }
  // From now on PyTorch runs on that machine; null: here.
  void setMachine(std::shared_ptr<RemoteMachine> machine) { machine_ = std::move(machine); }
  void start(const lab::LabSpec& spec);
  void follow(const QString& name);  // one that already runs on the machine
  void stop();
  void leave();           // stops following; it continues there
  QString place() const { return there_.place(); }  // the other machine it runs on; empty if it runs here

 signals:
  void said(const QString& line);
  void measured(const ws::lab::LabResult& result);
  void ended(const QString& problem);  // after measured(), or with an error sentence

 private:
  void startHere(const lab::LabSpec& spec);
  void follow(const QString& name, const nlohmann::json& job);
  void take(const std::vector<std::string>& results);

  QString python_ = "python3", script_;
  Job job_;
  std::shared_ptr<RemoteMachine> machine_;
  FollowedWork there_;
};

}  // namespace ws::app
