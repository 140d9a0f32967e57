#include "app/charts/curve_pane.h"

#include <QMessageBox>
#include <QPicture>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "app/charts/driver_calls.h"
#include "app/charts/plot.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/chart_file.h"
#include "app/widgets/theme.h"
#include "app/workspace/run_loss.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

constexpr int kArrow = 22, kBesideTitle = kArrow + 62, kValue = 44;

// In the order of Gauge; `brief` where there is little space.
struct GaugeName {
  const char *title, *brief;
};
constexpr GaugeName kGauges[] = {{"Loss", "Loss"},
                                 {"Test accuracy", "Accuracy"},
                                 {"Allocator calls", "Calls"},
                                 {"Time in allocator calls", "In calls"},
                                 {"Throughput", "Rate"},
                                 {"Memory", "Memory"}};
QString brief_title(Gauge measure) { return QObject::tr(kGauges[static_cast<size_t>(measure)].brief); }

bool per_step(Gauge m) { return m == Gauge::Loss || m == Gauge::Accuracy; }

constexpr double kSteepShare = 0.02;  // share of the width

QPen run_pen(int slot, double width) {
  QPen pen(theme().run[std::max(0, slot) % 8], width);
  if (slot >= 4) pen.setDashPattern({6, 2});
  pen.setJoinStyle(Qt::RoundJoin);
  return pen;
}

void add_graph(QCustomPlot* plot, const MinMaxSeries& series, const QPen& pen, bool steps) {
  const QCPRange range = plot->xAxis->range();
  const bool log = plot->yAxis->scaleType() == QCPAxis::stLogarithmic;
  QVector<QCPGraphData> data;
  for (const Point& p : series.sample(range.lower, range.upper, std::max(50, plot->axisRect()->width())))
    if (!log || p.y > 0) data.push_back({p.x, p.y});
  QCPGraph* graph = plot->addGraph();
  graph->setPen(pen);
  graph->setAntialiased(true);
  graph->setAdaptiveSampling(false);
  graph->setLineStyle(steps ? QCPGraph::lsStepRight : QCPGraph::lsLine);
  graph->data()->set(data, true);
}

constexpr double kHead = 26, kFoot = 20;

// Further losses of a run have its colour. Their lines are broken, and their tests have other marks.
QPen loss_pen(int slot, size_t line) {
  QPen pen = run_pen(slot, 1.5);
  const QList<qreal> dashes[] = {{5, 3}, {1.5, 2.5}, {8, 3, 1.5, 3}};
  pen.setDashPattern(dashes[line % 3]);
  pen.setCapStyle(Qt::FlatCap);
  return pen;
}
QCPScatterStyle test_marks(int slot, size_t line, double size) {
  constexpr QCPScatterStyle::ScatterShape kShapes[] = {QCPScatterStyle::ssCircle, QCPScatterStyle::ssSquare, QCPScatterStyle::ssTriangle,
                                                       QCPScatterStyle::ssDiamond};
  return {kShapes[line % 4], QPen(theme().run[std::max(0, slot) % 8], 1.2), theme().base, size};
}

QString x_name(XAxis axis) {
  return axis == XAxis::Step    ? QObject::tr("step")
         : axis == XAxis::Epoch ? QObject::tr("epoch")
                                : QObject::tr("training time, s");
}

QString brief_x_name(XAxis axis) { return axis == XAxis::Wall ? QObject::tr("time, s") : x_name(axis); }

// An exponential mean of factor f weighs as many values as a plain mean of 1 / (1 - f).
QString smoothing_name(double factor) { return QObject::tr("Running mean of up to %1 batches").arg(std::lround(1 / (1 - factor))); }

}  // namespace

QString measure_title(Gauge measure) { return QObject::tr(kGauges[static_cast<size_t>(measure)].title); }

