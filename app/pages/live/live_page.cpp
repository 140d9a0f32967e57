#include "app/pages/live/live_page.h"

#include <QApplication>
#include <QDataStream>
#include <QFileDialog>
#include <QIODevice>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "app/text/units.h"
#include "app/timeline/range_export.h"
#include "app/timeline/timeline_pane.h"
#include "app/widgets/theme.h"
#include "app/workspace/last_seconds.h"

namespace ws::app {
namespace {

void export_picture(Workspace& workspace, TimelinePane* pane) {
  try {
    const QString done = ask_and_write(pane->window(), timeline_picture(*pane));
    if (!done.isEmpty()) workspace.say(done, false);
  } catch (const std::exception& problem) {
    workspace.say(QString::fromUtf8(problem.what()), true);
  }
}

void export_range(Workspace& workspace, TimelinePane* pane) {
  const QString path = QFileDialog::getSaveFileName(pane->window(), QObject::tr("Range as Chrome JSON"), "timeline.json",
                                                    QObject::tr("Chrome trace (*.json *.json.gz)"));
  if (path.isEmpty()) return;
  try {
    const QStringList written =
        write_ranges_json(selected_or_visible(*workspace.focus(), *pane->model()), path);
    workspace.say(written_text(QFileInfo(path).dir().filePath(written.join(", "))), false);
  } catch (const std::exception& problem) {
    workspace.say(QString::fromUtf8(problem.what()), true);
  }
}

// Names the baseline, and opens the comparison with it.
QPushButton* compare_button(Workspace& workspace, QWidget* page) {
  auto* button = new QPushButton(page);
  button->setAccessibleName(QObject::tr("Baseline"));
  button->setIconSize(kBadgeBesideText);
  QObject::connect(button, &QPushButton::clicked, &workspace, [&workspace] {
    RunLibrary& library = *workspace.library();
    if (library.baseline()) workspace.compareRuns(library.baseline(), library.current());
  });
  return button;
}

void show_baseline(QPushButton& button, Workspace& workspace) {
  constexpr int kMost = 360;  // pixels of a long title
  const Run* baseline = workspace.library()->baseline();
  const QString title = baseline ? QFontMetrics(button.font()).elidedText(baseline->title, Qt::ElideRight, kMost) : QString();
  button.setEnabled(baseline);
  const QString none = workspace.shownRun() ? QObject::tr("No baseline: tick a second run in Runs") : QObject::tr("No run to compare yet");
  button.setText(baseline ? QObject::tr("Compare with %1").arg(title) : none);
  button.setToolTip(baseline ? baseline->title : QString());
  button.setIcon(baseline ? badge_icon(baseline->slot) : QIcon());
}

bool calls_allocator(const Run& run) {
  return run.allocator_calls.in_steps().calls() > 0 ||
         std::ranges::any_of(run.meters, [](const MeterPoint& m) { return m.allocate + m.free > 0; });
}

bool has_accuracy(const Run& run) {
  return std::ranges::any_of(run.evals, [](const EvalPoint& e) { return std::isfinite(e.accuracy); }) ||
         std::ranges::any_of(run.steps, [](const StepPoint& s) { return std::isfinite(s.accuracy); });
}

// Shows two or three steps around the step with the span, and selects the span.
void reveal_in(TimelineView* view, Focus* focus, const Choice& choice, const Choice& around) {
  view->clearSelection();
  view->fit();  // from the full range, fit() zooms to the selection
  focus->choose(around);
  view->fit();
  focus->reveal(choice);
}

void join(LivePage& live, TimelinePane* timeline) {
  live.setTimeline(timeline, [timeline](const std::vector<Run*>& runs) { timeline->setRuns(runs); });
  live.addZoom(
      {timeline, [timeline] { return timeline->view()->canUndoZoom(); }, [timeline] { timeline->view()->undoZoom(); }});
}

void connect_timeline(Workspace& workspace, TimelinePane* timeline) {
  Focus* focus = workspace.focus();
  const auto show = [&workspace, timeline] { timeline->setShown(workspace.shownRun()); };
  QObject::connect(workspace.session(), &TrainingSession::stateChanged, timeline, show);
  QObject::connect(&workspace, &Workspace::findWanted, timeline, &TimelinePane::openFind);
  QObject::connect(timeline, &TimelinePane::findWanted, &workspace, &Workspace::showLive);
  QObject::connect(timeline, &TimelinePane::said, &workspace,
                   [&workspace](const QString& sentence) { workspace.say(sentence, false); });
  QObject::connect(timeline, &TimelinePane::whatIfWanted, &workspace, &Workspace::ask);
  QObject::connect(timeline, &TimelinePane::keepWanted, workspace.jobs(),
                   [jobs = workspace.jobs()](Run* run, double seconds) {
                     auto kept = std::make_shared<KeptSeconds>(last_seconds(*run, seconds));
                     jobs->addMade(run->id + "-last", [kept] { return with_spans(std::move(*kept)); });
                   });
  QObject::connect(focus, &Focus::revealedIn, timeline,
                   [timeline, focus](const Choice& choice, const Choice& around) {
                     reveal_in(timeline->view(), focus, choice, around);
                   });
}

QList<QAction*> timeline_actions(Workspace& workspace, TimelinePane* timeline) {
  return timeline->commands() +
         QList<QAction*>{page_separator(timeline),
                         page_action(timeline, QObject::tr("Export the picture…"), {},
                                     [&workspace, timeline] { export_picture(workspace, timeline); }),
                         page_action(timeline, QObject::tr("Export the range as Chrome JSON…"), {},
                                     [&workspace, timeline] { export_range(workspace, timeline); })};
}

}  // namespace

LivePage::LivePage(TimeCursor* cursor, TrainingSession* session, QWidget* parent)
    : QWidget(parent),
      cursor_(cursor),
      rows_(new QSplitter(Qt::Vertical, this)),
      charts_(new QSplitter(Qt::Horizontal, rows_)),
      small_(new QSplitter(Qt::Vertical, charts_)) {
  loss_ = new CurvePane({Gauge::Loss}, charts_);
  accuracy_ = new CurvePane(
      {Gauge::Accuracy, Gauge::AllocatorCalls, Gauge::AllocatorTime, Gauge::Throughput, Gauge::Memory}, small_);
  calls_ = new CurvePane({Gauge::AllocatorCalls, Gauge::AllocatorTime, Gauge::Throughput, Gauge::Memory}, small_);
  network_ = new NetworkPane(session, charts_);
  split_ = new SplitPane(charts_);
  for (QWidget* pane : std::initializer_list<QWidget*>{loss_, small_, network_, split_}) charts_->addWidget(pane);
  for (QSplitter* splitter : {rows_, charts_, small_}) splitter->setHandleWidth(5), splitter->setChildrenCollapsible(false);
  small_->setMinimumWidth(accuracy_->minimumWidth());
  connect(network_, &NetworkPane::swapWanted, this, &LivePage::swapLossAndNetwork);
  rows_->addWidget(charts_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(rows_);
  for (CurvePane* pane : {loss_, accuracy_, calls_}) {
    addZoom({pane, [pane] { return pane->canUndoZoom(); }, [pane] { pane->undoZoom(); }});
    connect(pane, &CurvePane::cursorMoved, this, [this](double step) {
      if (!runs_.empty() && runs_.front()) cursor_->setCursor(runs_.front()->timeOfStep(step));
    });
    connect(pane, &CurvePane::pointerLeft, cursor_, &TimeCursor::leave);
    connect(pane, &CurvePane::xAxisChosen, this, [this](XAxis axis) {
      for (CurvePane* each : {loss_, accuracy_, calls_}) each->setXAxis(axis);
    });
  }
  connect(cursor_, &TimeCursor::cursorChanged, this, &LivePage::showCursor);
  // One chart per tick keeps each turn of the event loop short while a run streams in.
  redraw_.setInterval(33);
  connect(&redraw_, &QTimer::timeout, this, &LivePage::redrawNext);
  redraw_.start();
  // Spans that are only in a run file are read once the view stops changing.
  fetch_.setSingleShot(true);
  fetch_.setInterval(120);
  connect(cursor_, &TimeCursor::rangeChanged, &fetch_, qOverload<>(&QTimer::start));
  connect(&fetch_, &QTimer::timeout, this, &LivePage::fetchRange);
  connect(rows_, &QSplitter::splitterMoved, this, [this] { dragged_ = true; });
  connect(charts_, &QSplitter::splitterMoved, this, [this] { charts_dragged_ = true; });
}

void LivePage::swapLossAndNetwork() {
  const QList<int> sizes = charts_->sizes();
  const int loss = charts_->indexOf(loss_), network = charts_->indexOf(network_);
  charts_->insertWidget(network, loss_);
  charts_->insertWidget(loss, network_);
  charts_->setSizes(sizes);
}

// An arena calls no allocator. Another program may have logged no loss, and has no network to draw. Those panes are hidden.
void LivePage::fitPanes() {
  const auto calls = [](const Run* run) {
    return run->hasChoices() ? run->spec.exec.allocator != Allocator::Arena || !run->changes.empty()
                             : calls_allocator(*run);
  };
  const auto accuracy = [](const Run* run) { return run->hasChoices() || has_accuracy(*run); };
  std::erase(runs_, nullptr);  // deleted since
  const bool show_accuracy = runs_.empty() || std::ranges::any_of(runs_, accuracy);
  const bool show_calls = (!compact_ || !show_accuracy) && std::ranges::any_of(runs_, calls);
  loss_->setVisible(runs_.empty() || std::ranges::any_of(runs_, &Run::hasLoss, &QPointer<Run>::get));
  accuracy_->setVisible(show_accuracy), calls_->setVisible(show_calls);
  small_->setVisible(show_accuracy || show_calls);
  network_->setVisible(network_->useful());
  placeCharts();
  placeRows();
}

// It depends on the window only, so that no run moves the timeline. Of a high window they take more: a few lanes do not fill
// it. The split alone needs no more than its rows.
int LivePage::chartsHeight() const {
  const int least = compact_ ? 190 : 262;
  const bool split_alone = loss_->isHidden() && small_->isHidden() && network_->isHidden();
  constexpr int kHigh = 900;
  const int height = rows_->height(), share = std::min(height, kHigh) / 3 + std::max(0, height - kHigh) * 3 / 5;
  return std::max(least, split_alone ? split_->wantedHeight() : share);
}

void LivePage::placeRows() {
  if (dragged_ || rows_->count() < 2) return;
  const int charts = chartsHeight();
  rows_->setSizes({charts, std::max(1, rows_->height() - rows_->handleWidth() - charts)});
}

// Each chart has its place. The space of a hidden chart goes to the next one.
void LivePage::placeCharts() {
  if (charts_dragged_) return;
  QList<int> sizes = compact_ ? QList<int>{320, 220, 200, 290} : QList<int>{430, 250, 230, 340};
  const int handle = charts_->handleWidth(), space = rows_->width() - 3 * handle, all = std::accumulate(sizes.begin(), sizes.end(), 0);
  for (int i = 0; i < 4; ++i) sizes[i] = std::max(sizes[i] * space / all, charts_->widget(i)->minimumWidth());
  sizes[0] -= std::accumulate(sizes.begin(), sizes.end(), -space);
  for (int i = 0; i < 3; ++i)
    if (charts_->widget(i)->isHidden()) sizes[i + 1] += std::exchange(sizes[i], 0) + handle;
  charts_->setSizes(sizes);
}

void LivePage::redrawNext() {
  CurvePane* const panes[] = {loss_, accuracy_, calls_};
  for (size_t i = 0; i < 3; ++i) {
    CurvePane* pane = panes[next_++ % 3];
    if (!pane->isVisible() || !pane->dirty()) continue;
    pane->redraw();
    return;
  }
}

void LivePage::showCursor() {
  std::optional<double> step;
  if (cursor_->cursor() && !runs_.empty() && runs_.front()) step = runs_.front()->stepAt(*cursor_->cursor());
  for (CurvePane* pane : {loss_, accuracy_, calls_}) pane->setCursorStep(step, cursor_->pointed());
}

void LivePage::fetchRange() {
  bool more = false;
  for (const auto& run : runs_)
    if (run && run->fetch(cursor_->begin(), cursor_->end())) run->announce(), more = true;
  if (more) fetch_.start();
}

void LivePage::setRuns(const std::vector<Run*>& runs) {
  runs_.assign(runs.begin(), runs.end());
  for (CurvePane* pane : {loss_, accuracy_, calls_}) pane->setRuns(runs);
  split_->setRuns(runs);
  network_->setRuns(runs);
  for (Run* run : runs)  // a program logs values while it runs
    if (!run->hasChoices()) connect(run, &Run::changed, this, &LivePage::fitPanes, Qt::UniqueConnection);
  fitPanes();
  if (timeline_runs_) timeline_runs_(runs);
  showCursor();
}

void LivePage::setTimeline(QWidget* timeline, std::function<void(const std::vector<Run*>&)> show_runs) {
  timeline_runs_ = std::move(show_runs);
  rows_->addWidget(timeline);
  rows_->setStretchFactor(0, 0);
  rows_->setStretchFactor(1, 1);
  placeRows();
}

void LivePage::setCompact(bool compact) {
  compact_ = compact;
  split_->setCompact(compact);
  fitPanes();
}

void LivePage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  placeCharts();
  placeRows();
}

void LivePage::undoZoom() {
  const QWidget* focus = QApplication::focusWidget();
  const std::function<bool(const QWidget*)> wanted[] = {
      [](const QWidget* pane) { return pane->underMouse(); },
      [focus](const QWidget* pane) { return focus && pane->isAncestorOf(focus); },
      [this](const QWidget* pane) { return charts_->isAncestorOf(pane); }};
  for (const auto& fits : wanted)
    for (const Zoom& zoom : zooms_)
      if (zoom.pane->isVisible() && fits(zoom.pane) && zoom.can()) return zoom.undo();
}

QByteArray LivePage::layoutState() const {
  QByteArray state;
  QDataStream stream(&state, QIODevice::WriteOnly);
  stream << (charts_dragged_ ? charts_->saveState() : QByteArray()) << (dragged_ ? rows_->saveState() : QByteArray());
  return state;
}

void LivePage::restoreLayout(const QByteArray& state) {
  QDataStream stream(state);
  QByteArray charts, rows;
  stream >> charts >> rows;
  if (!charts.isEmpty()) charts_dragged_ = charts_->restoreState(charts);
  if (!rows.isEmpty()) dragged_ = rows_->restoreState(rows);
}

Page live_page(Workspace& workspace) {
  auto* live = new LivePage(workspace.cursor(), workspace.session());
  auto* timeline = new TimelinePane(workspace.cursor(), workspace.focus(), live);
  join(*live, timeline);
  connect_timeline(workspace, timeline);
  Page page;
  page.title = QObject::tr("Overview"), page.widget = live, page.beside_setup = true;
  QPushButton* compare = compare_button(workspace, live);
  page.picker = compare;
  page.show_runs = [live, timeline, compare, &workspace](const std::vector<Run*>& runs) {
    timeline->setShown(workspace.shownRun());
    live->setRuns(runs);
    show_baseline(*compare, workspace);
  };
  page.set_compact = [live](bool narrow) { live->setCompact(narrow); };
  page.menus.push_back({MenuName::View, {page_action(live, QObject::tr("Undo zoom"), QKeySequence::Undo,
                                                     [live] { live->undoZoom(); })}});
  page.menus.push_back({MenuName::Timeline, timeline_actions(workspace, timeline)});
  page.remembered.push_back({"live", [live] { return live->layoutState(); },
                             [live](const QByteArray& state) { live->restoreLayout(state); }, true});
  page.remembered.push_back({"lanes", [timeline] { return timeline->model()->saveLanes(); },
                             [timeline](const QByteArray& state) { timeline->model()->restoreLanes(state); }});
  return page;
}

}  // namespace ws::app
