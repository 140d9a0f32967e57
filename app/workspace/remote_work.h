// An experiment, a sweep or PyTorch on another machine: passes on what it reports, and copies its files here when it
// ends.
#pragma once
#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/core/remote/remote_run.h"
#include "app/workspace/job.h"
#include "app/workspace/printed_lines.h"
#include "app/workspace/remote_machine.h"

namespace ws::app {

class RemoteWork : public QObject {
  Q_OBJECT
 public:
  struct Copy {
    nlohmann::json what;  // as fetch_file() takes it
    QString path;         // here
  };
  // Lists which of the files that the job left are copied to where.
  using Copies = std::function<std::vector<Copy>(const std::string& job, const std::vector<std::string>& files)>;

  // `job`: as RemoteRun::start() takes it; null: it runs there already.
  RemoteWork(std::shared_ptr<RemoteMachine> machine, const QString& name, const nlohmann::json& job, Copies copies,
             QObject* parent);
  QString place() const { return machine_->place(); }
  const std::string& name() const { return run_.name(); }
  // Asks the job to stop. Once it has ended, stops copying its files. If the line is cut, a second call ends the work
  // here.
  void stop();

 signals:
  void received(const std::vector<std::string>& json_texts);  // everything since the last time
  void printed(const QString& line);
  void ended(const QString& problem);  // all files are here; empty: no problem. It may be deleted then

 private:
  void poll();
  void take(const RemoteUpdate& update);
  void copyFiles();

  std::shared_ptr<RemoteMachine> machine_;
  RemoteRun run_;
  Copies copies_;
  QTimer timer_;
  Job copying_;
  QString problem_;
  PrintedLines lines_;
  std::vector<std::string> files_;
  std::optional<int> exit_status_;
  bool stopped_ = false;
};

// The one job that a page follows on another machine, or none.
class FollowedWork {
 public:
  using Ended = std::function<void(const QString& problem)>;
  // Replaces what is followed. `ended` is called when nothing is followed any more, but not after leave().
  RemoteWork* follow(std::unique_ptr<RemoteWork> work, Ended ended);
  explicit operator bool() const { return work_ != nullptr; }
  QString place() const { return work_ ? work_->place() : QString(); }  // empty if nothing is followed
  void stop();
  bool leave();  // the job continues there; false if nothing was followed

 private:
  std::unique_ptr<RemoteWork> work_;
};

}  // namespace ws::app
