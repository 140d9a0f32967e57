#include "app/pages/multiprocessors/multiprocessors_panel.h"

#include <QEvent>
#include <QHeaderView>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "app/core/report/report_sections.h"
#include "app/pages/multiprocessors/multiprocessor_view.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/headlined.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "profiling/analysis/steps_of_run.h"

namespace ws::app {
namespace {

constexpr size_t kMostNotes = 3;

// A span around the step, which the timeline shows with the bar.
prof::Span span_of_step(const prof::InnerStep& step) {
  prof::Span span;
  span.start = step.begin, span.duration = static_cast<uint64_t>(step.end - step.begin);
  return span;
}

}  // namespace

MultiprocessorsPanel::MultiprocessorsPanel(QWidget* parent) : QWidget(parent) {
  build();
  connect(&reader_, &MultiprocessorReader::changed, this, &MultiprocessorsPanel::fill);
  connect(&reader_, &MultiprocessorReader::failed, this, [this](const QString& problem) { emit said(problem, true); });
  connect(view_, &MultiprocessorView::barChosen, this, [this](const prof::InnerBar& bar) { wantBar(bar, false); });
  connect(view_, &MultiprocessorView::barOpened, this, [this](const prof::InnerBar& bar) { wantBar(bar, true); });
  fill();
}

void MultiprocessorsPanel::build() {
  columns_ = new QSplitter(Qt::Horizontal, this);
  columns_->setChildrenCollapsible(false);
  top_ = new Pane(tr("Multiprocessors"), columns_);
  parts_pane_ = new Pane(tr("Parts"), columns_);
  for (Pane* pane : {top_, parts_pane_}) pane->legend()->hide();
  body_ = new Headlined(top_);
  view_ = new MultiprocessorView(body_);
  body_->setPicture(view_);
  top_->setBody(body_);
  addExportMenu();
  parts_table_ = table_view(parts_pane_, parts_model_, parts_sorter_, tr("Parts of a step"));
  parts_table_->viewport()->installEventFilter(this);
  parts_pane_->setBody(parts_table_);
  columns_->addWidget(top_);
  columns_->addWidget(parts_pane_);
  columns_->setStretchFactor(0, 1);
  columns_->setSizes({620, 430});
  connect(columns_, &QSplitter::splitterMoved, this, [this] { dragged_ = true; });
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(columns_);
}

void MultiprocessorsPanel::addExportMenu() {
  QPushButton* button = option_button(tr("Export the picture or the table"), top_);
  button->setText(tr("Export"));
  auto* menu = new QMenu(button);
  menu->addAction(tr("Picture…"), this, [this] { exportWith([this] { return ask_and_write(this, picture()); }); });
  menu->addAction(tr("Parts as CSV…"), this, [this] {
    exportWith([this] { return ask_and_write(this, QStringLiteral("parts.csv"), parts_model_.table()); });
  });
  button->setMenu(menu);
  top_->addOption(button);
}

QString MultiprocessorsPanel::headline() const { return body_->headline(); }

void MultiprocessorsPanel::setRun(Run* run) {
  if (reader_.run() != run) {
    if (reader_.run()) disconnect(reader_.run(), nullptr, this, nullptr);
    if (run)
      connect(run, &Run::changed, this, [this] {
        if (isVisible()) reader_.refreshSoon();
      });
  }
  reader_.setRun(run);
  if (isVisible()) refresh();
}

void MultiprocessorsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void MultiprocessorsPanel::refresh() {
  reader_.refresh();
  if (!reader_.report()->any()) fill();
  fit_columns(*parts_table_, parts_model_);
}

// The parts show all their columns where the picture still has half of the page.
void MultiprocessorsPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  constexpr int kLeast = 200, kAllColumns = 430;
  const int parts = std::clamp(width() / 2, kLeast, kAllColumns);
  if (!dragged_) columns_->setSizes({width() - parts, parts});
}

bool MultiprocessorsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) fit_columns(*parts_table_, parts_model_);
  return QWidget::eventFilter(watched, event);
}