CurvePane::CurvePane(std::vector<Gauge> measures, QWidget* parent)
    : Pane(measure_title(measures.front()), parent),
      measures_(std::move(measures)),
      measure_(measures_.front()),
      plot_(new Plot(this)) {
  log_y_ = measure_ == Gauge::Loss;
  setBody(plot_);
  legend()->installEventFilter(this);
  buildOptions();
  plot_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(plot_, &QWidget::customContextMenuRequested, this, [this](QPoint at) {
    QMenu menu(this);
    fillMenu(&menu);
    menu.exec(plot_->mapToGlobal(at));
  });
  connect(plot_, &Plot::cursorMoved, this, [this](double x) { emit cursorMoved(stepOfX(x)); });
  connect(plot_, &Plot::pointerLeft, this, &CurvePane::pointerLeft);
  connect(plot_, &Plot::zoomChanged, this, [this] { redraw(); });
  connect(this, &Pane::noteResized, this, [this] {
    showCaption();
    plot_->replot(QCustomPlot::rpQueuedReplot);
  });
  setMinimumSize(220, 120);
  setMeasure(measure_);
}

// One button that is there at every width, with every option; the context menu has the same.
void CurvePane::buildOptions() {
  auto* options = new QToolButton(this);
  options->setIcon(theme_icon("more"));
  options->setAccessibleName(tr("Options of this chart"));
  options->setToolTip(tr("Axes, smoothing, fit, export"));
  auto* menu = new QMenu(options);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] {
    menu->clear();
    fillMenu(menu);
  });
  connect(options, &QToolButton::clicked, this,
          [options, menu] { menu->popup(options->mapToGlobal(QPoint(0, options->height()))); });
  addOption(options);
  if (measures_.size() < 2) return;
  measure_button_ = option_button(tr("Gauge"), this);
  auto* measures = new QMenu(measure_button_);
  for (Gauge m : measures_)
    connect(measures->addAction(measure_title(m)), &QAction::triggered, this, [this, m] { setMeasure(m); });
  measure_button_->setMenu(measures);
  setTitleButton(measure_button_);
}

void CurvePane::fillMenu(QMenu* menu) {
  const auto choice = [this](QMenu* in, const QString& name, bool now, auto act) {
    QAction* action = in->addAction(name);
    action->setCheckable(true);
    action->setChecked(now);
    connect(action, &QAction::triggered, this, act);
  };
  if (measure_button_) menu->addMenu(tr("Gauge"))->addActions(measure_button_->menu()->actions());
  QMenu* axes = menu->addMenu(tr("Vertical axis"));
  choice(axes, tr("Log y"), log_y_, [this] { setLogY(true); });
  choice(axes, tr("Linear y"), !log_y_, [this] { setLogY(false); });
  QMenu* across = menu->addMenu(tr("Horizontal axis"));
  const std::pair<XAxis, QString> values[] = {{XAxis::Step, tr("Step")}, {XAxis::Epoch, tr("Epoch")}, {XAxis::Wall, tr("Wall time")}};
  for (const auto& [axis, name] : values) choice(across, name, axis == x_, [this, axis = axis] { emit xAxisChosen(axis); });
  across->addSeparator();
  choice(across, tr("Log x"), log_x_, [this] { setLogX(true); });
  choice(across, tr("Linear x"), !log_x_, [this] { setLogX(false); });
  if (per_step(measure_)) {
    QMenu* smoothing = menu->addMenu(tr("Smoothing"));
    for (double factor : {0.0, 0.6, 0.9, 0.98, 0.99})
      choice(smoothing, factor == 0 ? tr("Batch loss, not smoothed") : smoothing_name(factor), factor == smoothing_,
             [this, factor] { setSmoothing(factor); });
  }
  menu->addSeparator();
  menu->addAction(tr("Fit"), plot_, &Plot::fit);
  menu->addAction(tr("Undo zoom"), plot_, &Plot::undoZoom)->setEnabled(plot_->canUndoZoom());
  menu->addAction(tr("Export the chart…"), this, &CurvePane::exportImage);
}

