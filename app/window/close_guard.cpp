// A window that is closed while something goes on: it asks, says what it waits for, and never stands still.
#include <QMessageBox>
#include <QPushButton>
#include <QTimer>

#include "app/window/finishing_box.h"
#include "app/window/main_window.h"
#include "app/window/status_line.h"

namespace ws::app {
namespace {

constexpr int kBoxAfterMs = 150;  // most ends sooner: nothing has to come up for it

Waiting waiting_for(const RunLibrary& library) {
  Waiting w;
  w.title = QObject::tr("A file is not whole yet");
  w.what = [&library](qint64) {
    return library.work() + QObject::tr("\nThe window closes by itself when it is done.");
  };
  w.busy = [&library] { return !library.work().isEmpty(); };
  w.patience_ms = 0;
  w.leave = QObject::tr("Close now, give it up");
  w.what_is_left = QObject::tr("Given up, nothing of it is left behind; the file that it comes from stays as it is.");
  return w;
}

Waiting waiting_for(const MainWindow::Chore& chore) {
  Waiting w;
  w.title = QObject::tr("Stopping…");
  w.what = [chore](qint64 seconds) {
    const QString said = chore.what() + QObject::tr(" The window closes by itself when it has stopped.");
    return seconds > 0 ? said + QObject::tr(" %1 s").arg(seconds) : said;
  };
  w.busy = [chore] { return !chore.what().isEmpty(); };
  w.leave = QObject::tr("Close now, do not wait");
  w.what_is_left = chore.kept;
  return w;
}

}  // namespace

const MainWindow::Chore* MainWindow::chore() const {
  for (const Chore& chore : chores_)
    if (!chore.what().isEmpty()) return &chore;
  return nullptr;
}

bool MainWindow::askToStop() {
  const Chore* other = session_.busy() ? nullptr : chore();
  QMessageBox box(QMessageBox::Question, other ? tr("Something is running") : tr("A run is training"),
                  other ? tr("%1 Stop it and close? %2").arg(other->what(), other->kept)
                        : tr("Stop training and close? The run so far is kept."),
                  QMessageBox::NoButton, this);
  box.setObjectName("closeInMidRun");
  QPushButton* stop = box.addButton(tr("Stop and close"), QMessageBox::AcceptRole);
  QPushButton* keep = box.addButton(other ? tr("Let it run") : tr("Keep training"), QMessageBox::RejectRole);
  box.setDefaultButton(keep);
  box.exec();
  return box.clickedButton() == stop;
}

bool MainWindow::mayClose(std::function<void()> then) {
  if (recording_.busy()) {
    say(tr("A program is being recorded: end it, or stop it with Run › Stop, then close."), true);
    return false;
  }
  if (finishing_) return false;
  if (left_) return true;
  if ((session_.busy() || chore()) && !askToStop()) return false;
  if (session_.busy()) {
    session_.stop();
    waitToClose(waiting_for(session_), std::move(then));
    connect(finishing_, &FinishingBox::leftUnfinished, &session_, &Session::leave);
    return false;
  }
  if (const Chore* running = chore()) {
    running->stop();
    waitToClose(waiting_for(*running), std::move(then));
    return false;
  }
  if (library_.work().isEmpty()) return true;
  waitToClose(waiting_for(library_), std::move(then));
  return false;
}

void MainWindow::waitToClose(Waiting waiting, std::function<void()> then) {
  setWindowTitle(tr("%1 – Warpscope").arg(waiting.title));
  say(waiting.title, false);
  auto* box = new FinishingBox(std::move(waiting), this);
  finishing_ = box;
  connect(box, &QObject::destroyed, this, [this] { setWindowTitle(tr("Warpscope")); });
  const auto end = [this, box] {
    box->hide();
    box->deleteLater();
    finishing_.clear();
  };
  connect(box, &FinishingBox::stayOpen, this, [this, end] {
    say(session_.busy() ? tr("The run is being stopped; the window stays open.") : QString(), false);
    end();
  });
  connect(box, &FinishingBox::over, this, [this, end, then] {
    end();
    QMetaObject::invokeMethod(this, then, Qt::QueuedConnection);
  });
  connect(box, &FinishingBox::leftUnfinished, this, [this, end, then] {
    if (session_.busy()) return;  // it says itself when it has been left
    left_ = true;
    end();
    QMetaObject::invokeMethod(this, then, Qt::QueuedConnection);
  });
  QTimer::singleShot(kBoxAfterMs, box, &QDialog::open);
}

}  // namespace ws::app
