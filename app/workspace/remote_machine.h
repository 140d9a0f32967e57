// Another machine that the window trains on: its line, what it has, and whether it can be reached now.
#pragma once
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "app/core/remote/remote_link.h"
#include "app/workspace/job.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

// What goes on there, as it was begun.
struct RemoteJobInfo {
  QString name, title, kind;  // "train", "record" or "experiment"
  RunSpec spec;               // of a training
};
std::vector<RemoteJobInfo> jobs_there(RemoteLink& link);  // waits; throws Failure

class RemoteMachine : public QObject {
  Q_OBJECT
 public:
  explicit RemoteMachine(const QString& address);  // throws Failure when it is none
  RemoteLink& link() { return *link_; }
  QString place() const;
  QString address() const;
  QString device() const { return device_; }  // "NVIDIA H200"; empty: not known yet
  bool up() const { return up_; }
  QString text() const;                       // "gpu7 · NVIDIA H200", or why the line is down
  const std::vector<RemoteJobInfo>& running() const { return running_; }  // as it was when the line came up

 signals:
  void ready();                           // it has answered what it has and what runs there
  void refused(const QString& sentence);  // no line will come about
  void changed();                         // text() is another
  void said(const QString& sentence, bool problem);  // the line was cut, or stands again

 private:
  void look();
  void sayWhatChanged(LineState now);

  std::shared_ptr<RemoteLink> link_;
  QString device_, text_;
  bool up_ = false, asked_ = false;
  LineState state_ = LineState::Connecting;
  std::vector<RemoteJobInfo> running_;
  QTimer timer_;
  Job asking_;
};

QStringList known_hosts();  // of ~/.ssh/config, in its order

}  // namespace ws::app
