// Other programs: one that is recorded, and this one begun anew.
#pragma once
#include <QObject>
#include <functional>

#include "app/workspace/workspace.h"

namespace ws::app {

class CloseGuard;
class NoticeBar;

void show_recording(Workspace& workspace, Run* run);  // alone, from its newest moment on

class ProgramActions : public QObject {
  Q_OBJECT
 public:
  ProgramActions(QWidget* window, Workspace& workspace, NoticeBar* notice, CloseGuard* guard);
  void askForProgram();
  // Runs a CUDA program and shows it live; its file is a run of the library afterwards.
  Run* record(const QStringList& command, const prof::RecordOptions& options = {});
  // Begins the program anew with the same choices and runs.
  void restart();
  // False: the GPU can still be used.
  bool offerRestartIfGpuLost(const QString& sentence);
  // Tests put in what asks and what starts.
  void setRestarter(std::function<bool(const QStringList& arguments)> restarter) { restarter_ = std::move(restarter); }
  void setGpuProbe(std::function<bool()> lost) { gpu_lost_ = std::move(lost); }

 signals:
  void aboutToRestart();  // the last moment to remember something

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
