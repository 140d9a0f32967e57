// A window that is closed while a run trains: it asks, says what it waits for, and never stands still.
#include <QMessageBox>
#include <QPushButton>
#include <QTimer>

#include "app/window/finishing_box.h"
#include "app/window/main_window.h"
#include "app/window/status_line.h"

namespace ws::app {
namespace {

constexpr int kBoxAfterMs = 150;  // most runs end sooner: nothing has to come up for them

}  // namespace

bool MainWindow::mayClose(std::function<void()> then) {
  if (recording_.busy()) {
    say(tr("A program is being recorded: end it, or stop it with Run › Stop, then close."), true);
    return false;
  }
  if (!session_.busy()) return true;
  if (finishing_) return false;
  QMessageBox box(QMessageBox::Question, tr("A run is training"),
                  tr("Stop training and close? The run so far is kept."), QMessageBox::NoButton, this);
  box.setObjectName("closeInMidRun");
  QPushButton* stop = box.addButton(tr("Stop and close"), QMessageBox::AcceptRole);
  QPushButton* keep = box.addButton(tr("Keep training"), QMessageBox::RejectRole);
  box.setDefaultButton(keep);
  box.exec();
  if (box.clickedButton() != stop) return false;
  if (!session_.busy()) return true;  // it ended while it was asked
  finishRun(std::move(then));
  return false;
}

void MainWindow::finishRun(std::function<void()> then) {
  session_.stop();
  setWindowTitle(tr("Finishing the run… – Warpscope"));
  say(tr("Finishing the run…"), false);
  auto* box = new FinishingBox(&session_, this);
  finishing_ = box;
  connect(box, &QObject::destroyed, this, [this] { setWindowTitle(tr("Warpscope")); });
  connect(box, &FinishingBox::stayOpen, this, [this, box] {
    say(session_.busy() ? tr("The run is being stopped; the window stays open.") : QString(), false);
    box->deleteLater();
    finishing_.clear();
  });
  connect(box, &FinishingBox::leftUnfinished, &session_, &Session::leave);
  connect(&session_, &Session::ended, box, [this, box, then = std::move(then)] {
    box->hide();
    box->deleteLater();
    finishing_.clear();
    QMetaObject::invokeMethod(this, then, Qt::QueuedConnection);  // the session is not through with its run yet
  });
  QTimer::singleShot(kBoxAfterMs, box, &QDialog::open);
}

}  // namespace ws::app
