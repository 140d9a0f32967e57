#include "app/pages/lab/lab_results.h"

#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/pages/lab/lab_sentences.h"
#include "app/pages/lab/lab_share.h"
#include "app/pages/lab/lab_way_style.h"
#include "app/text/units.h"
#include "app/widgets/labels.h"
#include "app/widgets/pane.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kClearGain = 1.05;
constexpr int kBothFrom = 1015;  // minimum width for crossovers and shares side by side

QPushButton* flat_button(const QString& text, const QString& tip, QWidget* parent) {
  auto* button = small_button(text, parent, tip);
  button->setFlat(true);
  button->setFont(ui_font(12));
  return button;
}

QString operation_title(const lab::LabSpec& spec) {
  switch (spec.operation) {
    case lab::Operation::MatMul:
      return QObject::tr("Time of one matrix product");
    case lab::Operation::Sine:
      return QObject::tr("Time of a sine nested %1 deep").arg(spec.depth);
    case lab::Operation::Add:
      return QObject::tr("Time of one addition");
    case lab::Operation::Reduce:
      return QObject::tr("Time of one sum");
    case lab::Operation::Softmax:
      return QObject::tr("Time of one softmax");
    case lab::Operation::Copy:
      return QObject::tr("Time of one copy");
  }
  return {};
}

LabAxis throughput_axis(const lab::LabResult& result) {
  return result.spec.operation == lab::Operation::MatMul ? LabAxis::Flops : LabAxis::Bytes;
}

// The least and the largest measured size; 0 without a point.
std::pair<int64_t, int64_t> sizes_of(const lab::LabResult& result) {
  if (result.points.empty()) return {};
  const auto [least, most] = std::ranges::minmax(result.points, {}, &lab::LabPoint::size);
  return {least.size, most.size};
}

}  // namespace

LabResults::LabResults(QWidget* parent) : QWidget(parent) {
  times_pane_ = buildTimes();
  rate_pane_ = buildThroughput();
  crossovers_pane_ = buildCrossovers();
  shares_pane_ = buildShares();
  for (LabChart* chart : {chart_, throughput_}) {
    connect(chart, &LabChart::cursorMoved, this, &LabResults::setCursorSize);
    connect(chart, &LabChart::picked, this, &LabResults::picked);
  }
  auto* bottom = new QSplitter(Qt::Horizontal, this);
  for (Pane* pane : {rate_pane_, crossovers_pane_, shares_pane_, buildSentences()}) bottom->addWidget(pane);
  bottom->setSizes({350, 400, 400, 330});
  bottom->widget(3)->setMinimumWidth(150);  // sentences
  bottom->setChildrenCollapsible(false);
  auto* all = new QSplitter(Qt::Vertical, this);
  all->addWidget(times_pane_);
  all->addWidget(bottom);
  all->setStretchFactor(0, 5);
  all->setStretchFactor(1, 2);
  all->setSizes({600, 270});
  for (QSplitter* s : {bottom, all}) s->setHandleWidth(5);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(all);
  chooseAxis();
  showSentences();
  showCrossovers();  // says what will be there
}

Pane* LabResults::buildTimes() {
  chart_ = new LabChart(LabAxis::Time);
  chart_->setEmptyText(tr("Press Measure: it times each variant at each size. You see one curve per variant, from which size on one is faster than another, and how much of a call is copying."));
  auto* pane = new Pane(tr("Time of one call"), this);
  pane->setTitle(tr("Time of one call"), tr("median · band: P5 to P95"));
  pane->legend()->hide();
  pane->setBody(chart_);
  axis_ = flat_button({}, tr("What the chart shows: time or throughput"), this);
  axis_->setAccessibleName(axis_->toolTip());
  axis_->setObjectName("axis");
  connect(axis_, &QPushButton::clicked, this, [this] {
    chart_->setAxis(chart_->axis() == LabAxis::Time ? throughput_->axis() : LabAxis::Time);
    chooseAxis();
  });
  auto* overlay = flat_button(tr("Add result…"), tr("Draw an earlier result, or one of resources/torch/lab.py, over this sweep"), this);
  connect(overlay, &QPushButton::clicked, this, &LabResults::overlayWanted);
  clear_ = flat_button(tr("Remove results"), tr("Remove the added results and keep the sweep"), this);
  clear_->hide();
  connect(clear_, &QPushButton::clicked, this, &LabResults::noOverlaysWanted);
  torch_ = flat_button({}, tr("The same sizes and variants in PyTorch, by the shipped script, drawn over this sweep"), this);
  setTorchRunning(false);
  connect(torch_, &QPushButton::clicked, this, &LabResults::torchWanted);
  for (QPushButton* button : {clear_, torch_, overlay, axis_}) pane->addOption(button);
  return pane;
}

