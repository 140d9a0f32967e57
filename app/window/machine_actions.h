// Chooses the machine that the window trains on: connects to another one, reattaches to its
// jobs, and copies its run files.
#pragma once
#include <QObject>
#include <functional>
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
  void askForMachine(std::function<void()> then = {});  // `then` is called once the machine can be used
  RemoteRunsDialog* showRunsThere();  // nullptr if no machine is connected; a notice appears
  void connectTo(const QString& address);  // empty: this machine
  const RemoteMachine* machine() const { return machine_.get(); }

 signals:
  void changed();  // the text in the corner

 private:
  void use(const std::shared_ptr<RemoteMachine>& machine);
  void watch(const RemoteJobInfo& job);
  void ready();
  void goOn();
  void refused(const QString& sentence);
  void askToCopy(const QString& address);
  void copyAndConnect(const ServerCopy& copy, const QString& address);
  void arrived(Run* run, const QString& path);

  QWidget* window_;
  Workspace& workspace_;
  NoticeBar* notice_;
  std::shared_ptr<RemoteMachine> machine_;
  std::function<void()> then_;
  Job copying_;
};

}  // namespace ws::app
