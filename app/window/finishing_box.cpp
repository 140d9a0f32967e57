#include "app/window/finishing_box.h"

#include <QCloseEvent>
#include <QHBoxLayout>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/widgets/labels.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "app/workspace/training_session.h"
#include "engine/devices/devices.h"

namespace ws::app {
namespace {

// Training has ended once there is a summary. After that, the thread finishes the run file.
QString what_ends(const TrainingSession& session) {
  const Run* run = session.run();
  if (!run || run->summary) return QObject::tr("The run file is being written.");
  return wants_cuda(run->spec) && run->device.contains("NVIDIA") ? QObject::tr("The GPU finishes its current step.")
                                                                 : QObject::tr("The CPU finishes its current step.");
}

}  // namespace

Waiting waiting_for(const TrainingSession& session) {
  Waiting w;
  w.title = session.run() ? QObject::tr("Finishing “%1”…").arg(session.run()->title) : QObject::tr("Finishing…");
  w.what = [&session](qint64 seconds) {
    const QString said = what_ends(session) + QObject::tr(" The window closes by itself when the run is kept.");
    return seconds > 0 ? said + QObject::tr(" %1 s").arg(seconds) : said;
  };
  w.busy = [&session] { return session.anyBusy(); };
  w.leave = QObject::tr("Close now, leave it unfinished");
  w.what_is_left = QObject::tr(
      "If nothing moves any more, close the window now. The run file holds everything up to the last second and is "
      "listed as unfinished.");
  return w;
}

FinishingBox::FinishingBox(Waiting waiting, QWidget* parent) : QDialog(parent), waiting_(std::move(waiting)) {
  setObjectName("finishing");
  setWindowTitle(tr("Before the window closes"));
  setModal(true);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(18, 16, 18, 14);
  column->setSpacing(10);
  title_ = label(this, ui_font(14, 600), {.plain = true}, waiting_.title);
  auto* busy = new QProgressBar(this);
  busy->setRange(0, 0);
  busy->setTextVisible(false);
  busy->setAccessibleName(tr("Waiting"));
  what_ = label(this, font(), {.plain = true});
  what_->setMinimumSize(420, 52);
  what_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  keep_open_ = new QPushButton(tr("Keep the window open"), this);
  leave_ = new QPushButton(waiting_.leave, this);
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
  tick_.setInterval(50);
  connect(&tick_, &QTimer::timeout, this, &FinishingBox::refresh);
  tick_.start();
  since_.start();
  if (waiting_.busy()) refresh();
}

QString FinishingBox::text() const { return title_->text() + " " + what_->text(); }

void FinishingBox::refresh() {
  if (!waiting_.busy()) {
    tick_.stop();
    return emit over();
  }
  const bool long_wait = since_.elapsed() >= waiting_.patience_ms;
  QString said = waiting_.what(since_.elapsed() / 1000);
  if (long_wait) said += "\n" + waiting_.what_is_left;
  what_->setText(said);
  what_->setAccessibleDescription(said);
  if (long_wait && !waiting_.attended) return emit leftUnfinished();
  if (!long_wait || leave_->isVisible()) return;
  leave_->show();
  adjustSize();
}

// Closing the box keeps the window open: it does not answer whether the run may be left.
void FinishingBox::reject() { emit stayOpen(); }

void FinishingBox::closeEvent(QCloseEvent* event) {
  event->ignore();
  emit stayOpen();
}

}  // namespace ws::app
