// Which machine the window trains on: connects to another one, comes back to what runs there, takes its run files in.
#pragma once
#include <QObject>
#include <memory>

#include "app/workspace/workspace.h"

namespace ws::app {

class NoticeBar;
class RemoteRunsDialog;
class ServerCopy;

class MachineActions : public QObject {
  Q_OBJECT
 public:
  MachineActions(QWidget* window, Workspace& workspace, NoticeBar* notice);
  void askForMachine();
  RemoteRunsDialog* showRunsThere();  // nullptr: no machine is connected, which is said
  void connectTo(const QString& address);  // empty: this machine
  const RemoteMachine* machine() const { return machine_.get(); }

 signals:
  void changed();  // what the corner says of the machine

 private:
  void use(const std::shared_ptr<RemoteMachine>& machine);
  void watch(const RemoteJobInfo& job);
  void ready();
  void refused(const QString& sentence);
  void askToCopy(const QString& address);
  void copyAndConnect(const ServerCopy& copy, const QString& address);
  void arrived(Run* run, const QString& path);

  QWidget* window_;
  Workspace& workspace_;
  NoticeBar* notice_;
  std::shared_ptr<RemoteMachine> machine_;
  Job copying_;
};

}  // namespace ws::app
