#include "app/window/program_actions.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QProcess>

#include "app/text/qt_text.h"
#include "app/window/close_guard.h"
#include "app/window/notice_bar.h"
#include "app/window/record_dialog.h"
#include "app/workspace/closing_line.h"
#include "engine/devices/devices.h"

namespace ws::app {
namespace {

bool start_again(const QStringList& arguments) {
  return QProcess::startDetached(QCoreApplication::applicationFilePath(), arguments);
}

}  // namespace

void show_recording(Workspace& workspace, Run* run) {
  workspace.say(QObject::tr("Recording %1. Run › Stop interrupts it.").arg(run->title), false);
  workspace.library()->adopt(run);
  workspace.library()->selection().started(run->handle, false);
  workspace.cursor()->clearCursor();
  workspace.cursor()->setFollow(true);
}

ProgramActions::ProgramActions(QWidget* window, Workspace& workspace, NoticeBar* notice, CloseGuard* guard)
    : QObject(window),
      window_(window),
      workspace_(workspace),
      notice_(notice),
      guard_(guard),
      restarter_(start_again),
      gpu_lost_(ws::gpu_lost) {
  connect(workspace.recording(), &ProgramRecording::ended, this, &ProgramActions::recorded);
  connect(&workspace, &Workspace::recordWanted, this, &ProgramActions::record);
}

void ProgramActions::askForProgram() {
  RecordDialog dialog(workspace_.recording()->machinePlace(), window_);
  const int choice = dialog.exec();
  if (choice == QDialog::Accepted) record(dialog.command(), dialog.options());
  if (choice == RecordDialog::kOtherMachine) emit machineWanted();
}

Run* ProgramActions::record(const QStringList& command, const prof::RecordOptions& options) {
  if (workspace_.session()->busy()) {
    workspace_.say(tr("Stop the training first (Run › Stop)."), true);
    return nullptr;
  }
  Run* run = workspace_.recording()->start(command, options);
  if (!run) return nullptr;
  notice_->dismiss();
  show_recording(workspace_, run);
  return run;
}

// The file has more data than what arrived live: the detected steps, and what a slow window left out.
void ProgramActions::recorded(Run* run, const QString& path) {
  if (path.isEmpty()) {
    if (run) workspace_.library()->remove(run);
    return;
  }
  QString words = tr("Recorded in %1.").arg(QFileInfo(path).fileName());
  Run* kept = run ? workspace_.library()->replace(run, path) : workspace_.library()->open(path);
  if (Run* pinned = workspace_.pinnedBaseline(); kept && pinned)
    if (const QString judged = judged_by(*kept, *pinned); !judged.isEmpty()) words += " " + with_capital(judged) + ".";
  const QString& failure = workspace_.recording()->failure();
  workspace_.say(failure.isEmpty() ? words : words + " " + failure, !failure.isEmpty());
  if (kept && workspace_.recording()->options().counters && kept->counters_note.isEmpty()) {
    kept->counters_note = tr("No hardware counters: the program ended before they were sampled.");
    kept->counters_refused = true;
  }
}

// The driver gives this process no new context, but a new process gets one.
bool ProgramActions::offerRestartIfGpuLost(const QString& sentence) {
  if (!gpu_lost_()) return false;
  notice_->showText(tr("%1 Your runs are kept. Restart Warpsight to use the GPU again.").arg(sentence),
                {{tr("Restart Warpsight"), [this] { restart(); }}});
  return true;
}

void ProgramActions::restart() {
  if (!guard_->mayClose([this] { restart(); })) return;
  emit aboutToRestart();
  if (!restarter_({"--runs", workspace_.library()->folder()}))
    return notice_->showText(tr("Warpsight could not restart itself. Close it and start it by hand."));
  window_->close();
}

}  // namespace ws::app
