#include "app/pages/compare/compare_tab.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QSplitter>
#include <QTabBar>
#include <QVBoxLayout>
#include <algorithm>

#include "app/charts/curve_pane.h"
#include "app/charts/flame_view.h"
#include "app/pages/compare/bars_view.h"
#include "app/pages/compare/compare_export.h"
#include "app/pages/compare/compare_headline.h"
#include "app/pages/compare/compare_table.h"
#include "app/pages/compare/compare_tables.h"
#include "app/pages/compare/step_painter.h"
#include "app/pages/compare/step_view.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/text/qt_text.h"
#include "app/timeline/meaning_legend.h"
#include "app/widgets/paged_pane.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/waiting_threads.h"

namespace ws::app {

CompareTab::CompareTab(QWidget* parent)
    : QWidget(parent), picker_(buildPicker()), headline_(new CompareHeadline(this)) {
  auto* all = new QSplitter(Qt::Vertical, this);
  all->setHandleWidth(5);
  all->setChildrenCollapsible(false);
  all->addWidget(buildViews());
  all->addWidget(buildDifference());
  all->setSizes({440, 258});
  export_ = new CompareExport(&compared_, {step_, waterfall_, bars_}, headline_);
  headline_->addButton(export_);
  connect(export_, &CompareExport::said, this, &CompareTab::said);
  connect(export_, &CompareExport::wrote, this, &CompareTab::wrote);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(5);
  column->addWidget(headline_);
  column->addWidget(all, 1);
  due_.setSingleShot(true);
  redraw_.setInterval(40);
  connect(&due_, &QTimer::timeout, this, &CompareTab::refresh);
  connect(&samples_, &CompareSamples::taken, this, &CompareTab::showAll);
  connect(&redraw_, &QTimer::timeout, this, [this] {
    for (CurvePane* pane : {loss_, speed_})
      if (pane->isVisible() && pane->dirty()) return pane->redraw();
  });
  redraw_.start();
  refresh();
}

QWidget* CompareTab::buildPicker() {
  auto* box = new QWidget(this);
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(0, 0, 0, 0);
  baseline_box_ = new QComboBox(box);
  candidate_box_ = new QComboBox(box);
  baseline_box_->setAccessibleName(tr("Baseline"));
  candidate_box_->setAccessibleName(tr("Current run"));
  auto* swap = new QPushButton(box);
  swap->setIcon(theme_icon("swap"));
  swap->setAccessibleName(tr("Swap baseline and current run"));
  swap->setToolTip(swap->accessibleName());
  for (QComboBox* combo : {baseline_box_, candidate_box_}) {  // as wide as the row allows: no name moves its neighbours
    combo->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon), combo->setMinimumContentsLength(44);
    combo->setMinimumWidth(160), combo->setMaximumWidth(320);
    combo->setPlaceholderText(tr("tick a second run"));
  }
  baseline_box_->setToolTip(tr("The run to compare with. The first letter, unless you choose another."));
  candidate_box_->setToolTip(tr("The run that the answer is about."));
  row->addWidget(new QLabel(tr("Baseline"), box));
  pin_ = new QPushButton(tr("Pin"), box);
  pin_->setCheckable(true);
  pin_->setToolTip(tr("Judge every new run by this baseline, also after a restart."));
  row->addWidget(baseline_box_);
  row->addWidget(pin_);
  row->addWidget(swap);
  row->addWidget(new QLabel(tr("Current"), box));
  row->addWidget(candidate_box_);
  connect(swap, &QPushButton::clicked, this, &CompareTab::swapRuns);
  connect(pin_, &QPushButton::clicked, this, [this](bool on) { emit pinWanted(on ? baseline_.data() : nullptr); });
  const auto picked = [this] {
    const auto at = [this](QComboBox* combo) -> Run* {
      const auto index = static_cast<size_t>(combo->currentIndex());
      return combo->currentIndex() >= 0 && index < runs_.size() ? runs_[index] : nullptr;
    };
    setPair(at(baseline_box_), at(candidate_box_));
  };
  connect(baseline_box_, &QComboBox::activated, this, picked);
  connect(candidate_box_, &QComboBox::activated, this, picked);
  return box;
}

QWidget* CompareTab::buildViews() {
  views_ = new PagedPane(tr("Runs over each other"), this);
  step_ = new StepView(views_);
  bars_ = new BarsView(views_);
  auto* timelines = new QWidget(views_);
  auto* column = new QVBoxLayout(timelines);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(step_, 1);
  column->addWidget(colours_ = new MeaningLegend(timelines));
  views_->addPage(tr("Timelines"), timelines);
  views_->addPage(tr("Curves"), buildCurves());
  views_->addPage(tr("Bars"), bars_);
  const auto add = [this](const QString& title, FlameView*& view, const QString& empty) {
    const int page = views_->addPage(title, buildFlame(view, empty));
    views_->setPageVisible(page, false);
    return page;
  };
  host_page_ = add(tr("Host"), host_, tr("Only one of these runs has sampled stacks."));
  launches_page_ = add(tr("Launches"), launches_, tr("Only one of these runs was recorded at level lines."));
  host_->setRootText(tr("all threads that work"));
  launches_->setRootText(tr("all kernels"));
  launches_->setObjectName("launches");
  buildTimelineOptions();
  connect(step_, &StepView::said, this, [this](const QString& sentence) { emit said(sentence, false); });
  return views_;
}

