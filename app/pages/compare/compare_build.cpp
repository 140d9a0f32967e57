// The parts of the Compare tab and how they stand.
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>

#include "app/charts/curve_pane.h"
#include "app/pages/compare/bars_view.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/compare/compare_table.h"
#include "app/widgets/paged_pane.h"
#include "app/pages/compare/step_view.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/widgets/table_style.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"
#include "app/widgets/chart_file.h"

namespace ws::app {
namespace {

QLabel* rich_label(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextFormat(Qt::RichText);
  return label;
}

}  // namespace

CompareTab::CompareTab(QWidget* parent) : QWidget(parent) {
  picker_ = buildPicker();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(5, 5, 5, 5);
  column->setSpacing(5);
  column->addWidget(buildHeadline());
  auto* all = new QSplitter(Qt::Vertical, this);
  all->setHandleWidth(5);
  all->setChildrenCollapsible(false);
  all->addWidget(buildViews());
  all->addWidget(buildTables());
  all->setSizes({350, 340});
  column->addWidget(all, 1);
  due_.setSingleShot(true);
  next_.setSingleShot(true);
  next_.setInterval(0);
  redraw_.setInterval(40);
  connect(&due_, &QTimer::timeout, this, &CompareTab::refresh);
  connect(&next_, &QTimer::timeout, this, &CompareTab::sampleNext);
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
  candidate_box_->setAccessibleName(tr("Candidate"));
  auto* swap = new QPushButton(box);
  swap->setIcon(theme_icon("swap"));
  swap->setAccessibleName(tr("Swap baseline and candidate"));
  swap->setToolTip(swap->accessibleName());
  for (QComboBox* combo : {baseline_box_, candidate_box_})
    combo->setMinimumWidth(170), combo->setPlaceholderText(tr("tick a second run"));
  row->addWidget(new QLabel(tr("Baseline"), box));
  row->addWidget(baseline_box_);
  row->addWidget(swap);
  row->addWidget(new QLabel(tr("Candidate"), box));
  row->addWidget(candidate_box_);
  connect(swap, &QPushButton::clicked, this, &CompareTab::swapRuns);
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

QWidget* CompareTab::buildHeadline() {
  auto* panel = new QWidget(this);
  style_ground(*panel, "panel");
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(14, 9, 12, 8);
  column->setSpacing(5);
  auto* top = new QHBoxLayout;
  auto* left = new QVBoxLayout;
  left->setSpacing(1);
  headline_ = new QLabel(panel);
  headline_->setFont(ui_font(21, 600));
  times_ = new QLabel(panel);
  times_->setFont(ui_font(12));
  times_->setForegroundRole(QPalette::PlaceholderText);
  left->addWidget(headline_);
  left->addWidget(times_);
  causes_ = rich_label(panel);
  causes_->setFont(ui_font(12));
  top->addLayout(left);
  top->addSpacing(30);
  top->addWidget(causes_, 1);
  top->addWidget(buildExport(), 0, Qt::AlignVCenter);
  column->addLayout(top);
  choices_ = rich_label(panel);
  choices_->setFont(ui_font(12));
  warnings_ = rich_label(panel);
  warnings_->setFont(ui_font(11));
  column->addWidget(choices_);
  column->addWidget(warnings_);
  return panel;
}

QPushButton* CompareTab::buildExport() {
  auto* button = new QPushButton(tr("Export"), this);
  button->setIcon(theme_icon("export"));
  button->setProperty("menu", true);
  auto* menu = new QMenu(button);
  menu->addAction(tr("Report as HTML or PDF…"), this, &CompareTab::chooseReport);
  menu->addSeparator();
  menu->addAction(tr("Timelines as a picture…"), this, [this] { exportChart(timelinePicture()); });
  menu->addAction(tr("Timelines as Chrome JSON…"), this, &CompareTab::chooseRange);
  menu->addAction(tr("Where it went…"), this, [this] { exportChart(waterfallPicture()); });
  menu->addAction(tr("Bars…"), this, [this] { exportChart(barsPicture()); });
  menu->addAction(tr("Measures as CSV…"), this, [this] { exportTable(tr("Measures"), "measures.csv", measuresCsv()); });
  menu->addAction(tr("Kernels as CSV…"), this, [this] { exportTable(tr("Kernels"), "kernels.csv", kernelsCsv()); });
  button->setMenu(menu);
  return button;
}

QWidget* CompareTab::buildViews() {
  views_ = new PagedPane(tr("Runs over each other"), this);
  step_ = new StepView(views_);
  bars_ = new BarsView(views_);
  views_->addPage(tr("Timelines"), step_);
  views_->addPage(tr("Curves"), buildCurves());
  views_->addPage(tr("Bars"), bars_);
  buildTimelineOptions();
  connect(step_, &StepView::said, this, [this](const QString& sentence) { emit said(sentence, false); });
  return views_;
}

void CompareTab::buildTimelineOptions() {
  align_ = new QPushButton(views_);
  align_->setProperty("small", true);
  align_->setProperty("menu", true);
  align_->setAccessibleName(tr("How the runs are laid over each other"));
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
      tr("A strip under each block that differs from the baseline's by more than 15 %: slower, faster, or "
         "only in this run"));
  legend_ = new QLabel(views_);
  legend_->setTextFormat(Qt::RichText);
  legend_->setFont(ui_font(11));
  legend_->setForegroundRole(QPalette::PlaceholderText);
  connect(tint, &QPushButton::toggled, step_, &StepView::setTinted);
  connect(tint, &QPushButton::toggled, this, [this](bool on) { views_->setOptionVisible(legend_, on); });
  auto* fit = new QPushButton(theme_icon("fit"), tr("Fit"), views_);
  fit->setProperty("small", true);
  fit->setToolTip(tr("Show the aligned step (F)"));
  connect(fit, &QPushButton::clicked, step_, &StepView::fit);
  for (QWidget* option : std::initializer_list<QWidget*>{legend_, tint, align_, step_number_, fit})
    views_->addOption(0, option);
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
  }
  return row;
}

