#include "app/timeline/timeline_pane.h"

#include <QAction>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QShortcut>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/timeline/meaning_legend.h"
#include "app/widgets/theme.h"
#include "app/workspace/compared_live_run.h"
#include "app/workspace/report_reader.h"
#include "profiling/base/failure.h"
#include "profiling/causes/edits.h"

namespace ws::app {
namespace {

constexpr int kFilterFrom = 620;

QString align_text(Align align) {
  switch (align) {
    case Align::Wall:
      return QObject::tr("Align: wall time");
    case Align::RunStart:
      return QObject::tr("Align: run start");
    case Align::Step:
      return QObject::tr("Align: step start");
  }
  return {};
}

}  // namespace

TimelinePane::TimelinePane(TimeCursor* cursor, Focus* focus, QWidget* parent)
    : Pane(tr("Timeline"), parent), model_(cursor), view_(new TimelineView(&model_, focus, this)) {
  setMinimumSize(360, 200);
  legend()->hide();
  buildOptions();
  buildFind();
  buildBody();
  buildCommands();
  connect(view_, &TimelineView::said, this, &TimelinePane::said);
  connect(view_, &TimelineView::noteWanted, this, &TimelinePane::editNote);
  connect(view_, &TimelineView::laneMenuWanted, this, &TimelinePane::laneMenu);
  connect(cursor, &TimeCursor::rangeChanged, this, &TimelinePane::showNote);
  connect(&model_, &TimelineModel::alignChanged, this, &TimelinePane::showNote);
  connect(&model_, &TimelineModel::lanesChanged, this, [this] { showLegend(); showPath(); });
  connect(model_.paths(), &CriticalPaths::changed, this, &TimelinePane::showNote);
  showPath();
  showNote();
}

void TimelinePane::showLegend() {
  std::vector<const Run*> runs;
  for (size_t i = 0; i < model_.runCount(); ++i) runs.push_back(model_.run(static_cast<int>(i)));
  legend_->setRuns(runs);
}

void TimelinePane::buildOptions() {
  filter_ = new QLineEdit(this);
  filter_->setPlaceholderText(tr("Filter lanes"));
  filter_->setAccessibleName(tr("Filter lanes"));
  filter_->setFont(ui_font(11));
  filter_->setClearButtonEnabled(true);
  filter_->setFixedWidth(110);
  connect(filter_, &QLineEdit::textChanged, &model_, &TimelineModel::setFilter);
  addOption(filter_);
  align_ = option_button(tr("How the runs are aligned"), this);
  align_->setText(align_text(model_.align()));
  auto* menu = new QMenu(align_);
  for (Align align : {Align::Step, Align::RunStart, Align::Wall})
    connect(menu->addAction(align_text(align).mid(7)), &QAction::triggered, this,
            [this, align] { chooseAlign(align); });
  align_->setMenu(menu);
  addOption(align_);
  path_ = new QPushButton(tr("Critical path"), this);
  path_->setProperty("small", true);
  path_->setFont(ui_font(12));
  path_->setCheckable(true);
  connect(path_, &QPushButton::toggled, model_.paths(), &CriticalPaths::setShown);
  addOption(path_);
  lanes_ = option_button(tr("Lanes: show, hide, keep the last seconds"), this);
  lanes_->setText(tr("Lanes"));
  lanes_->setMenu(new QMenu(lanes_));
  connect(lanes_->menu(), &QMenu::aboutToShow, this, &TimelinePane::fillLanesMenu);
  addOption(lanes_);
  fit_ = new QPushButton(tr("Fit  F"), this);
  fit_->setProperty("small", true);
  fit_->setFlat(true);
  fit_->setFont(ui_font(12));
  fit_->setToolTip(tr("The selection, else everything (F)"));
  connect(fit_, &QPushButton::clicked, view_, &TimelineView::fit);
  addOption(fit_);
}

void TimelinePane::buildFind() {
  find_bar_ = new QWidget(this);
  auto* row = new QHBoxLayout(find_bar_);
  row->setContentsMargins(10, 4, 10, 4);
  find_ = new QLineEdit(find_bar_);
  find_->setPlaceholderText(tr("Name, op, layer or step number; Enter next, Shift+Enter previous"));
  find_->setAccessibleName(tr("Find in the timeline"));
  row->addWidget(find_, 1);
  auto* close = new QPushButton(tr("Close"), find_bar_);
  close->setProperty("small", true);
  row->addWidget(close);
  const auto hide = [this] { find_bar_->hide(); view_->setFocus(); };
  connect(close, &QPushButton::clicked, this, hide);
  connect(find_, &QLineEdit::returnPressed, this, [this] {
    view_->search()->find(find_->text(), !(QGuiApplication::keyboardModifiers() & Qt::ShiftModifier));
  });
  auto* escape =
      new QShortcut(QKeySequence(Qt::Key_Escape), find_bar_, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
  connect(escape, &QShortcut::activated, this, hide);
  find_bar_->hide();
}

void TimelinePane::buildBody() {
  auto* body = new QWidget(this);
  auto* row = new QHBoxLayout;
  bar_ = new QScrollBar(Qt::Vertical, body);
  bar_->setAccessibleName(tr("Lanes"));
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  row->addWidget(view_, 1);
  row->addWidget(bar_);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(find_bar_);
  column->addLayout(row, 1);
  column->addWidget(legend_ = new MeaningLegend(body));
  setBody(body);
  bar_->hide();
  connect(bar_, &QScrollBar::valueChanged, view_->viewport(), &TimelineViewport::setScroll);
  connect(&model_, &TimelineModel::lanesChanged, this, [this] {  // lanes of a live run come with its first steps
    const int leader = model_.leader();
    if (leader >= 0 && model_.run(leader)->live() && model_.cursor()->follow()) view_->viewport()->showRun(leader);
  });
  connect(view_->viewport(), &TimelineViewport::scrolled, this, [this](int y, int limit) {
    const QSignalBlocker quiet(bar_);
    bar_->setRange(0, limit);
    bar_->setPageStep(view_->height());
    bar_->setSingleStep(30);
    bar_->setValue(y);
    bar_->setVisible(limit > 0);
  });
}

void TimelinePane::addCommand(const QString& text, const QString& keys, std::function<void()> run) {
  auto* action = new QAction(text, this);
  // The view handles its plain keys itself, while it has the focus. Here they stand for menus, the palette and the list of keys.
  action->setShortcut(QKeySequence(keys));
  action->setShortcutContext(Qt::WidgetShortcut);
  connect(action, &QAction::triggered, this, std::move(run));
  commands_ << action;
}

void TimelinePane::buildCommands() {
  addCommand(tr("Find in the timeline…"), {}, [this] { openFind(); });
  commands_.back()->setShortcut(QKeySequence("/"));
  commands_.back()->setShortcutContext(Qt::WindowShortcut);  // works unless a text field has the focus
  addCommand(tr("Fit the selection, or everything"), "F", [this] { view_->fit(); });
  addCommand(tr("Redo zoom"), "Alt+Right", [this] { view_->viewport()->redo(); });
  addCommand(tr("Next span of the same name"), ".", [this] { view_->search()->nextSame(true); });
  addCommand(tr("Previous span of the same name"), ",", [this] { view_->search()->nextSame(false); });
  addCommand(tr("Jump to step…"), {}, [this] { askForStep(); });
  addCommand(tr("Jump to the slowest step"), {}, [this] { view_->search()->jumpToSlowestStep(); });
  addCommand(tr("Jump to the longest gap on the GPU"), {}, [this] { view_->search()->jumpToLongestGap(); });
  addCommand(tr("Show or hide the critical path"), {}, [this] {
    if (path_->isEnabled()) path_->toggle();
    else emit said(model_.paths()->whyNot());
  });
  addCommand(tr("Mark here"), "M", [this] { view_->search()->addMark(); });
  addCommand(tr("Next mark"), "]", [this] { view_->search()->nextMark(true); });
  addCommand(tr("Previous mark"), "[", [this] { view_->search()->nextMark(false); });
  addCommand(tr("Keep the last seconds as a run…"), {}, [this] { askForSeconds(); });
  addCommand(tr("Show all lanes"), {}, [this] { filter_->clear(); model_.showAll(); });
  addCommand(tr("Align runs by step start"), {}, [this] { chooseAlign(Align::Step); });
  addCommand(tr("Align runs by run start"), {}, [this] { chooseAlign(Align::RunStart); });
  addCommand(tr("Align runs by wall time"), {}, [this] { chooseAlign(Align::Wall); });
}

void TimelinePane::showPath() {
  const QString why_not = model_.paths()->whyNot();
  path_->setEnabled(why_not.isEmpty());
  path_->setToolTip(why_not.isEmpty() ? tr("Dims what is not on the critical path: the chain of work and waits that decides how long a step takes") : why_not);
}

void TimelinePane::setRuns(const std::vector<Run*>& runs) {
  model_.setRuns(runs);
  view_->viewport()->showRun(model_.leader());
  showNote();
}

void TimelinePane::setShown(const Run* run) {
  model_.setShown(run);
  showNote();
}

void TimelinePane::chooseAlign(Align align) {
  model_.setAlign(align);
  align_->setText(align_text(align));
}

// Runs of different lengths are aligned at different steps.
QString TimelinePane::alignedNote() const {
  QStringList each;
  bool same = true;
  for (int i = 0; i < static_cast<int>(model_.runCount()); ++i) {
    const int64_t step = model_.alignedStepOf(i);
    same = same && step == model_.alignedStepOf(0);
    each << tr("%1 of %2").arg(count_text(step)).arg(run_letter(std::max(0, model_.run(i)->slot)));
  }
  return same ? tr(" · aligned at step %1").arg(count_text(model_.alignedStepOf(0)))
              : tr(" · aligned at step %1").arg(each.join(", "));
}

void TimelinePane::showNote() {
  QString note = span_time(model_.range().length());
  const int leader = model_.leader();
  if (model_.cursor()->follow() && leader >= 0 && model_.run(leader)->live()) note = tr("last %1").arg(note);
  if (model_.align() == Align::Step && model_.runCount() > 1)
    note += alignedNote();
  if (const QString path = model_.paths()->note(); !path.isEmpty()) note += " · " + path;
  setTitle(tr("Timeline"), note);
}

// The other options keep their space.
void TimelinePane::resizeEvent(QResizeEvent* event) {
  Pane::resizeEvent(event);
  filter_->setVisible(width() >= kFilterFrom);
  lanes_->setVisible(width() >= kFilterFrom);
}

void TimelinePane::openFind() {
  if (!isVisible()) emit findWanted();
  if (!isVisible()) return emit said(tr("Click a run to find something in its timeline."));
  find_bar_->show();
  find_->setFocus();
  find_->selectAll();
}

void TimelinePane::laneMenu(const QString& key, const QPoint& at) {
  const auto& lanes = model_.lanes();
  auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& l) { return l.key == key; });
  if (lane == lanes.end()) return;
  QMenu menu;
  addEdits(menu, view_->mapFromGlobal(at));
  if (lane->kind == LaneKind::Group || lane->folded) {
    menu.addAction(lane->folded ? tr("Unfold") : tr("Fold"), this, [this, key] { model_.toggleFolded(key); });
  } else {
    menu.addAction(lane->pinned ? tr("Unpin") : tr("Pin to the top"), this, [this, key] { model_.togglePinned(key); });
    menu.addAction(tr("Move up"), this, [this, key] { model_.moveLane(key, -1); });
    menu.addAction(tr("Move down"), this, [this, key] { model_.moveLane(key, 1); });
    menu.addAction(tr("Hide"), this, [this, key] { model_.setHidden(key, true); });
  }
  menu.addSeparator();
  menu.addAction(tr("Mark here"), view_->search(), &TimelineSearch::addMark);
  menu.addAction(tr("Fit"), view_, &TimelineView::fit);
  menu.addAction(tr("Undo zoom"), view_, &TimelineView::undoZoom);
  menu.addAction(tr("Show all lanes"), this, [this] { filter_->clear(); model_.showAll(); });
  menu.exec(at);
}