void CompareTab::buildTimelineOptions() {
  align_ = new QPushButton(views_);
  align_->setProperty("small", true);
  align_->setProperty("menu", true);
  align_->setAccessibleName(tr("How the runs are aligned"));
  step_number_ = new QSpinBox(views_);
  step_number_->setRange(0, 1'000'000'000);
  step_number_->setAccessibleName(tr("Step at which the runs are aligned"));
  step_number_->setFixedWidth(86);
  step_number_->setButtonSymbols(QAbstractSpinBox::NoButtons);
  auto* menu = new QMenu(align_);
  const auto choose = [this](StepAlign align, const QString& text) {
    align_->setText(text);
    views_->setOptionVisible(step_number_, align == StepAlign::Step);
    step_->setAlign(align, step_number_->value());
  };
  for (const auto& [align, text] : {std::pair{StepAlign::Median, tr("Align: a typical step")},
                                    {StepAlign::Step, tr("Align: at step")},
                                    {StepAlign::Start, tr("Align: at the start")}})
    menu->addAction(text, this, [choose, align = align, text = text] { choose(align, text); });
  align_->setMenu(menu);
  choose(StepAlign::Median, tr("Align: a typical step"));
  connect(step_number_, &QSpinBox::valueChanged, this, [this](int step) { step_->setAlign(StepAlign::Step, step); });
  auto* tint = new QPushButton(tr("Differences"), views_);
  tint->setProperty("small", true);
  tint->setCheckable(true);
  tint->setChecked(true);
  tint->setToolTip(
      tr("Marks each block that differs from the baseline by more than 15 %: slower, faster, or only in this run"));
  legend_ = new QLabel(views_);
  legend_->setTextFormat(Qt::RichText);
  legend_->setFont(ui_font(11.5));
  legend_->setForegroundRole(QPalette::PlaceholderText);
  connect(tint, &QPushButton::toggled, step_, &StepView::setTinted);
  connect(tint, &QPushButton::toggled, this, [this](bool on) { views_->setOptionVisible(legend_, on); });
  auto* fit = new QPushButton(theme_icon("fit"), tr("Fit"), views_);
  fit->setProperty("small", true);
  fit->setToolTip(tr("Show the aligned step (F)"));
  connect(fit, &QPushButton::clicked, step_, &StepView::fit);
  views_->addExplanation(0, legend_);
  for (QWidget* option : std::initializer_list<QWidget*>{tint, align_, step_number_, fit})
    views_->addOption(0, option);
}

// The candidate's functions, coloured by their difference from the baseline.
QWidget* CompareTab::buildFlame(FlameView*& view, const QString& empty) {
  auto* scroll = new QScrollArea(views_);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  view = new FlameView(scroll);
  view->setDifference(true);
  view->setEmptyText(empty);
  scroll->setWidget(view);
  return scroll;
}

namespace {

// A run without marked steps has the number of those that it made.
double steps_in(const prof::CountedSteps& counted, const Run& run) {
  return static_cast<double>(std::max<int64_t>(1, counted.steps > 0 ? counted.steps : static_cast<int64_t>(run.stepsMade())));
}

}  // namespace

// Recorded programs can have stacks. If neither run has any, this page is hidden.
void CompareTab::showHost() {
  prof::HostStacks stacks[2];
  prof::CountedSteps counted[2];
  for (size_t i = 0; i < 2 && compared_.pair(); ++i) {
    const Run& run = i == 0 ? *baseline_ : *candidate_;
    if (!prof::has_samples(run.trace)) continue;
    counted[i] = prof::counted_steps(samples_.of(&run)->sample);
    stacks[i] = prof::without_waits(prof::host_stacks(run.trace, {.ranges = counted[i].stretches})).stacks;
  }
  views_->setPageVisible(host_page_, !stacks[0].empty() || !stacks[1].empty());
  if (stacks[0].empty() || stacks[1].empty()) return host_->setTree({});
  host_->setTree(prof::flame_difference(stacks[0], steps_in(counted[0], *baseline_), stacks[1], steps_in(counted[1], *candidate_)));
}

// The kernels of a step by the stack that launched them. Hidden if neither run was recorded at level lines.
void CompareTab::showLaunches() {
  prof::HostStacks stacks[2];
  prof::CountedSteps counted[2];
  for (size_t i = 0; i < 2 && compared_.pair(); ++i) {
    const Run& run = i == 0 ? *baseline_ : *candidate_;
    if (!prof::has_launch_stacks(run.trace)) continue;
    counted[i] = prof::counted_steps(samples_.of(&run)->sample);
    stacks[i] = prof::launch_stacks(run.trace, counted[i].stretches);
  }
  views_->setPageVisible(launches_page_, !stacks[0].empty() || !stacks[1].empty());
  if (stacks[0].empty() || stacks[1].empty()) return launches_->setTree({});
  launches_->setTree(prof::flame_difference(stacks[0], steps_in(counted[0], *baseline_), stacks[1], steps_in(counted[1], *candidate_)));
}

QWidget* CompareTab::buildCurves() {
  auto* row = new QSplitter(Qt::Horizontal, views_);
  row->setHandleWidth(5);
  row->setChildrenCollapsible(false);
  loss_ = new CurvePane({Gauge::Loss, Gauge::Accuracy}, row);
  speed_ = new CurvePane({Gauge::Throughput, Gauge::AllocatorCalls, Gauge::AllocatorTime, Gauge::Memory}, row);
  for (CurvePane* pane : {loss_, speed_}) {
    row->addWidget(pane);
    connect(pane, &CurvePane::xAxisChosen, this, [this](XAxis axis) {
      for (CurvePane* each : {loss_, speed_}) each->setXAxis(axis);
    });
    connect(pane, &CurvePane::cursorMoved, this, [this](double step) {
      for (CurvePane* each : {loss_, speed_}) each->setCursorStep(step);
    });
    connect(pane, &CurvePane::pointerLeft, this, [this] {
      for (CurvePane* each : {loss_, speed_}) each->setCursorStep({});
    });
  }
  return row;
}

QWidget* CompareTab::buildWaterfallSwitch(QWidget* parent) {
  const QString kind = QStringLiteral("kind"), op = QStringLiteral("op");
  auto* by = new SegmentedRow(tr("How the difference is split"), {{kind, tr("By kind")}, {op, tr("By op")}}, parent);
  by->setFixedWidth(124);
  by->setValue(kind);
  by->setToolTip(tr("By kind of work, or by op"));
  connect(by, &SegmentedRow::picked, this, [this, op](const QString& value) { waterfall_->setByOp(value == op); });
  return by;
}

QWidget* CompareTab::buildDifference() {
  falls_ = new Pane(tr("Where the difference went"), this);
  falls_->legend()->hide();
  waterfall_ = new WaterfallView(falls_);
  falls_->setBody(waterfall_);
  falls_->addOption(buildWaterfallSwitch(falls_));
  tables_ = new CompareTables(this);
  difference_ = new QSplitter(Qt::Horizontal, this);
  difference_->setHandleWidth(5);
  difference_->setChildrenCollapsible(false);
  difference_->addWidget(falls_);
  difference_->addWidget(tables_);
  connect(difference_, &QSplitter::splitterMoved, this, [this] { dragged_ = true; });
  return difference_;
}

QTableWidget* CompareTab::measures() const { return tables_->measures(); }
QTableWidget* CompareTab::kernels() const { return tables_->kernels(); }
QTableWidget* CompareTab::choices() const { return tables_->choices(); }
QByteArray CompareTab::measuresCsv() const { return CompareTables::measuresCsv(compared_); }
QByteArray CompareTab::kernelsCsv() const { return CompareTables::kernelsCsv(compared_.comparison); }

void CompareTab::setRuns(const std::vector<Run*>& runs) {
  for (const auto& run : runs_)
    if (run) disconnect(run, nullptr, this, nullptr);
  runs_.assign(runs.begin(), runs.end());
  for (Run* run : runs)
    connect(run, &Run::changed, this, [this, run] {
      // A run from a file is checked at once, a running one once a second.
      if (!due_.isActive() && isVisible()) due_.start(run->live() ? 1000 : 30);
    });
  baseline_ = runs.size() > 1 ? runs[0] : nullptr;
  candidate_ = runs.empty() ? nullptr : runs[baseline_ ? 1 : 0];
  fillPickers();
  for (CurvePane* pane : {loss_, speed_}) pane->setRuns(runs);
  refresh();
}

void CompareTab::fillPickers() {
  for (auto [combo, chosen] : {std::pair{baseline_box_, baseline_.data()}, {candidate_box_, candidate_.data()}}) {
    combo->clear();
    for (const auto& run : runs_)
      if (run) combo->addItem(badge_icon(run->slot), title_among(*run, {runs_.begin(), runs_.end()}));
    combo->setCurrentIndex(-1);  // empty: one more run must be ticked
    for (size_t i = 0; i < runs_.size(); ++i)
      if (chosen && runs_[i] == chosen) combo->setCurrentIndex(static_cast<int>(i));
    combo->setEnabled(runs_.size() > 1);
  }
  showPin();
}

void CompareTab::setPinned(const Run* run) {
  if (pinned_ == run) return showPin();
  pinned_ = run;
  showPin();
  if (samples_.ready()) showAll();
}

void CompareTab::showPin() {
  pin_->setEnabled(baseline_);
  pin_->setChecked(baseline_ && pinned_ == baseline_);
}

// A run cannot be compared with itself: the other picker gets the previous run of this one.
void CompareTab::setPair(Run* baseline, Run* candidate) {
  if (baseline && baseline == candidate) {
    if (baseline == baseline_)
      baseline = candidate_;
    else
      candidate = baseline_;
  }
  baseline_ = baseline;
  candidate_ = candidate;
  fillPickers();
  refresh();
  emit pairChosen(baseline, candidate);
}

void CompareTab::swapRuns() { setPair(candidate_, baseline_); }

std::vector<Run*> CompareTab::ordered() const {
  std::vector<Run*> all;
  for (const QPointer<Run>& run : {baseline_, candidate_})
    if (run && std::find(all.begin(), all.end(), run.data()) == all.end()) all.push_back(run);
  for (const auto& run : runs_)
    if (run && std::find(all.begin(), all.end(), run.data()) == all.end()) all.push_back(run);
  return all;
}

void CompareTab::refresh() {
  const bool other = compared_.baseline != baseline_ || compared_.candidate != candidate_, comparing = baseline_ && candidate_ && other;
  if (comparing) headline_->showWaiting(run_letter(baseline_->slot), run_letter(candidate_->slot));
  step_->setComparing(comparing), waterfall_->setComparing(comparing);
  samples_.look(ordered());
}

// In a narrow window the tables keep their width, and the waterfall uses rows.
void CompareTab::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  constexpr int kLeastTables = 520;
  if (dragged_) return;
  const int all = width(), tables = std::max(all * 27 / 50, kLeastTables);
  difference_->setSizes({all - tables, tables});
}

