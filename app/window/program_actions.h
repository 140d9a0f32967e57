// Actions on programs: record another program, or restart this one.
#pragma once
#include <QObject>
#include <functional>

#include "app/workspace/workspace.h"

namespace ws::app {

class CloseGuard;
class NoticeBar;

void show_recording(Workspace& workspace, Run* run);  // only this run, from its newest time on

class ProgramActions : public QObject {
  Q_OBJECT
 public:
  ProgramActions(QWidget* window, Workspace& workspace, NoticeBar* notice, CloseGuard* guard);
  void askForProgram();
  // Runs a CUDA program and shows it live. Its file is added to the library afterwards.
  Run* record(const QStringList& command, const prof::RecordOptions& options = {});
  // Restarts the program with the same choices and runs.
  void restart();
  // Returns false if the GPU still works.
  bool offerRestartIfGpuLost(const QString& sentence);
  // For tests: replace the GPU probe and the restart.
  void setRestarter(std::function<bool(const QStringList& arguments)> restarter) { restarter_ = std::move(restarter); }
  void setGpuProbe(std::function<bool()> lost) { gpu_lost_ = std::move(lost); }

 signals:
  void aboutToRestart();  // last chance to save state
  void machineWanted();   // then asks for the program again

 private:
  void recorded(Run* run, const QString& path);

  QWidget* window_;
  Workspace& workspace_;
  NoticeBar* notice_;
  CloseGuard* guard_;
  std::function<bool(const QStringList&)> restarter_;
  std::function<bool()> gpu_lost_;
};

}  // namespace ws::app