QWidget* CompareTab::buildWaterfallSwitch(QWidget* parent) {
  const QString kind = QStringLiteral("kind"), op = QStringLiteral("op");
  auto* by =
      new SegmentedRow(tr("What the difference is split by"), {{kind, tr("By kind")}, {op, tr("By op")}}, parent);
  by->setFixedWidth(124);
  by->setValue(kind);
  by->setToolTip(tr("By kind of work, or with the time of kernels by the op that they belong to"));
  connect(by, &SegmentedRow::picked, this, [this, op](const QString& value) { waterfall_->setByOp(value == op); });
  return by;
}

QWidget* CompareTab::buildTables() {
  auto* falls = new Pane(tr("Where the time went"), this);
  falls->setTitle(tr("Where the difference went"), tr("µs a step · parts sum to it"), tr("µs a step"));
  falls->legend()->hide();
  waterfall_ = new WaterfallView(falls);
  falls->setBody(waterfall_);
  falls->addOption(buildWaterfallSwitch(falls));
  numbers_ = new PagedPane(tr("Numbers"), this);
  measures_ = new QTableWidget(0, 6, this);
  kernels_ = new QTableWidget(0, 6, this);
  spec_ = new QTableWidget(0, 2, this);
  style_table(*measures_, tr("Measures"));
  style_table(*kernels_, tr("Kernels by difference"));
  style_table(*spec_, tr("Choices that differ"));
  for (QTableWidget* table : {measures_, kernels_, spec_}) {
    table->setItemDelegate(new CompareDelegate(table));
    table->horizontalHeader()->setIconSize({15, 15});
  }
  connect(measures_->horizontalHeader(), &QHeaderView::sectionResized, this, &CompareTab::fitMeasures);
  numbers_->addPage(tr("Measures"), measures_);
  numbers_->addPage(tr("Kernels by Δ"), kernels_);
  numbers_->addPage(tr("Choices"), spec_);
  auto* row = new QSplitter(Qt::Horizontal, this);
  row->setHandleWidth(5);
  row->setChildrenCollapsible(false);
  row->addWidget(falls);
  row->addWidget(numbers_);
  row->setSizes({560, 660});
  return row;
}

}  // namespace ws::app