void CompareTab::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void CompareTab::showAll() {
  compared_ = {};
  for (Run* run : ordered()) compared_.runs.emplace_back(run), compared_.figures.push_back(samples_.of(run));
  compared_.baseline = baseline_, compared_.candidate = candidate_;
  compared_.pinned = baseline_ && pinned_ == baseline_;
  step_->setComparing(false), waterfall_->setComparing(false);
  const bool pair = compared_.pair();
  if (pair) compared_.comparison = compare(*samples_.of(baseline_), *samples_.of(candidate_));
  showLegend();
  headline_->setRuns(compared_);
  tables_->setRuns(compared_);
  showBars();
  showHost();
  showLaunches();
  std::vector<StepView::Shown> shown;
  for (const auto& run : compared_.runs) shown.push_back({run, samples_.of(run)->sample, samples_.memory(run)});
  step_->setRuns(std::move(shown));
  std::vector<const Run*> all;
  for (const auto& run : compared_.runs) all.push_back(run);
  colours_->setRuns(all);
  waterfall_->setComparison(compared_.comparison, pair ? baseline_->slot : -1, pair ? candidate_->slot : -1);
  falls_->setTitle(tr("Where the difference went"), pair ? stepsNote() : QString(),
                   pair ? tr("%1 and %2 steps").arg(samples_.of(baseline_)->sample.parts.steps).arg(samples_.of(candidate_)->sample.parts.steps) : QString());
}