// The values of the runs come first. The name of the measure gets the remaining width.
void CurvePane::nameMeasure() {
  if (!measure_button_) return;
  const QFontMetrics metrics(measure_button_->font());
  const bool values = !legend()->items().empty() && legend()->items().front().value.isEmpty();  // they come with the pointer
  const int space = width() - legend()->sizeHint().width() - (values ? kValue : 0) - kBesideTitle;
  // An own training counts the calls of its ops to its allocator; of other programs only the driver's calls are known.
  const bool driver = measure_ == Gauge::AllocatorCalls && !curves_.empty() &&
                      std::ranges::all_of(curves_, [](const CurveData& curve) { return curve.run() && !curve.run()->hasChoices(); });
  QString name = driver ? tr("Driver allocator calls") : shownTitle();
  if (metrics.horizontalAdvance(name) > space) name = brief_title(measure_);
  measure_button_->setText(name);
  measure_button_->setToolTip(measure_ == Gauge::AllocatorCalls ? tr("Calls that allocate or free memory, per step") : QString());
  measure_button_->setFixedWidth(metrics.horizontalAdvance(name) + kArrow);
}

void CurvePane::setRuns(const std::vector<Run*>& runs) {
  bool same = runs.size() == curves_.size();
  for (size_t i = 0; same && i < runs.size(); ++i) same = curves_[i].run() == runs[i];
  if (same) return;
  // A zoom and the place of the pointer are about the current run: another one has another axis.
  std::vector<Run*> before;
  for (const CurveData& curve : curves_) before.push_back(curve.run());
  const bool other = before.empty() || current_of(before) != current_of(runs);
  if (other) plot_->forgetZoom(), cursor_step_.reset();
  curves_.clear();
  for (Run* run : runs) {
    curves_.emplace_back(run, measure_, x_, smoothing_, unit_.bytes);
    connect(run, &Run::changed, this, [this] { dirty_ = true; });
  }
  dirty_ = true;
  redraw();
}

void CurvePane::rebuild() {
  for (CurveData& curve : curves_) curve = CurveData(curve.run(), measure_, x_, smoothing_, unit_.bytes);
  dirty_ = true;
  redraw();
}

void CurvePane::setXAxis(XAxis axis) {
  x_ = axis;
  nameMeasure();
  plot_->forgetZoom();
  rebuild();
}

// Until a test was made, the accuracy is of batches.
bool CurvePane::ofBatches() const {
  return measure_ == Gauge::Accuracy && std::ranges::any_of(curves_, [](const CurveData& curve) { return curve.smooth().size() > 1; }) &&
         std::ranges::all_of(curves_, [](const CurveData& curve) { return curve.test().empty(); });
}
QString CurvePane::shownTitle() const { return ofBatches() ? brief_title(measure_) : measure_title(measure_); }

// "running mean of 6 batches": the mean of a short run has a shorter window.
QString CurvePane::meanName() const {
  double most = 1;
  for (const CurveData& curve : curves_) most = std::max(most, curve.batchesInMean());
  return std::lround(most) < 2 ? tr("running mean") : tr("running mean of %1 batches").arg(std::lround(most));
}

// Explains the lines that are drawn, if a run has more than one.
QString CurvePane::lineKey(bool brief) const {
  const auto any = [this](auto&& drawn) { return std::ranges::any_of(curves_, drawn); };
  QStringList parts;
  if (measure_ == Gauge::Loss && smoothing_ > 0)
    parts << (brief ? tr("running mean") : tr("line: %1").arg(meanName()))
          << (brief ? tr("faint: batch") : tr("faint: batch loss"));
  else if (measure_ == Gauge::Loss)
    parts << (brief ? tr("batch") : tr("line: batch loss"));
  if (measure_ == Gauge::Loss && any([](const CurveData& curve) { return !curve.test().empty(); }))
    parts << (brief ? tr("○ test") : tr("○ test loss"));
  if (measure_ == Gauge::Accuracy && any([](const CurveData& curve) { return !curve.test().empty(); }))
    parts << (any([](const CurveData& curve) { return curve.test().size() > 1; }) ? tr("line: test") : tr("dot: test"));
  if (measure_ == Gauge::Accuracy && any([](const CurveData& curve) { return curve.smooth().size() > 1; })) parts << tr("faint: batch");
  const auto apart = [](const MeterPoint& p) { return p.used < p.reserved; };
  if (measure_ == Gauge::Memory && any([&](const CurveData& curve) { return curve.run() && std::ranges::any_of(curve.run()->meters, apart); }))
    parts << tr("line reserved, dotted used");
  return parts.join(QStringLiteral(" · "));
}

