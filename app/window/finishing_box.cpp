#include "app/window/finishing_box.h"

#include <QCloseEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/panels/theme.h"
#include "app/panels/units.h"
#include "app/session/session.h"

namespace ws::app {
namespace {

constexpr int kPatienceMs = 5000;

// Training has ended once there is a summary; the thread then folds the run file.
QString waiting_for(const Session& session) {
  const Run* run = session.run();
  if (!run || run->summary) return QObject::tr("The run file is being written.");
  return wants_cuda(run->spec) && run->device.contains("NVIDIA") ? QObject::tr("The GPU ends the step that it is in.")
                                                                 : QObject::tr("The CPU ends the step that it is in.");
}

}  // namespace

FinishingBox::FinishingBox(Session* session, QWidget* parent) : QDialog(parent), session_(session) {
  setObjectName("finishing");
  setWindowTitle(tr("Finishing the run"));
  setModal(true);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(18, 16, 18, 14);
  column->setSpacing(10);
  title_ = new QLabel(tr("Finishing “%1”…").arg(session->run()->title), this);
  title_->setFont(ui_font(14, 600));
  title_->setTextFormat(Qt::PlainText);
  title_->setWordWrap(true);
  auto* busy = new QProgressBar(this);
  busy->setRange(0, 0);
  busy->setTextVisible(false);
  busy->setAccessibleName(tr("Waiting"));
  what_ = new QLabel(this);
  what_->setWordWrap(true);
  what_->setTextFormat(Qt::PlainText);
  what_->setMinimumSize(420, 52);
  what_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  keep_open_ = new QPushButton(tr("Do not close"), this);
  leave_ = new QPushButton(tr("Close now, leave it unfinished"), this);
  leave_->hide();
  auto* row = new QHBoxLayout;
  row->addStretch(1);
  row->addWidget(leave_);
  row->addWidget(keep_open_);
  column->addWidget(title_);
  column->addWidget(busy);
  column->addWidget(what_);
  column->addLayout(row);
  connect(leave_, &QPushButton::clicked, this, &FinishingBox::leftUnfinished);
  connect(keep_open_, &QPushButton::clicked, this, &FinishingBox::stayOpen);
  tick_.setInterval(200);
  connect(&tick_, &QTimer::timeout, this, &FinishingBox::refresh);
  tick_.start();
  since_.start();
  refresh();
}

QString FinishingBox::text() const { return title_->text() + " " + what_->text(); }

void FinishingBox::refresh() {
  if (!session_->busy()) return;
  const bool long_wait = since_.elapsed() >= kPatienceMs;
  QString said = waiting_for(*session_) + tr(" The window closes by itself when the run is kept.");
  if (since_.elapsed() >= 1000) said += tr(" %1 s").arg(since_.elapsed() / 1000);
  if (long_wait)
    said +=
        tr("\nIf nothing comes any more, the window can be closed at once: the run file holds everything up to the "
           "last second and is listed as unfinished.");
  what_->setText(said);
  what_->setAccessibleDescription(said);
  if (!long_wait || leave_->isVisible()) return;
  leave_->show();
  adjustSize();
}

// Closing the box is no answer to the question whether the run may be left.
void FinishingBox::reject() { emit stayOpen(); }

void FinishingBox::closeEvent(QCloseEvent* event) {
  event->ignore();
  emit stayOpen();
}

}  // namespace ws::app