Pane* LabResults::buildThroughput() {
  throughput_ = new LabChart(LabAxis::Flops);
  throughput_->setCompact(true);
  auto* pane = new Pane(tr("Throughput"), this);
  pane->setTitle(tr("Throughput"), tr("higher is better"));
  pane->legend()->hide();
  pane->setBody(throughput_);
  return pane;
}

Pane* LabResults::buildCrossovers() {
  crossovers_ = new QTableWidget(0, 5, this);
  crossovers_->setHorizontalHeaderLabels({tr("slower"), tr("faster"), tr("N"), tr("time"), tr("gain")});
  crossovers_->horizontalHeaderItem(4)->setToolTip(tr("at the largest size"));
  style_table(*crossovers_, tr("Crossovers"));
  auto* header = crossovers_->horizontalHeader();
  header->setMinimumSectionSize(58);  // "41.6 µs" in the font of numbers
  for (int column = 0; column < 5; ++column)
    header->setSectionResizeMode(column, column < 2 ? QHeaderView::Stretch : QHeaderView::ResizeToContents);
  auto* pane = new Pane(tr("Crossovers"), this);
  pane->setTitle(tr("Crossovers"), tr("from this N on, the second is faster"));
  pane->legend()->hide();
  pane->setBody(crossovers_);
  to_shares_ = flat_button(tr("Copies and compute"), tr("Show copies and compute in this place"), this);
  connect(to_shares_, &QPushButton::clicked, this, [this] { shares_in_front_ = true; fitPanes(); });
  pane->addOption(to_shares_);
  return pane;
}

Pane* LabResults::buildShares() {
  shares_ = new LabShareView;
  auto* pane = new Pane(tr("Copies and compute"), this);
  pane->legend()->hide();
  pane->setBody(shares_);
  to_crossovers_ = flat_button(tr("Crossovers"), tr("Show the crossovers in this place"), this);
  connect(to_crossovers_, &QPushButton::clicked, this, [this] { shares_in_front_ = false; fitPanes(); });
  pane->addOption(to_crossovers_);
  return pane;
}

Pane* LabResults::buildSentences() {
  auto* pane = new Pane(tr("Findings"), this);
  pane->legend()->hide();
  auto* scroll = new QScrollArea(pane);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setAccessibleName(tr("Findings of the sweep"));
  auto* text = new QWidget;
  text->setAutoFillBackground(true);
  text->setBackgroundRole(QPalette::Base);
  auto* lines = new QVBoxLayout(text);
  lines->setContentsMargins(12, 4, 12, 8);
  headline_ = label(text, ui_font(12.5, 600));
  sentences_ = new QLabel(text);
  sentences_->setWordWrap(true);
  sentences_->setTextFormat(Qt::PlainText);
  sentences_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  to_timeline_ = small_button(tr("Show it on a timeline"), text);
  connect(to_timeline_, &QPushButton::clicked, this, [this] {
    int64_t size = 0;
    for (const lab::LabPoint& p : shown_.at(0).result.points)
      if (p.way == lab::Way::GpuUnsynced && p.recorded.steps > 0) size = std::max(size, p.size);
    emit picked({0, lab::Way::GpuUnsynced, size});
  });
  lines->addWidget(headline_);
  lines->addWidget(sentences_);
  lines->addWidget(to_timeline_, 0, Qt::AlignLeft);
  lines->addStretch(1);
  scroll->setWidget(text);
  pane->setBody(scroll);
  return pane;
}

