#include "app/window/close_guard.h"

#include <QMessageBox>
#include <QPushButton>
#include <QTimer>

#include "app/window/finishing_box.h"

namespace ws::app {
namespace {

constexpr int kBoxAfterMs = 150;  // most work ends sooner, so no box appears

Waiting waiting_for(const LibraryJobs& jobs) {
  Waiting w;
  w.title = QObject::tr("A file is still being written");
  w.what = [&jobs](qint64) {
    return jobs.text() + QObject::tr("\nThe window closes by itself when it is done.");
  };
  w.busy = [&jobs] { return jobs.busy(); };
  w.patience_ms = 0;
  w.leave = QObject::tr("Close now and cancel it");
  w.what_is_left = QObject::tr("Cancelled. The source file is unchanged.");
  return w;
}

Waiting waiting_for(const Chore& chore) {
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

CloseGuard::CloseGuard(QWidget* window, Workspace& workspace) : window_(window), workspace_(workspace) {}

bool CloseGuard::leftBehind() const { return left_ || TrainingSession::leftBehind(); }

const Chore* CloseGuard::chore() const {
  for (const Chore& chore : chores_)
    if (chore.busy() && !chore.there()) return &chore;
  return nullptr;
}

const Chore* CloseGuard::choreThere() const {
  for (const Chore& chore : chores_)
    if (chore.there()) return &chore;
  return nullptr;
}

void CloseGuard::setUnattended() {
  unattended_ = true;
  if (finishing_) finishing_->setUnattended();
}

bool CloseGuard::askToStop() {
  if (unattended_) return true;
  const Chore* other = workspace_.session()->busy() ? nullptr : chore();
  QMessageBox box(QMessageBox::NoIcon, other ? tr("A task is running") : tr("A run is training"),
                  other ? tr("%1 Stop it and close? %2").arg(other->what(), other->kept)
                        : tr("Stop training and close? The run so far is kept."),
                  QMessageBox::NoButton, window_);
  box.setObjectName("closeInMidRun");
  QPushButton* stop = box.addButton(tr("Stop and close"), QMessageBox::AcceptRole);
  QPushButton* keep = box.addButton(other ? tr("Let it run") : tr("Keep training"), QMessageBox::RejectRole);
  box.setDefaultButton(keep);
  box.exec();
  return box.clickedButton() == stop;
}

// Asks about runs on another machine. They do not need this window.
CloseGuard::There CloseGuard::askAboutThere() {
  if (unattended_) return There::Leave;
  const QStringList places = workspace_.session()->placesThere();
  QStringList sentences;
  if (!places.isEmpty()) sentences << tr("%1 trains.").arg(places.join(tr(" and ")));
  if (workspace_.recording()->remote()) sentences << tr("%1 records a program.").arg(workspace_.recording()->place());
  for (const Chore& chore : chores_)
    if (chore.there()) sentences << chore.what();
  sentences << tr("It can go on without this window.");
  QMessageBox box(QMessageBox::NoIcon, tr("A run goes on"), sentences.join(' '), QMessageBox::NoButton, window_);
  box.setObjectName("closeInMidRun");
  QPushButton* leave = box.addButton(tr("Leave it running"), QMessageBox::AcceptRole);
  QPushButton* stop = box.addButton(tr("Stop it and close"), QMessageBox::DestructiveRole);
  box.addButton(tr("Keep watching"), QMessageBox::RejectRole);
  box.setDefaultButton(leave);
  box.exec();
  return box.clickedButton() == leave ? There::Leave : box.clickedButton() == stop ? There::Stop : There::Stay;
}

bool CloseGuard::mayLeaveThere() {
  TrainingSession* session = workspace_.session();
  if (session->placesThere().isEmpty() && !workspace_.recording()->remote() && !choreThere()) return true;
  const There wish = askAboutThere();
  if (wish == There::Leave) session->detachAll(), workspace_.recording()->detach();
  for (const Chore& chore : chores_)
    if (chore.there() && wish != There::Stay) wish == There::Leave ? chore.leave() : chore.stop();
  if (wish == There::Stop) session->stopAll(), workspace_.recording()->stop();
  return wish != There::Stay;
}

bool CloseGuard::mayClose(std::function<void()> then) {
  TrainingSession* session = workspace_.session();
  ProgramRecording* recording = workspace_.recording();
  if (left_) return true;
  if (finishing_) return false;
  if (recording->busy() && !recording->remote() && !unattended_) {
    workspace_.say(tr("Stop the recording first (Run › Stop), or wait until the program ends."), true);
    return false;
  }
  if (!mayLeaveThere()) return false;
  const bool here = session->busy() && !session->remote();
  if ((here || chore()) && !askToStop()) return false;
  if (session->anyBusy()) {
    session->stopAll();
    waitToClose(waiting_for(*session), std::move(then));
    connect(finishing_, &FinishingBox::leftUnfinished, session, &TrainingSession::leave);
    return false;
  }
  if (recording->busy()) {
    if (unattended_) recording->stop();
    waitToClose(waiting_for(Chore{[recording] { return recording->busy() ? tr("The recording is being copied here.") : QString(); },
                                  tr("It stays on the other machine."), [recording] { recording->stop(); }}),
                std::move(then));
    return false;
  }
  if (const Chore* running = chore() ? chore() : choreThere()) {
    running->stop();
    waitToClose(waiting_for(*running), std::move(then));
    return false;
  }
  if (!workspace_.jobs()->busy()) return true;
  waitToClose(waiting_for(*workspace_.jobs()), std::move(then));
  return false;
}

void CloseGuard::waitToClose(Waiting waiting, std::function<void()> then) {
  waiting.attended = !unattended_;
  window_->setWindowTitle(tr("%1 – Warpsight").arg(waiting.title));
  workspace_.say(waiting.title, false);
  auto* box = new FinishingBox(std::move(waiting), window_);
  finishing_ = box;
  connect(box, &QObject::destroyed, this, [this] { window_->setWindowTitle(tr("Warpsight")); });
  const auto end = [this, box] {
    box->hide();
    box->deleteLater();
    finishing_.clear();
  };
  connect(box, &FinishingBox::stayOpen, this, [this, end] {
    workspace_.say(workspace_.session()->busy() ? tr("The run is being stopped. The window stays open.") : QString(),
                   false);
    end();
  });
  connect(box, &FinishingBox::over, this, [this, end, then] {
    end();
    QMetaObject::invokeMethod(this, then, Qt::QueuedConnection);
  });
  connect(box, &FinishingBox::leftUnfinished, this, [this, end, then] {
    if (workspace_.session()->busy()) return;  // the session reports itself when it has been left
    left_ = true;
    end();
    QMetaObject::invokeMethod(this, then, Qt::QueuedConnection);
  });
  QTimer::singleShot(kBoxAfterMs, box, &QDialog::open);
}

}  // namespace ws::app