// The letters are the window's.
QString CompareTab::stepsNote() const {
  return text(steps_text({{run_letter(baseline_->slot).toStdString(), samples_.of(baseline_).get()},
                          {run_letter(candidate_->slot).toStdString(), samples_.of(candidate_).get()}}));
}

void CompareTab::showLegend() {
  const auto strip = [](const char* mark, Tint of) { return QString("<span style='color:%1; font-size:15px'>%2</span>").arg(tint(of).color().name(), QString::fromUtf8(mark)); };
  legend_->setText(strip("▬", Tint::Slower) + tr(" slower  ") + strip("▬", Tint::Faster) + tr(" faster  ") +
                   strip("┅", Tint::New) + tr(" not in the baseline · dimmed: the next step"));
}

void CompareTab::showBars() {
  std::vector<BarRun> bars;
  for (size_t i = 0; i < compared_.runs.size(); ++i) {
    const ComparedRun& run = *compared_.figures[i];
    bars.push_back({compared_.runs[i]->slot, compared_.runs[i]->title, run.sample.median_parts, run.peak_bytes, run.driver_calls});
  }
  bars_->setRuns(std::move(bars));
}

void CompareTab::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange && legend_) showAll();
  QWidget::changeEvent(event);
}

}  // namespace ws::app