// The steps are replayed when the menu opens, as on the page What if.
void TimelinePane::addEdits(QMenu& menu, QPoint at) {
  const auto hit = view_->hitAt(at);
  if (!hit || hit->rect.count > 1) return;
  const Lane& lane = model_.lanes()[static_cast<size_t>(hit->lane)];
  Run* run = model_.run(lane.run);
  if (lane.gpu_steps || !prof::may_have_causes(run->trace.tracks()[hit->track])) return;
  QMenu* edits = menu.addMenu(tr("What if"));
  menu.addSeparator();
  connect(edits, &QMenu::aboutToShow, this, [this, edits, run = QPointer<Run>(run), span = hit->rect.span, track = hit->track] {
    edits->clear();
    try {
      if (!run) return;
      const prof::StepCauses causes = causes_of(*run);
      for (const prof::EditOffer& offer : prof::Editor(causes, run->trace).offers_for(run->trace.tracks()[track], span))
        connect(edits->addAction(text(offer.words).replace('&', "&&")), &QAction::triggered, this, [this, run, edit = text(offer.text)] { emit whatIfWanted(run, edit); });
      if (edits->isEmpty()) edits->addAction(tr("No edit of this changes %1").arg(text(prof::which_steps(causes.which))))->setEnabled(false);
    } catch (const Failure& problem) {
      edits->addAction(QString::fromUtf8(problem.what()))->setEnabled(false);
    }
  });
}