void CurvePane::showNote() {
  const QString brief = measure_ == Gauge::Loss             ? QString()  // the plot has the key
                        : measure_ == Gauge::Accuracy       ? QStringLiteral("%")
                        : measure_ == Gauge::AllocatorCalls ? tr("per step")
                        : measure_ == Gauge::AllocatorTime  ? tr("µs per step")
                        : measure_ == Gauge::Throughput     ? tr("samples/s")
                                                           : QString::fromLatin1(unit_.name);
  const QString key = key_ = lineKey();
  const QString note = key.isEmpty() ? brief : measure_ == Gauge::Loss ? key : brief + " · " + key;
  setTitle(shownTitle(), note, brief);
}

void CurvePane::setMeasure(Gauge measure) {
  measure_ = measure;
  log_y_ = measure == Gauge::Loss;
  showNote();
  plot_->setAccessibleName(tr("%1 chart").arg(measure_title(measure)));
  plot_->setLogY(log_y_);
  nameMeasure();
  plot_->forgetZoom();
  rebuild();
}

void CurvePane::setLogY(bool on) {
  log_y_ = on;
  plot_->setLogY(on);
  nameMeasure();
  redraw();
}

void CurvePane::setLogX(bool on) {
  log_x_ = on;
  plot_->setLogX(on);
  nameMeasure();
  plot_->forgetZoom();
  redraw();
}

void CurvePane::setSmoothing(double factor) {
  smoothing_ = factor;
  showNote();
  rebuild();
}

void CurvePane::resizeEvent(QResizeEvent* event) {
  Pane::resizeEvent(event);
  nameMeasure();
  showCaption();
}

bool CurvePane::eventFilter(QObject* watched, QEvent* event) {
  if (watched == legend() && event->type() == QEvent::Resize) showValues();
  return Pane::eventFilter(watched, event);
}

bool CurvePane::canUndoZoom() const { return plot_->canUndoZoom(); }

void CurvePane::undoZoom() { plot_->undoZoom(); }

std::optional<double> CurvePane::cursorX() const {
  if (!cursor_step_ || curves_.empty() || !curves_.front().run()) return {};
  return curves_.front().xOfStep(*cursor_step_);
}

double CurvePane::stepOfX(double x) const {
  return curves_.empty() || !curves_.front().run() ? x : curves_.front().stepOf(x);
}

void CurvePane::setCursorStep(std::optional<double> step, bool values) {
  cursor_step_ = step;
  cursor_values_ = values;
  plot_->setCursor(cursorX());
  refreshLegend();
  refreshOverlay();
}

// Explains the lines in the plot if the title line has too little space.
// In a narrow chart the key says only what its title does not.
void CurvePane::showCaption() {
  constexpr int kAxis = 90;
  QString key = noteFits() ? QString() : lineKey();
  if (measure_ == Gauge::Loss && QFontMetrics(ui_font(10.5)).horizontalAdvance(key) > width() - kAxis)
    key = lineKey(true);
  plot_->setCaption(key,
                    Qt::AlignRight | (measure_ == Gauge::Accuracy ? Qt::AlignBottom : Qt::AlignTop));
}

// Memory has the unit that other views write it in.
void CurvePane::fitUnit() {
  double most = 0;
  for (const CurveData& curve : curves_)
    if (curve.run())
      for (const MeterPoint& p : curve.run()->meters) most = std::max({most, p.reserved, p.used});
  const ByteUnit unit = byte_unit(most);
  if (unit.bytes == unit_.bytes) return;
  unit_ = unit;
  for (CurveData& curve : curves_) curve = CurveData(curve.run(), measure_, x_, smoothing_, unit_.bytes);
  showNote();
}

