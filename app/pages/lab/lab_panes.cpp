// The right side of the laboratory: the charts, the tables and the page of text.
#include <QCheckBox>
#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>

#include "app/widgets/pane.h"
#include "app/pages/lab/lab_share.h"
#include "app/pages/lab/lab_tab.h"
#include "app/widgets/table_style.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kBothFrom = 1330;  // from this width on crossovers and shares stand side by side

QPushButton* small_button(const QString& text, const QString& tip, QWidget* parent) {
  auto* button = new QPushButton(text, parent);
  button->setProperty("small", true);
  button->setFlat(true);
  button->setFont(ui_font(12));
  button->setToolTip(tip);
  return button;
}

}  // namespace

LabTab::LabTab(QWidget* parent) : QWidget(parent), job_(new LabJob(this)) {
  auto* split = new QHBoxLayout(this);
  split->setContentsMargins(5, 5, 5, 5);
  split->setSpacing(5);
  split->addWidget(buildSetup());
  split->addWidget(buildCharts(), 1);
  connect(job_, &LabJob::changed, this, &LabTab::showResult);
  connect(job_, &LabJob::progressed, this, [this](int done, int of, const QString& what) {
    state_->setText(tr("%1 of %2: %3").arg(done).arg(of).arg(what));
  });
  connect(job_, &LabJob::ended, this, &LabTab::jobEnded);
  connect(clock_, &SegmentedRow::picked, this, [this](const QString& clock) {
    for (LabChart* chart : {chart_, throughput_})
      chart->setClock(clock == "events" ? LabClock::Events : LabClock::Host);
    showResult();
  });
  chooseAxis();
  showStory();
  showCrossovers();  // says what will stand there
}

QWidget* LabTab::buildCharts() {
  times_pane_ = buildTimes();
  rate_pane_ = buildThroughput();
  crossovers_pane_ = buildCrossovers();
  shares_pane_ = buildShares();
  for (LabChart* chart : {chart_, throughput_}) {
    connect(chart, &LabChart::cursorMoved, this, &LabTab::setCursorSize);
    connect(chart, &LabChart::picked, this, &LabTab::openPoint);
  }
  auto* bottom = new QSplitter(Qt::Horizontal, this);
  for (Pane* pane : {rate_pane_, crossovers_pane_, shares_pane_, buildStory()}) bottom->addWidget(pane);
  bottom->setSizes({350, 400, 400, 330});
  bottom->setChildrenCollapsible(false);
  auto* all = new QSplitter(Qt::Vertical, this);
  all->addWidget(times_pane_);
  all->addWidget(bottom);
  all->setStretchFactor(0, 5);
  all->setStretchFactor(1, 2);
  all->setSizes({600, 270});
  for (QSplitter* s : {bottom, all}) s->setHandleWidth(5);
  return all;
}

Pane* LabTab::buildTimes() {
  chart_ = new LabChart(LabAxis::Time);
  chart_->setEmptyText(tr("Choose an operation and press Measure: one curve a way, a point a size, as they come."));
  auto* pane = new Pane(tr("Time of one call"), this);
  pane->setTitle(tr("Time of one call"), tr("median · band: 5th to 95th percentile"));
  pane->legend()->hide();
  pane->setBody(chart_);
  axis_ = option_button(tr("What the chart shows: time or throughput"), this);
  connect(axis_, &QPushButton::clicked, this, [this] {
    chart_->setAxis(chart_->axis() == LabAxis::Time ? throughput_->axis() : LabAxis::Time);
    chooseAxis();
  });
  auto* overlay = small_button(tr("Lay over…"), tr("An earlier result, or that of resources/torch/lab.py"), this);
  connect(overlay, &QPushButton::clicked, this, &LabTab::chooseOverlay);
  clear_ = small_button(tr("Remove overlays"), tr("Keeps the sweep itself"), this);
  clear_->hide();
  connect(clear_, &QPushButton::clicked, this, [this] {
    opened_.clear(), ticked_.clear(), before_.clear();
    showResult();
  });
  auto* torch = small_button(tr("The same in PyTorch"),
                             tr("The same sizes and ways by the shipped PyTorch script, laid over this sweep"), this);
  buildTorch(torch);
  for (QPushButton* button : {clear_, torch, overlay, axis_}) pane->addOption(button);
  return pane;
}

