#include "app/pages/flame/flame_panel.h"

#include <QEvent>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "app/charts/flame_view.h"
#include "app/text/units.h"
#include "app/widgets/headlined.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "app/workspace/compared_live_run.h"
#include "app/workspace/marked_steps.h"
#include "profiling/analysis/launch_stacks.h"
#include "profiling/base/failure.h"
#include "profiling/base/whole_file.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

constexpr int kSoonMs = 150, kLiveMs = 1000;
// The first function of the first thread that does not have nearly all the time of its caller, and its share of `whole`: a node.
QString largest_function(const prof::FlameTree& tree, size_t whole) {
  constexpr double kNearlyAll = 0.9;
  if (tree.empty() || tree[0].inside.empty()) return {};
  size_t at = tree[0].inside[0];  // a thread
  while (!tree[at].inside.empty()) {
    const double caller = tree[at].ns;
    at = tree[at].inside[0];
    if (tree[at].ns < kNearlyAll * caller) break;
  }
  return QObject::tr("%1 takes %2 %").arg(QString::fromStdString(tree[at].function), fixed_text(100 * tree[at].ns / tree[whole].ns, 0));
}

constexpr FlameTime kTimes[] = {FlameTime::InSteps, FlameTime::Host, FlameTime::WhileGpuIdle, FlameTime::Launched};

}  // namespace

FlamePanel::FlamePanel(Focus* focus, QWidget* parent) : QWidget(parent), focus_(focus) {
  build();
  soon_.setSingleShot(true);
  connect(&soon_, &QTimer::timeout, this, &FlamePanel::refresh);
  connect(focus, &Focus::changed, this, &FlamePanel::refreshSoon);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& words) {
    refresh();  // unfolds what is searched
    view_->setSearch(words);
  });
  connect(view_, &FlameView::searched, this, &FlamePanel::showMatches);
  refresh();
}

void FlamePanel::build() {
  pane_ = new Pane(tr("Flame graph"), this);
  pane_->legend()->hide();
  matches_ = new QLabel(pane_);
  matches_->setFont(ui_font(11));
  matches_->setForegroundRole(QPalette::PlaceholderText);
  search_ = new QLineEdit(pane_);
  search_->setPlaceholderText(tr("Find a function or file"));
  search_->setAccessibleName(search_->placeholderText());
  search_->setClearButtonEnabled(true);
  search_->setFixedWidth(190);
  mode_ = option_button(tr("Which time"), pane_);
  mode_->setObjectName("flame time");
  auto* menu = new QMenu(mode_);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] { fillMenu(*menu); });
  mode_->setMenu(menu);
  auto* out = new QPushButton(theme_icon("export"), tr("Export…"), pane_);
  out->setProperty("small", true);
  out->setToolTip(tr("As collapsed stacks or for speedscope.app"));
  connect(out, &QPushButton::clicked, this, &FlamePanel::askForFile);
  libraries_ = new QPushButton(tr("Libraries"), pane_);
  libraries_->setProperty("small", true);
  libraries_->setCheckable(true);
  libraries_->setToolTip(tr("Show each function of packages, libraries and the interpreter. Otherwise your functions stand alone, and a search finds both."));
  connect(libraries_, &QPushButton::toggled, this, &FlamePanel::refresh);
  for (QWidget* option : std::initializer_list<QWidget*>{matches_, search_, libraries_, mode_, out}) pane_->addOption(option);
  auto* scroll = new QScrollArea(pane_);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  view_ = new FlameView(scroll);
  scroll->setWidget(view_);
  body_ = new Headlined(pane_);
  body_->setPicture(scroll);
  pane_->setBody(body_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(pane_);
}

void FlamePanel::setRun(Run* run) {
  if (run_ && run_ != run) disconnect(run_, nullptr, this, nullptr);
  run_ = run;
  if (run) connect(run, &Run::changed, this, &FlamePanel::refreshSoon, Qt::UniqueConnection);
  refresh();
}

