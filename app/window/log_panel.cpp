#include "app/window/log_panel.h"

#include <QLabel>
#include <QPlainTextEdit>
#include <QVBoxLayout>

#include "app/text/units.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

QString now_text() { return QDateTime::currentDateTime().toString("HH:mm:ss  "); }

}  // namespace

LogPanel::LogPanel(Workspace& workspace, QWidget* parent) : QWidget(parent), workspace_(workspace) {
  build();
  connect(&workspace, &Workspace::said, this, [this](const QString& sentence) {
    if (!sentence.isEmpty()) lines_->appendPlainText(now_text() + sentence);
  });
  connect(workspace.session(), &TrainingSession::started, this, &LogPanel::runStarted);
  connect(workspace.recording(), &ProgramRecording::started, this, &LogPanel::watch);
  connect(workspace.session(), &TrainingSession::ended, this, [this](Run* run) { runEnded(*run); });
}

void LogPanel::build() {
  auto* title = new QLabel(tr("Log"), this);
  style_panel_title(*title);
  title->setFont(ui_font(12.5, 600));
  lines_ = new QPlainTextEdit(this);
  lines_->setStyleSheet(
      "QPlainTextEdit { border: 1px solid transparent; background: transparent; }"
      "QPlainTextEdit:focus { border: 1px solid palette(highlight); }");
  lines_->setPlaceholderText(tr("Starts, changes and problems are listed here."));
  lines_->setReadOnly(true);
  lines_->setFont(mono_font(11));
  lines_->setMaximumBlockCount(2000);
  lines_->setAccessibleName(tr("Log"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(title);
  column->addWidget(lines_);
}

void LogPanel::runStarted(Run* run) {
  watch(run);
  lines_->appendPlainText(tr("%1  started: %2").arg(run->created.toString("HH:mm:ss"), run->title));
}

void LogPanel::watch(Run* run) {
  shown_[run] = 0;
  connect(run, &Run::changed, this, [this, run] { showNew(*run); });
  connect(run, &QObject::destroyed, this, [this, run] { shown_.erase(run); });
}

void LogPanel::runEnded(const Run& run) {
  showNew(run);
  shown_.erase(&run);
  const Summary& s = *run.summary;
  lines_->appendPlainText(now_text() + tr("%1: %2, %3 steps, step time %4")
                                           .arg(run.title, QString::fromUtf8(to_string(s.status).data()),
                                                count_text(s.steps), step_time_text(run.stepUs())));
}

// Shows lines as they arrive, so that a full disk is known while the user can still act.
void LogPanel::showNew(const Run& run) {
  const auto known = shown_.find(&run);
  if (known == shown_.end()) return;
  for (size_t& shown = known->second; shown < run.log.size(); ++shown) {
    const LogLine& line = run.log[shown];
    line.problem ? workspace_.say(line.text, true) : lines_->appendPlainText("          " + line.text);
  }
}

Page log_page(Workspace& workspace) {
  Page page;
  page.title = QObject::tr("Log"), page.dock = "Log", page.widget = new LogPanel(workspace);
  return page;
}

}  // namespace ws::app