// False for points whose operation counts no arithmetic and no bytes, and for pitfalls alone: they have no throughput.
bool LabResults::mayHaveRates() const {
  if (shown_.empty() || shown_[0].result.points.empty() || !throughput_->curves().empty()) return true;
  return running_ && std::ranges::any_of(shown_[0].result.points, [](const lab::LabPoint& p) { return p.bytes > 0; });
}

void LabResults::chooseAxis() {
  if (!mayHaveRates()) chart_->setAxis(LabAxis::Time);
  const bool time = chart_->axis() == LabAxis::Time, flops = throughput_->axis() == LabAxis::Flops;
  if (!time && chart_->axis() != throughput_->axis()) chart_->setAxis(throughput_->axis());
  axis_->setVisible(mayHaveRates());
  const QString rate = flops ? tr("Show FLOP/s") : tr("Show B/s");
  axis_->setText(time ? rate : tr("Show time"));
}

// If only one fits, a button chooses which one is in front.
void LabResults::fitPanes() {
  const bool both = width() >= kBothFrom, any = !shown_.empty();
  crossovers_pane_->setVisible(any && (both || !shares_in_front_));
  shares_pane_->setVisible(any && (both || shares_in_front_));
  to_shares_->setVisible(!both);
  to_crossovers_->setVisible(!both);
  crossovers_->setColumnHidden(3, crossovers_->width() < 380);
  crossovers_->setColumnHidden(4, crossovers_->width() < 290);
}

void LabResults::setTorchRunning(bool running) {
  torch_->setText(running ? tr("Stop PyTorch") : tr("The same in PyTorch"));
}

void LabResults::setShown(const std::vector<LabShown>& shown, bool running) {
  shown_ = shown, running_ = running;
  refresh();
  fitPanes();
}

void LabResults::setClock(LabClock clock) {
  clock_ = clock;
  for (LabChart* chart : {chart_, throughput_}) chart->setClock(clock);
  refresh();
}

void LabResults::setPage(const QString& text) {
  page_ = text;
  showSentences();
}

void LabResults::setWhyNoGpu(const QString& why) {
  why_no_gpu_ = why;
  showSentences();
}

void LabResults::refresh() {
  const bool any = !shown_.empty();
  chart_->setShown(shown_);
  throughput_->setAxis(any ? throughput_axis(shown_[0].result) : LabAxis::Flops);
  throughput_->setEmptyText(tr("Rates come with the points"));
  throughput_->setShown(shown_);
  rate_pane_->setVisible(mayHaveRates());
  chooseAxis();
  if (any) {
    const QString how = clock_ == LabClock::Events ? tr("GPU events, median · band: P5 to P95 · CPU and pitfall: host clock")
                                                   : tr("median of up to %1 · band: P5 to P95").arg(shown_[0].result.spec.repeats);
    const QString whose = shown_[0].shipped.isEmpty() ? QString() : tr("shipped result, %1 · ").arg(lab_machine(shown_[0].result));
    const auto [least, most] = sizes_of(shown_[0].result);
    const QString range = whose.isEmpty() || most == 0 ? QString() : tr("N %1 to %2 · ").arg(count_text(least), count_text(most));  // not those in the form
    const QString others = shown_[0].other_settings ? tr("not measured with the settings on the left") : QString();
    const QString brief = others.isEmpty() ? (whose + range).chopped(whose.isEmpty() ? 0 : 3) : tr("shipped result · %1").arg(others);
    times_pane_->setTitle(operation_title(shown_[0].result.spec), whose + range + (others.isEmpty() ? others : others + " · ") + how, brief);
  } else
    times_pane_->setTitle(tr("Time of one call"), {});
  clear_->setVisible(shown_.size() > 1);
  showCrossovers();
  showSentences();
  showShares();
}

