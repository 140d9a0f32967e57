// Other programs: one that is recorded, and this one started anew.
#include <QFileInfo>

#include "app/window/main_window.h"
#include "app/window/notice_bar.h"
#include "app/window/record_dialog.h"

namespace ws::app {

void MainWindow::askForProgram() {
  RecordDialog dialog(this);
  if (dialog.exec() == QDialog::Accepted) record(dialog.command(), dialog.options());
}

Run* MainWindow::record(const QStringList& command, const prof::RecordOptions& options) {
  if (session_.busy()) {
    say(tr("A run is training: stop it first."), true);
    return nullptr;
  }
  Run* run = recording_.start(command, options);
  if (!run) return nullptr;
  notice_->dismiss();
  say(tr("Recording %1. Run › Stop interrupts it.").arg(run->title), false);
  library_.adopt(run);
  library_.tickOnly({run});
  cursor_.clearCursor();
  cursor_.setFollow(true);
  return run;
}

// The file knows more than what came live: the steps that it found, and what a slow window left out.
void MainWindow::recorded(Run* run, const QString& path) {
  const bool shown = run && run->slot >= 0;
  if (run) {
    run->path.clear();  // the file stays: it is opened below
    library_.remove(run);
  }
  if (path.isEmpty()) return;
  say(tr("Recorded in %1.").arg(QFileInfo(path).fileName()), false);
  Run* kept = library_.open(path);
  if (kept && shown) library_.setTicked(kept, true);
  if (kept && recording_.options().counters && kept->counters_note.isEmpty())
    kept->counters_note = tr("No hardware counters: the program ended before they were sampled.");
}

// The driver gives this process no context any more; a new process gets one.
void MainWindow::offerRestart(const QString& sentence) {
  notice_->tell(tr("%1 What was trained is kept. The GPU can be used again once Warpscope starts anew.").arg(sentence),
                {{tr("Restart Warpscope"), [this] { restart(); }}});
}

void MainWindow::restart() {
  if (!mayClose([this] { restart(); })) return;
  rememberLayout();
  if (!restarter_({"--runs", library_.folder()}))
    return notice_->tell(tr("Warpscope could not start itself again: close it and start it by hand."));
  close();
}

}  // namespace ws::app
