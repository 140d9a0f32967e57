// Runs a sweep, on its own thread or on another machine, and reports to the window's thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/workspace/job.h"
#include "app/workspace/remote_work.h"
#include "engine/lab/lab.h"

namespace ws::app {

class LabJob : public QObject {
  Q_OBJECT
 public:
  explicit LabJob(QObject* parent = nullptr) : QObject(parent) {}
  // From now on sweeps run on that machine; null: here.
  void setMachine(std::shared_ptr<RemoteMachine> machine) { machine_ = std::move(machine); }
  // Replaces a running sweep. If there is a path, the timeline of every point is recorded there.
  void start(const lab::LabSpec& spec, const QString& path = {});
  // Follows a sweep that already runs on the machine.
  void follow(const QString& name, const lab::LabSpec& spec, const QString& path);
  void cancel();
  void leave();                                // stops following; the sweep continues there
  static void recover(const QString& folder);  // restores the sweeps of programs that were killed
  bool running() const { return job_.running() || there_; }
  QString place() const { return there_.place(); }  // the other machine it runs on; empty if it runs here
  const lab::LabResult& result() const { return result_; }
  const QString& path() const { return path_; }  // run file; empty if there is none

 signals:
  void changed();  // a new point
  void progressed(int done, int of, const QString& what);
  void ended(const QString& problem);  // empty if all went well

 private:
  void begin(const lab::LabSpec& spec, const QString& path);
  void startHere();
  void follow(const QString& name, const nlohmann::json& job);
  void take(const std::vector<std::string>& results);

  lab::LabResult result_;
  std::optional<lab::LabResult> whole_;  // from another machine, at the end
  QString path_;
  Job job_;
  std::shared_ptr<RemoteMachine> machine_;
  FollowedWork there_;
};

}  // namespace ws::app