void CurvePane::redraw() {
  dirty_ = false;
  if (measure_ == Gauge::Memory) fitUnit();
  for (CurveData& curve : curves_) curve.take();
  std::erase_if(curves_, [](const CurveData& curve) { return !curve.run(); });
  if (lineKey() != key_) showNote();
  scaleAxes();
  plot_->setXName(brief_x_name(x_));
  drawCurves();
  plot_->setEmptyText(emptyText());
  showCaption();
  plot_->setCursor(cursorX());
  refreshLegend();
  refreshOverlay();
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

// True if both curves have nearly the same pixels everywhere, so that the lower one would be hidden.
bool CurvePane::covers(const MinMaxSeries& upper, const MinMaxSeries& lower) const {
  constexpr int kProbes = 48;
  if (upper.empty() || lower.empty()) return false;
  const QCPRange x = plot_->xAxis->range();
  const double end = std::min(upper.at(upper.size() - 1).x, lower.at(lower.size() - 1).x);
  int seen = 0, same = 0;
  for (int i = 0; i < kProbes; ++i) {
    const double at = x.lower + x.size() * (i + 0.5) / kProbes;
    if (at > end) break;
    const double a = upper.nearest(at)->y, b = lower.nearest(at)->y;
    ++seen;
    same += a == b || std::abs(plot_->yAxis->coordToPixel(a) - plot_->yAxis->coordToPixel(b)) < 1.5;
  }
  return seen > 2 && same * 10 >= seen * 8;
}

void CurvePane::drawCurves() {
  plot_->clearGraphs();
  const bool steps = measure_ == Gauge::AllocatorCalls || measure_ == Gauge::AllocatorTime || measure_ == Gauge::Memory;
  for (size_t i = 0; i < curves_.size(); ++i) {
    const CurveData& curve = curves_[i];
    const int slot = curve.run()->slot;
    const bool above = std::any_of(curves_.begin(), curves_.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const CurveData& other) { return covers(curve.shown(), other.shown()); });
    QColor ghost = theme().run[std::max(0, slot) % 8];
    ghost.setAlphaF(measure_ == Gauge::Loss ? 0.16F : 0.3F);
    if (measure_ == Gauge::Loss && smoothing_ > 0) add_graph(plot_, curve.raw(), QPen(ghost, 1), false);
    if (measure_ == Gauge::Accuracy) add_graph(plot_, curve.smooth(), QPen(ghost, 1), false);
    QPen pen = run_pen(slot, 1.7);
    if (above) pen.setDashPattern({5, 5}), pen.setCapStyle(Qt::FlatCap);
    add_graph(plot_, curve.shown(), pen, steps);
    if (measure_ == Gauge::Memory) add_graph(plot_, curve.smooth(), QPen(pen.color(), 1.3, Qt::DotLine), steps);
    if (measure_ == Gauge::Loss) drawTests(curve.test(), test_marks(slot, 0, above ? 3.5 : 6));
    size_t lines = 0, tests = 0;
    for (const LossLine& line : curve.losses()) {
      if (line.first) continue;
      if (line.test)
        drawTests(line.raw, test_marks(slot, ++tests, 6));
      else
        add_graph(plot_, curve.shown(line), loss_pen(slot, lines++), false);
    }
  }
}

void CurvePane::drawTests(const MinMaxSeries& tests, const QCPScatterStyle& marks) {
  if (tests.size() > 200) return;
  add_graph(plot_, tests, Qt::NoPen, false);
  plot_->graph()->setScatterStyle(marks);
  plot_->graph()->setLineStyle(QCPGraph::lsNone);
}