Pane* LabTab::buildThroughput() {
  throughput_ = new LabChart(LabAxis::Flops);
  throughput_->setCompact(true);
  throughput_->setEmptyText(tr("Rates come with the points"));
  auto* pane = new Pane(tr("Throughput"), this);
  pane->setTitle(tr("Throughput"), tr("higher is better"));
  pane->legend()->hide();
  pane->setBody(throughput_);
  return pane;
}

Pane* LabTab::buildCrossovers() {
  crossovers_ = new QTableWidget(0, 5, this);
  crossovers_->setHorizontalHeaderLabels({tr("slower"), tr("faster"), tr("N"), tr("time"), tr("gain")});
  crossovers_->horizontalHeaderItem(4)->setToolTip(tr("at the largest size"));
  style_table(*crossovers_, tr("Crossovers"));
  auto* header = crossovers_->horizontalHeader();
  header->setMinimumSectionSize(50);
  for (int column = 0; column < 5; ++column)
    header->setSectionResizeMode(column, column < 2 ? QHeaderView::Stretch : QHeaderView::ResizeToContents);
  auto* pane = new Pane(tr("Crossovers"), this);
  pane->setTitle(tr("Crossovers"), tr("from this N on, the second is faster"));
  pane->legend()->hide();
  pane->setBody(crossovers_);
  to_shares_ = small_button(tr("Copies"), tr("Copies and compute instead"), this);
  connect(to_shares_, &QPushButton::clicked, this, [this] { shares_in_front_ = true, fitPanes(); });
  pane->addOption(to_shares_);
  return pane;
}

Pane* LabTab::buildShares() {
  shares_ = new LabShareView;
  auto* pane = new Pane(tr("Copies and compute"), this);
  pane->legend()->hide();
  pane->setBody(shares_);
  to_crossovers_ = small_button(tr("Crossovers"), tr("Crossovers instead"), this);
  connect(to_crossovers_, &QPushButton::clicked, this, [this] { shares_in_front_ = false, fitPanes(); });
  pane->addOption(to_crossovers_);
  return pane;
}

Pane* LabTab::buildStory() {
  auto* pane = new Pane(tr("What it says"), this);
  pane->legend()->hide();
  auto* scroll = new QScrollArea(pane);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setAccessibleName(tr("What the sweep says"));
  auto* text = new QWidget;
  text->setAutoFillBackground(true);
  text->setBackgroundRole(QPalette::Base);
  auto* lines = new QVBoxLayout(text);
  lines->setContentsMargins(12, 4, 12, 8);
  story_title_ = new QLabel(text);
  story_title_->setFont(ui_font(12.5, 600));
  story_title_->setWordWrap(true);
  story_ = new QLabel(text);
  story_->setWordWrap(true);
  story_->setTextFormat(Qt::PlainText);
  story_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  to_timeline_ = new QPushButton(tr("Show it on a timeline"), text);
  to_timeline_->setProperty("small", true);
  connect(to_timeline_, &QPushButton::clicked, this, [this] {
    int64_t size = 0;
    for (const lab::LabPoint& p : shown().at(0).result.points)
      if (p.way == lab::Way::GpuUnsynced && p.recorded.steps > 0) size = std::max(size, p.size);
    openPoint({0, lab::Way::GpuUnsynced, size});
  });
  lines->addWidget(story_title_);
  lines->addWidget(story_);
  lines->addWidget(to_timeline_, 0, Qt::AlignLeft);
  lines->addStretch(1);
  scroll->setWidget(text);
  pane->setBody(scroll);
  return pane;
}

void LabTab::chooseAxis() {
  const bool time = chart_->axis() == LabAxis::Time, flops = throughput_->axis() == LabAxis::Flops;
  if (!time && chart_->axis() != throughput_->axis()) chart_->setAxis(throughput_->axis());
  axis_->setText(time ? tr("y: time") : flops ? tr("y: FLOP/s") : tr("y: B/s"));
}

// Where both find no room the one in front is chosen by a button.
void LabTab::fitPanes() {
  const bool both = width() >= kBothFrom;
  crossovers_pane_->setVisible(both || !shares_in_front_);
  shares_pane_->setVisible(both || shares_in_front_);
  to_shares_->setVisible(!both);
  to_crossovers_->setVisible(!both);
  crossovers_->setColumnHidden(3, crossovers_->width() < 380);
}

void LabTab::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitPanes();
}

void LabTab::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ready();
}

void LabTab::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || !ready_) return;
  for (const auto& [way, check] : ways_) check->setIcon(lab_way_icon(way));
  showResult();  // the curves carry their colours
}

}  // namespace ws::app