void FlamePanel::fillMenu(QMenu& menu) {
  menu.clear();
  for (const FlameTime time : kTimes)
    if (offers(time)) menu.addAction(timeText(time), this, [this, time] { setTime(time); });
  if (!has_waits_) return;
  menu.addSeparator();
  QAction* waits = menu.addAction(tr("Waiting threads"), this, &FlamePanel::showWaits);
  waits->setCheckable(true);
  waits->setChecked(show_waits_);
}

void FlamePanel::setTime(FlameTime time) { chosen_ = time; refresh(); }
void FlamePanel::showWaits(bool shown) { show_waits_ = shown; refresh(); }

FlameTime FlamePanel::time() const {
  if (chosen_ && offers(*chosen_)) return *chosen_;
  return offers(FlameTime::InSteps) ? FlameTime::InSteps : FlameTime::Host;
}

bool FlamePanel::offers(FlameTime time) const {
  if (!run_ || time == FlameTime::Host) return time == FlameTime::Host;
  if (time == FlameTime::InSteps) return marked_steps(run_->trace).length() > 0 && prof::has_samples(run_->trace);
  return time == FlameTime::WhileGpuIdle ? prof::used_gpu(run_->trace) : prof::has_launch_stacks(run_->trace);
}

QString FlamePanel::timeText(FlameTime time) const {
  if (time == FlameTime::Launched) return run_ && prof::used_gpu(run_->trace) ? tr("Kernels by launching stack") : tr("Ops by stack");
  if (time == FlameTime::InSteps) return tr("In the steps");
  return time == FlameTime::Host ? tr("All time") : tr("While the GPU was idle");
}

void FlamePanel::refreshSoon() {
  if (isVisible() && !soon_.isActive()) soon_.start(run_ && run_->live() ? kLiveMs : kSoonMs);
}

std::optional<TimeRange> FlamePanel::selected() const {
  for (const RunRange& part : focus_->ranges())
    if (part.run == run_) return part.range;
  return {};
}

prof::CountedSteps FlamePanel::counted() const {
  if (const auto part = selected()) return {.stretches = {*part}, .text = tr("the selected range").toStdString()};
  const prof::CountedSteps counted = time() == FlameTime::Host ? prof::CountedSteps() : prof::counted_steps(sample_of(*run_));
  if (counted.steps > 0) return counted;
  if (time() == FlameTime::InSteps) return {.stretches = {marked_steps(run_->trace)}, .text = tr("the steps").toStdString()};  // none is complete
  return {.text = tr("the whole run").toStdString()};
}

prof::WorkingStacks FlamePanel::stacks() const {
  if (!run_) return {};
  const std::vector<TimeRange> ranges = counted().stretches;
  if (time() == FlameTime::Launched) return {prof::launch_stacks(run_->trace, ranges)};
  prof::HostStacks all = prof::host_stacks(run_->trace, {.gaps_only = time() == FlameTime::WhileGpuIdle, .ranges = ranges});
  if (!show_waits_) return prof::without_waits(std::move(all));
  const prof::WorkingStacks working = prof::without_waits(all);
  return {std::move(all), working.waiting, working.waited_ns};
}

QString FlamePanel::emptyText() const {
  if (!run_) return tr("Click a recorded program.");
  if (time() == FlameTime::Launched) return tr("Nothing was launched in the selected range. Clear the selection in the timeline.");
  if (selected())
    return tr("No stack was sampled in the selected range. Clear the selection in the timeline.");
  return time() == FlameTime::WhileGpuIdle ? tr("No stack was sampled while the GPU was idle.")
                                            : tr("No stacks were sampled. Record a Python program at level modules or above.");
}