void CurvePane::scaleAxes() {
  double first = 0, last = 0;
  bool any = false;
  for (const CurveData& curve : curves_) {
    const MinMaxSeries& series = curve.raw().empty() ? curve.shown() : curve.raw();
    if (series.empty()) continue;
    last = std::max(
        {last, series.at(series.size() - 1).x, curve.test().empty() ? 0 : curve.test().at(curve.test().size() - 1).x});
    any = true;
  }
  if (!plot_->zoomed()) {
    if (log_x_) first = x_ == XAxis::Step ? 1 : last * 1e-4;
    plot_->xAxis->setRange(first, any && last > first ? last + (last - first) * 0.015 : 1);
  }
  const QCPRange x = plot_->xAxis->range();
  double low = 0, high = 0;
  bool found = false;
  const auto include = [&](const MinMaxSeries& series) {
    double a = 0, b = 0;
    if (!series.range(x.lower, x.upper, a, b, log_y_)) return;
    low = found ? std::min(low, a) : a, high = found ? std::max(high, b) : b;
    found = true;
  };
  for (const CurveData& curve : curves_) {
    include(curve.shown());
    if (measure_ == Gauge::Loss) include(curve.test());
    else if (curve.test().empty()) include(curve.smooth());
    for (const LossLine& line : curve.losses()) include(curve.shown(line));
  }
  // The faint curve of the training rows may go outside the range of the test curve. Its steep start does not count.
  for (const CurveData& curve : curves_)
    if (double a = 0, b = 0; measure_ == Gauge::Accuracy && found &&
                             curve.smooth().range(x.lower + x.size() * kSteepShare, x.upper, a, b, false))
      low = std::min(low, a), high = std::max(high, b);
  if (!found) low = log_y_ ? 0.1 : 0, high = measure_ == Gauge::Accuracy ? 100 : log_y_ ? 10 : 1;
  if (log_y_) {
    low = std::max(low, high * 1e-9);
    plot_->yAxis->setRange(low / 1.6, std::max(high, low * 2) * 1.6);
  } else if (measure_ == Gauge::Accuracy) {
    low = std::min(low, high - 5);
    const double pad = (high - low) * 0.1;
    plot_->yAxis->setRange(found ? std::max(0.0, low - pad) : 0,
                           std::min(100.0, high + pad) + (high + pad >= 100 ? 0.5 : 0));
  } else {
    const double least = measure_ == Gauge::AllocatorCalls ? 4 : 0;
    plot_->yAxis->setRange(std::min(0.0, low), high > 0 || least > 0 ? std::max(high * 1.18, least) : 1);
  }
}

QString CurvePane::valueText(double value) const {
  switch (measure_) {
    case Gauge::Loss:
      return significant_text(value);
    case Gauge::Accuracy:
      return fixed_text(value, 2);
    case Gauge::AllocatorCalls:
      return value == std::round(value) ? fixed_text(value, 0) : fixed_text(value, 1);
    case Gauge::AllocatorTime:
      return us_text(value);
    case Gauge::Throughput:
      return significant_text(value);
    case Gauge::Memory:
      return bytes_text(value * unit_.bytes);
  }
  return {};
}

// The legend's value and its dot. Smoothing is for the eye.
std::optional<Point> CurvePane::legendPoint(const CurveData& curve) const {
  const MinMaxSeries& series = measure_ == Gauge::Loss ? curve.raw() : ofBatches() ? curve.smooth() : curve.shown();
  if (series.empty()) return std::nullopt;
  const auto at = cursorX();
  const Point* nearest = at ? series.nearest(*at) : &series.at(series.size() - 1);
  if (!nearest) return std::nullopt;
  Point shown = *nearest;
  const LossFigure loss = measure_ == Gauge::Loss && !at && curve.run() ? loss_of(*curve.run()) : LossFigure();
  if (std::isfinite(loss.value)) shown.y = loss.value;  // as in the top bar
  return shown;
}

// The loss of one run and the accuracy of one training stand in the top bar.
QString CurvePane::legendText(const CurveData& curve, double value) const {
  const bool in_top_bar = curve.run() && (measure_ == Gauge::Loss || (measure_ == Gauge::Accuracy && curve.run()->hasChoices()));
  if (in_top_bar && curves_.size() == 1 && !cursorX()) return {};
  if (measure_ != Gauge::Loss || cursorX() || !curve.run()) return valueText(value);
  return (loss_of(*curve.run()).of_test() ? tr("test %1") : tr("training %1")).arg(valueText(value));
}

// Which number stands in the title line.
QString CurvePane::legendTip() const {
  QStringList lines;
  if (measure_ != Gauge::Loss || cursorX()) return {};
  for (const CurveData& curve : curves_)
    if (const LossFigure loss = curve.run() ? loss_of(*curve.run()) : LossFigure(); std::isfinite(loss.value))
      lines << run_letter(std::max(0, curve.run()->slot)) + ": " + text(long_name(loss));
  return lines.join('\n');
}

