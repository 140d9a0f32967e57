// "Run the same in PyTorch": runs the script on its own thread and adds the result to the library.
#pragma once
#include <memory>
#include <string>

#include "app/workspace/job.h"
#include "app/workspace/remote_work.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

class Workspace;
struct RemoteJobInfo;

class TorchJob : public QObject {
  Q_OBJECT
 public:
  TorchJob(Workspace& workspace, QObject* parent);
  bool running() const { return job_.running() || there_; }
  QString place() const { return there_.place(); }  // the other machine it trains on; empty if it trains here
  void follow(const RemoteJobInfo& job);  // one that already trains on the connected machine
  void setPython(const QString& python) { python_ = python; }
  void setScript(const QString& script) { script_ = script; }

 public slots:
  void start(const ws::RunSpec& spec);
  void stop();
  void leave();  // stops following; it continues there

 signals:
  void ended(const QString& problem);
  void runningChanged();

 private:
  void startHere(const RunSpec& spec, const QString& path);
  void startThere(const QString& name, const nlohmann::json& job, const QString& path);
  void begin();
  QString freshPath() const;  // of a new run file in the library
  void finish(const QString& path, const QString& problem);

  Workspace& workspace_;
  QString python_, script_;
  Job job_;
  FollowedWork there_;
};

}  // namespace ws::app