void LabResults::showCrossovers() {
  auto found = shown_.empty() ? std::vector<lab::Crossover>{} : lab::crossovers(shown_[0].result);
  const auto last_time = [&](lab::Way way) {
    double seconds = 0;
    int64_t size = 0;
    for (const lab::LabPoint& p : shown_[0].result.points)
      if (p.way == way && p.ok && p.size > size) size = p.size, seconds = p.median_s;
    return seconds;
  };
  // Crossings of curves that almost coincide have no meaning.
  std::erase_if(found, [&](const lab::Crossover& c) {
    return last_time(c.slower_below) < kClearGain * last_time(c.faster_above);
  });
  crossovers_->clearSpans();
  crossovers_->setRowCount(std::max(1, static_cast<int>(found.size())));
  if (found.empty()) {
    auto* none = new QTableWidgetItem(shown_.empty() ? tr("None yet")
                                                     : tr("No variant overtakes another"));
    none->setFlags(Qt::NoItemFlags);
    none->setForeground(theme().quiet);
    crossovers_->setSpan(0, 0, 1, 5);
    return crossovers_->setItem(0, 0, none);
  }
  constexpr int kLongHead = 380;
  const QString size = count_text(sizes_of(shown_[0].result).second);
  crossovers_->horizontalHeaderItem(4)->setText((crossovers_->width() < kLongHead ? tr("at %1") : tr("gain at %1")).arg(size));
  crossovers_->horizontalHeaderItem(4)->setToolTip(tr("gain at %1").arg(size));
  for (int row = 0; row < crossovers_->rowCount(); ++row) {
    const lab::Crossover& c = found[static_cast<size_t>(row)];
    const QString cells[] = {lab_short_label(c.slower_below, shown_[0].result.spec), lab_short_label(c.faster_above, shown_[0].result.spec), lab_size_text(c.size),
                             time_axis_text(c.seconds * 1e6),
                             significant_text(last_time(c.slower_below) / last_time(c.faster_above)) + "×"};
    for (int column = 0; column < 5; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      item->setToolTip(cells[column]);
      if (column > 1) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      crossovers_->setItem(row, column, item);
    }
  }
}

// The text of the chosen sweep, and below it the results of this machine.
void LabResults::showSentences() {
  QStringList lines;
  if (!page_.isEmpty()) lines << page_;
  const bool shipped = !shown_.empty() && !shown_[0].shipped.isEmpty();
  if (shipped && page_.isEmpty()) lines << shown_[0].shipped;
  if (!shown_.empty()) lines << lab_findings(shown_[0].result);
  if (shipped) lines << tr("Press Measure to replace this shipped result with the times of your machine.");
  if ((shipped || shown_.empty()) && !why_no_gpu_.isEmpty()) lines << tr("Only CPU variants can be measured here. %1").arg(why_no_gpu_);
  if (lines.isEmpty())
    lines << tr(
        "Each point is checked against the CPU in float64. Points with errors beyond rounding are not drawn. Dashed "
        "curves are pitfalls, shown as a warning. Click a point to open the timeline of its calls.");
  const bool only_machine = shown_.empty() && page_.isEmpty() && !why_no_gpu_.isEmpty();
  headline_->setText(only_machine ? tr("This machine") : lab_headline(shown_.empty() ? lab::LabResult{} : shown_[0].result));
  sentences_->setText(lines.join("\n\n"));
  bool recorded = false;
  if (!shown_.empty() && !shown_[0].path.isEmpty())
    for (const lab::LabPoint& p : shown_[0].result.points)
      recorded = recorded || (p.way == lab::Way::GpuUnsynced && p.recorded.steps > 0);
  to_timeline_->setVisible(recorded && !running_);
}

// Shows the shares at the cursor, otherwise at the largest size.
void LabResults::showShares() {
  std::optional<int64_t> size = chart_->cursorPoint();
  if (!size && !shown_.empty())
    for (const lab::LabPoint& p : shown_[0].result.points)
      if (p.ok && (!size || p.size > *size)) size = p.size;
  if (shown_.empty() || !size) {
    shares_pane_->setTitle(tr("Copies and compute"), {});
    return shares_->setShares({}, lab::Operation::MatMul);
  }
  shares_pane_->setTitle(tr("Copies and compute"),
                         tr("of one call at N = %1").arg(lab_size_text(static_cast<double>(*size))));
  shares_->setShares(lab_shares(shown_[0].result, *size), shown_[0].result.spec.operation);
}

void LabResults::setCursorSize(double size) {
  chart_->setCursorSize(size);
  throughput_->setCursorSize(size);
  showShares();
}

void LabResults::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitPanes();
}

void LabResults::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && crossovers_) refresh();  // the content contains theme colours
}

}  // namespace ws::app