void CurvePane::refreshLegend() {
  std::vector<LegendItem> items;
  for (const CurveData& curve : curves_) {
    const auto point = legendPoint(curve);
    // A finished program that logged no such value needs no dash.
    if (!point && curve.run() && !curve.run()->hasChoices() && curve.run()->loaded && !curve.run()->live()) continue;
    items.push_back({curve.run() ? curve.run()->slot : 0, point ? legendText(curve, point->y) : QStringLiteral("—")});
  }
  if (items.size() > 2) std::ranges::stable_sort(items, {}, &LegendItem::slot);
  legend()->setItems(std::move(items));
  legend()->setToolTip(legendTip());
  showValues();
  nameMeasure();
}

// Above the curves, if the title line is too short for them.
void CurvePane::showValues() {
  constexpr size_t kMostInARow = 3;
  std::vector<PlotValue> values;
  const auto& items = legend()->items();
  const bool few = items.size() <= kMostInARow, shown = cursorX() ? cursor_values_ : few;
  const bool named = std::ranges::any_of(items, [](const LegendItem& item) { return !item.value.isEmpty(); });
  if (!cursorX()) {  // the pointer moves no curve
    const bool line = few && named && !legend()->showsValues();
    plot_->setValueLine(line);
    legend()->setQuiet(line);
  }
  if (shown && !legend()->showsValues())
    for (const LegendItem& item : legend()->items()) values.push_back({item.slot, item.value});
  plot_->setValues(std::move(values));
}

void CurvePane::refreshOverlay() {
  std::vector<PlotDot> dots;
  std::vector<PlotMark> marks;
  std::vector<PlotNote> notes;
  const auto at = cursorX();
  for (const CurveData& curve : curves_) {
    if (!curve.run()) continue;
    const Run& run = *curve.run();
    const QColor colour = theme().run[std::max(0, run.slot) % 8];
    if (const auto point = legendPoint(curve)) dots.push_back({point->x, point->y, colour});
    for (const bool test : {false, true}) {
      const auto drawn = [&](const LossLine& line) { return line.test == test && curve.shown(line).size() > (test ? 0u : 1u); };
      if (std::ranges::count_if(curve.losses(), drawn) < 2) continue;
      for (const LossLine& line : curve.losses())
        if (const MinMaxSeries& points = curve.shown(line); drawn(line))
          if (const Point* p = at ? points.nearest(*at) : &points.at(points.size() - 1)) notes.push_back({p->x, p->y, line.name, colour});
    }
    if (const EvalPoint* best = measure_ == Gauge::Accuracy && run.evals.size() > 1 ? run.bestEval() : nullptr) {
      const double x = curve.xOf(best->step, best->wall_s);
      dots.push_back({x, best->accuracy * 100, colour, true});
      notes.push_back({x, best->accuracy * 100, tr("best %1").arg(fixed_text(best->accuracy * 100, 2)), colour});
    }
    if (measure_ == Gauge::AllocatorCalls && !run.meters.empty() && !counted_by_driver_alone(run)) {
      const MeterPoint& m = run.meters.back();
      const QString text = m.allocate + m.free == 0
                               ? tr("none in a step")
                               : tr("%1 allocations + %2 frees").arg(valueText(m.allocate), valueText(m.free));
      notes.push_back({plot_->xAxis->range().lower, m.allocate + m.free, text, theme().secondary});
    }
    const QString of = curves_.size() > 1 ? run_letter(run.slot) + ": " : QString();
    for (const Change& change : run.changes)
      marks.push_back({curve.xOfStep(static_cast<double>(change.step)),
                       of + QString::fromStdString(change.key.substr(change.key.find('.') + 1) + " " + change.to)});
  }
  plot_->setOverlay(std::move(dots), std::move(marks), std::move(notes));
}