void TimelinePane::fillLanesMenu() {
  QMenu& menu = *lanes_->menu();
  menu.clear();
  for (const auto& [key, name] : model_.hidden())
    menu.addAction(tr("Show %1").arg(name), this, [this, key = key] { model_.setHidden(key, false); });
  QAction* quiet = menu.addAction(tr("Show every row"));
  quiet->setToolTip(tr("Nearly empty rows share one row at the bottom. Where several runs do not fit, each shows its steps, kernels and calls."));
  quiet->setCheckable(true);
  quiet->setChecked(model_.settings().quiet_rows);
  connect(quiet, &QAction::toggled, &model_, &TimelineModel::setQuietRows);
  menu.addSeparator();
  for (QAction* command : commands_) menu.addAction(command);
}

void TimelinePane::editNote(int mark) {
  const auto index = static_cast<size_t>(mark);
  bool ok = false;
  const QString note = QInputDialog::getText(this, tr("Mark"), tr("Note (empty removes the mark)"), QLineEdit::Normal,
                                             model_.marks()[index].note, &ok);
  if (!ok) return;
  if (note.isEmpty())
    model_.removeMark(index);
  else
    model_.setNote(index, note);
}

void TimelinePane::askForStep() {
  bool ok = false;
  const QString text = QInputDialog::getText(this, tr("Jump to step"), tr("Step"), QLineEdit::Normal, {}, &ok);
  const int64_t step = QString(text).remove(' ').toLongLong(&ok);
  if (ok) view_->search()->jumpToStep(step);
}

void TimelinePane::keepLast(double seconds) {
  const int index = model_.leader();
  if (index < 0) return emit said(tr("No run is chosen."));
  if (model_.run(index)->trace.span_count() == 0)
    return emit said(tr("%1 has no timeline to keep.").arg(model_.run(index)->title));
  emit keepWanted(model_.run(index), seconds);
}

void TimelinePane::askForSeconds() {
  bool ok = false;
  const double seconds =
      QInputDialog::getDouble(this, tr("Keep the last seconds"), tr("Seconds"), 2, 0.01, 600, 2, &ok);
  if (ok) keepLast(seconds);
}

}  // namespace ws::app