void FlamePanel::refresh() {
  const FlameTime shown = time();
  const prof::WorkingStacks stacks = this->stacks();
  has_waits_ = stacks.waiting > 0;
  mode_->setVisible(has_waits_ || std::ranges::count_if(kTimes, [this](FlameTime one) { return offers(one); }) > 1);
  mode_->setText(timeText(shown));
  const prof::HostStacks folded = prof::folded_libraries(stacks.stacks);
  libraries_->setVisible(folded != stacks.stacks);
  const bool whole = libraries_->isChecked() || !search_->text().trimmed().isEmpty();
  prof::FlameTree tree = prof::flame_tree(whole ? stacks.stacks : folded);
  const QString scope = run_ ? tr("in %1").arg(QString::fromStdString(counted().text)) : QString();
  const QString amount = tree.empty() ? QString() : step_time_text(tree[0].ns * 1e-3);
  const size_t threads = tree.empty() ? 0 : tree[0].inside.size();  // their times are summed up
  if (tree.empty()) note_.clear();
  else if (shown == FlameTime::Launched) note_ = (prof::used_gpu(run_->trace) ? tr("%1 of kernels %2") : tr("%1 of ops %2")).arg(amount, scope);
  else note_ = threads > 1 ? tr("%1 of %2 threads together, sampled %3; a share is of its thread").arg(amount, QString::number(threads), scope) : tr("%1 sampled %2").arg(amount, scope);
  QString few;
  if (!tree.empty() && shown != FlameTime::Launched) few = QString::fromStdString(prof::few_samples_text(run_->trace, counted().stretches));
  if (!few.isEmpty()) note_ += QStringLiteral(" · ") + few;
  if (has_waits_)
    note_ += (show_waits_ ? tr(" · with %1") : tr(" · hidden: %1")).arg(QString::fromStdString(prof::waiting_text(stacks)));
  pane_->setTitle(tr("Flame graph"), run_ ? run_->title : tr("No run is chosen"));
  view_->setEmptyText(emptyText());
  const QString root = shown != FlameTime::Launched ? tr("all threads") : prof::used_gpu(run_->trace) ? tr("all kernels") : tr("all ops");
  view_->setRootText(root);
  const QString width = (shown == FlameTime::Launched ? tr("Width of a block: %1") : tr("Width of a block: wall time, %1")).arg(note_);
  tree.empty() ? body_->showReason(emptyText()) : body_->showResult(few.isEmpty() ? headlineOf(tree) : tr("%1 (few samples)").arg(headlineOf(tree)), width);
  view_->setSharesOfThreads(time() != FlameTime::Launched && !tree.empty() && tree[0].inside.size() > 1);
  view_->setTree(std::move(tree));
}

QString FlamePanel::headline() const { return body_->headline(); }

// Names one of several threads: while a thread works, another one waits for it, and both have the same time.
QString FlamePanel::headlineOf(const prof::FlameTree& tree) const {
  const auto& threads = tree[0].inside;
  if (time() == FlameTime::Launched) return tr("%1 of %2").arg(largest_function(tree, 0), run_ && prof::used_gpu(run_->trace) ? tr("the kernel time") : tr("the op time"));
  const std::string first = threads.empty() ? std::string() : tree[threads[0]].function;
  const QString whose = threads.size() < 2      ? tr("the host's time")
                        : first == "MainThread" ? tr("the main thread's time")
                                                : tr("the time of thread %1").arg(QString::fromStdString(first));
  const QString said = tr("%1 of %2").arg(largest_function(tree, threads.empty() ? 0 : threads[0]), whose);
  return time() == FlameTime::WhileGpuIdle ? tr("%1 while the GPU was idle").arg(said) : said;
}

void FlamePanel::showMatches() {
  matches_->setText(search_->text().trimmed().isEmpty() ? QString()
                                                         : tr("%1 % of the time").arg(fixed_text(100 * view_->matched(), 1)));
}

void FlamePanel::exportTo(const QString& path) {
  if (!run_) return;
  prof::write_whole(path.toStdString(), path.endsWith(".json") ? prof::speedscope_json(stacks().stacks, run_->title.toStdString())
                                                              : prof::collapsed_text(stacks().stacks));
}

void FlamePanel::askForFile() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export the stacks"), "stacks.speedscope.json",
                                                    tr("speedscope (*.json);;Collapsed stacks (*.collapsed)"));
  if (path.isEmpty()) return;
  try {
    exportTo(path);
    emit said(written_text(path), false);
  } catch (const Failure& failure) {
    emit said(QString::fromUtf8(failure.what()), true);
  }
}

void FlamePanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void FlamePanel::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) view_->update();
  QWidget::changeEvent(event);
}

}  // namespace ws::app