QString CurvePane::emptyText() const {
  if (curves_.empty()) return tr("Click a run, or press Train");
  for (const CurveData& curve : curves_)
    if (!curve.shown().empty() || (measure_ == Gauge::Accuracy && curve.smooth().size() > 1)) return {};
  if (measure_ == Gauge::Accuracy &&
      std::all_of(curves_.begin(), curves_.end(), [](const CurveData& c) { return c.run()->regression(); }))
    return tr("A line has no accuracy. See the loss.");
  if (std::all_of(curves_.begin(), curves_.end(),
                  [](const CurveData& c) { return c.run()->loaded && !c.run()->live(); }))
    return measure_ == Gauge::Memory     ? tr("No memory was recorded")
           : measure_ == Gauge::Accuracy ? tr("No test was recorded")
           : measure_ == Gauge::Loss     ? tr("No loss was recorded")
                                         : tr("This was not recorded");
  if (measure_ == Gauge::Accuracy) return tr("Filled at the end of the first epoch");
  return tr("Filled with the first steps");
}

void CurvePane::renderTo(QPainter& painter, const QRectF& area) {
  plot_->applyTheme();
  redraw();
  const QRectF box = area.adjusted(0, kHead, 0, -kFoot);
  QPicture lines;
  QCPPainter vectors(&lines);
  vectors.setMode(QCPPainter::pmVectorized);
  plot_->toPainter(&vectors, static_cast<int>(box.width()), static_cast<int>(box.height()));
  vectors.end();
  painter.drawPicture(box.topLeft(), lines);
  painter.setFont(ui_font(12.5, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(area.left() + 10, area.top(), 200, kHead), Qt::AlignVCenter, title());
  double x = area.left() + 24 + QFontMetricsF(painter.font()).horizontalAdvance(title());
  painter.setFont(ui_font(12));
  const double each = (area.right() - x) / static_cast<double>(std::max<size_t>(1, curves_.size()));
  for (const CurveData& curve : curves_) {
    if (!curve.run()) continue;
    draw_badge(painter, QRectF(x, area.top() + 5.5, 15, 15), curve.run()->slot);
    const QFontMetricsF metrics(painter.font());
    const QString name = metrics.elidedText(curve.run()->title, Qt::ElideRight, each - 30);
    const double width = metrics.horizontalAdvance(name);
    painter.setPen(theme().text);
    painter.drawText(QRectF(x + 20, area.top(), width + 4, kHead), Qt::AlignVCenter, name);
    x += std::min(each, width + 40);
  }
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(area.left(), area.bottom() - kFoot, area.width(), kFoot), Qt::AlignCenter, x_name(x_));
}

QByteArray CurvePane::csv() const {
  QByteArray out = "run," + x_name(x_).section(',', 0, 0).replace(' ', '_').toUtf8() + "," +
                   (measure_ == Gauge::Loss ? tr("batch loss") : measure_title(measure_).toLower()).replace(' ', '_').toUtf8() + "\n";
  for (const CurveData& curve : curves_) {
    if (!curve.run()) continue;
    const QByteArray name = QByteArray::fromStdString(csv_cell(curve.run()->title.toStdString())) + ',';
    const MinMaxSeries& series = curve.raw().empty() ? curve.shown() : curve.raw();
    const double scale = measure_ == Gauge::Memory ? unit_.bytes / (1 << 20) : 1;  // a file has memory in MiB
    const auto add = [&out, scale](const QByteArray& of, const MinMaxSeries& points) {
      for (size_t i = 0; i < points.size(); ++i)
        out += of + QByteArray::number(points.at(i).x, 'g', 9) + ',' + QByteArray::number(points.at(i).y * scale, 'g', 9) + '\n';
    };
    add(name, series);
    for (const LossLine& line : curve.losses())
      if (!line.first) add(QByteArray::fromStdString(csv_cell((curve.run()->title + " · " + line.name).toStdString())) + ',', line.raw);
  }
  return out;
}

void CurvePane::exportImage() {
  QStringList captions;
  for (const CurveData& curve : curves_)
    if (curve.run()) captions << run_caption(*curve.run());
  try {
    ask_and_write(
        this, {title(), captions.join('\n'), QSize(900, 420),
               [this](QPainter& painter, const QRectF& area) { renderTo(painter, area); }, [this] { return csv(); }});
  } catch (const std::exception& problem) {
    QMessageBox::warning(this, tr("Export the chart"), QString::fromUtf8(problem.what()));
  }
  plot_->applyTheme();  // the picture was drawn with paper colours
  redraw();
}

}  // namespace ws::app