void MultiprocessorsPanel::fill() {
  const prof::MultiprocessorReport& report = *reader_.report();
  const bool any = report.any();
  parts_pane_->setVisible(any);
  QStringList notes;
  for (const QString& note : any ? QStringList{besideStepTime(), besideBusy()} : QStringList())
    if (!note.isEmpty()) notes << note;
  for (size_t i = 1; i < std::min(report.late.size(), kMostNotes + 1); ++i)
    notes << text(prof::late_text(report.late[i])) + ".";
  if (report.late.size() > kMostNotes + 1) notes << tr("%1 more.").arg(report.late.size() - kMostNotes - 1);
  const QString why_empty = reader_.reading() ? tr("Comparing the multiprocessors…")
                            : reader_.run()   ? tr("No kernel of this run records its parts.\nChoose the launch “persistent” in Setup and train on a GPU,\nor name the parts of your own kernel (Help › Manual).")
                                              : tr("Click a run whose kernel records its parts.");
  if (any)
    body_->showResult(with_capital(text(prof::late_headline(report)) + "."), notes.join('\n'));
  else
    body_->showReason(why_empty);
  top_->setTitle(tr("Multiprocessors"), any ? text(prof::caption(report)) : QString(),
                 any ? briefNote() : QString());
  parts_pane_->setTitle(tr("Parts"), text(parts_note(report)), tr("µs"));
  parts_model_.setTable(parts_table(report));
  view_->setReport(reader_.report());
  fit_columns(*parts_table_, parts_model_);
}

// The top bar shows the step time. It counts the launches, which in a short run take longer than the steps. In a long run it is
// shorter, because most steps run without time stamps inside.
QString MultiprocessorsPanel::besideStepTime() const {
  const double us = reader_.run() ? reader_.run()->stepUs() : 0;
  if (us <= 0) return {};
  const QString steps = count_text(static_cast<int64_t>(reader_.run()->summary ? reader_.run()->summary->steps : reader_.run()->stepsMade()));
  return (us < reader_.report()->step_us ? tr("Time stamps inside make these steps longer: the median of all %1 steps of the run is %2.") : tr("With launches, the median of all %1 steps of the run is %2."))
      .arg(steps, step_time_text(us));
}

// The kernel runs while multiprocessors wait, and "GPU busy" does not see it.
QString MultiprocessorsPanel::besideBusy() const {
  const Run* run = reader_.run();
  if (!run || !(run->split.busy > 0) || !(prof::waits_us(*reader_.report()) > 0)) return {};
  return tr("The GPU counts as busy meanwhile, because a kernel runs: GPU busy %1.").arg(fixed_text(100 * run->split.busy, 1) + " %");
}

QString MultiprocessorsPanel::briefNote() const {
  return tr("%1 with time stamps inside").arg(text(prof::which_steps({.count = std::ssize(reader_.report()->steps)})));
}

void MultiprocessorsPanel::wantBar(const prof::InnerBar& bar, bool show) {
  const auto span = reader_.spanOf(bar);
  if (!span) return emit said(tr("This part of the trace can no longer be read."), true);
  emit spanWanted(*span, SpanChoice{span->run, span->track, span_of_step(reader_.report()->steps[bar.step])}, show);
}

void MultiprocessorsPanel::showSpan(const SpanChoice& choice) {
  const prof::MultiprocessorReport& report = *reader_.report();
  if (!choice.run || choice.run != reader_.run() || choice.span.span_kind() != prof::SpanKind::Inner) return;
  const prof::Track& track = choice.run->trace.tracks()[choice.track];
  for (size_t step = 0; step < report.steps.size(); ++step) {
    if (report.steps[step].begin > choice.span.start || report.steps[step].end < choice.span.end()) continue;
    for (const prof::InnerBar& bar : report.bars_of(step))
      if (bar.begin == choice.span.start && bar.end == choice.span.end() && report.rows[bar.row].gpu == track.group &&
          report.rows[bar.row].lanes[bar.lane] == track.name)
        return view_->chooseBar(bar);
  }
}

ChartPicture MultiprocessorsPanel::picture() const {
  const prof::MultiprocessorReport& report = *reader_.report();
  QString caption = headline();
  if (report.any()) caption += "\n" + text(prof::caption(report)) + ". " + besideStepTime();
  if (reader_.run()) caption += "\n" + run_caption(*reader_.run());
  return {"multiprocessors",
          caption,
          view_->size(),
          [this](QPainter& painter, const QRectF& area) { view_->render(painter, area); },
          {}};
}

void MultiprocessorsPanel::exportWith(const std::function<QString()>& write) {
  try {
    if (const QString done = write(); !done.isEmpty()) emit said(done, false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

}  // namespace ws::app
