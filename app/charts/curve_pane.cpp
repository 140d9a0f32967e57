#include "app/charts/curve_pane.h"

#include <cmath>

#include "app/charts/driver_calls.h"
#include "app/charts/plot.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

double meter_value(Gauge measure, const MeterPoint& p) {
  if (measure == Gauge::AllocatorCalls) return p.allocate + p.free;
  if (measure == Gauge::Throughput) return p.samples_per_s;
  return p.reserved / kMiB;
}

constexpr int kArrow = 22, kBesideTitle = kArrow + 26;

QString brief_title(Gauge measure) {
  switch (measure) {
    case Gauge::Accuracy:
      return QObject::tr("Accuracy");
    case Gauge::AllocatorCalls:
      return QObject::tr("Calls");
    case Gauge::AllocatorTime:
      return QObject::tr("In calls");
    case Gauge::Throughput:
      return QObject::tr("Rate");
    default:
      return measure_title(measure);
  }
}

bool per_step(Gauge m) { return m == Gauge::Loss || m == Gauge::Accuracy; }

}  // namespace

QString measure_title(Gauge measure) {
  switch (measure) {
    case Gauge::Loss:
      return QObject::tr("Loss");
    case Gauge::Accuracy:
      return QObject::tr("Test accuracy");
    case Gauge::AllocatorCalls:
      return QObject::tr("Allocator calls");
    case Gauge::AllocatorTime:
      return QObject::tr("Time in the driver's allocator");
    case Gauge::Throughput:
      return QObject::tr("Throughput");
    case Gauge::Memory:
      return QObject::tr("Memory");
  }
  return {};
}

CurvePane::CurvePane(std::vector<Gauge> measures, QWidget* parent)
    : Pane(measure_title(measures.front()), parent),
      measures_(std::move(measures)),
      measure_(measures_.front()),
      plot_(new Plot(this)) {
  log_y_ = measure_ == Gauge::Loss;
  setBody(plot_);
  buildOptions();
  plot_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(plot_, &QWidget::customContextMenuRequested, this, [this](QPoint at) {
    QMenu menu(this);
    fillMenu(&menu);
    menu.exec(plot_->mapToGlobal(at));
  });
  connect(plot_, &Plot::cursorMoved, this, [this](double x) { emit cursorMoved(stepOfX(x)); });
  connect(plot_, &Plot::zoomChanged, this, [this] { redraw(); });
  setMinimumSize(220, 120);
  setMeasure(measure_);
}

void CurvePane::buildOptions() {
  log_button_ = option_button(tr("Vertical axis"), this);
  smooth_button_ = option_button(tr("Smoothing"), this);
  x_button_ = option_button(tr("Horizontal axis"), this);
  if (measures_.size() > 1) {
    measure_button_ = option_button(tr("Gauge"), this);
    setTitleButton(measure_button_);
  }
  for (QPushButton* button : {log_button_, smooth_button_, x_button_}) addOption(button);
  auto* log_menu = new QMenu(log_button_);
  connect(log_menu->addAction(tr("Log y")), &QAction::triggered, this, [this] { setLogY(true); });
  connect(log_menu->addAction(tr("Linear y")), &QAction::triggered, this, [this] { setLogY(false); });
  log_menu->addSeparator();
  connect(log_menu->addAction(tr("Log x")), &QAction::triggered, this, [this] { setLogX(true); });
  connect(log_menu->addAction(tr("Linear x")), &QAction::triggered, this, [this] { setLogX(false); });
  log_button_->setMenu(log_menu);
  auto* smooth_menu = new QMenu(smooth_button_);
  for (double factor : {0.0, 0.6, 0.9, 0.97, 0.99})
    connect(smooth_menu->addAction(factor == 0 ? tr("No smoothing") : tr("EMA %1").arg(factor)), &QAction::triggered,
            this, [this, factor] { setSmoothing(factor); });
  smooth_button_->setMenu(smooth_menu);
  auto* x_menu = new QMenu(x_button_);
  const std::pair<XAxis, QString> axes[] = {
      {XAxis::Step, tr("Step")}, {XAxis::Epoch, tr("Epoch")}, {XAxis::Wall, tr("Wall time")}};
  for (const auto& [axis, name] : axes)
    connect(x_menu->addAction(name), &QAction::triggered, this, [this, axis = axis] { emit xAxisChosen(axis); });
  x_button_->setMenu(x_menu);
  if (!measure_button_) return;
  auto* measure_menu = new QMenu(measure_button_);
  for (Gauge m : measures_)
    connect(measure_menu->addAction(measure_title(m)), &QAction::triggered, this, [this, m] { setMeasure(m); });
  measure_button_->setMenu(measure_menu);
}

void CurvePane::fillMenu(QMenu* menu) {
  for (QPushButton* button : {measure_button_, log_button_, smooth_button_, x_button_}) {
    if (!button || (button == smooth_button_ && !per_step(measure_))) continue;
    QMenu* sub = menu->addMenu(button->accessibleName());
    sub->addActions(button->menu()->actions());
  }
  menu->addSeparator();
  menu->addAction(tr("Fit"), plot_, &Plot::fit);
  menu->addAction(tr("Undo zoom"), plot_, &Plot::undoZoom)->setEnabled(plot_->canUndoZoom());
  menu->addAction(tr("Export the chart…"), this, &CurvePane::exportImage);
}

void CurvePane::refreshOptions() {
  log_button_->setText(log_y_ ? tr("Log y") : log_x_ ? tr("Log x") : tr("Linear"));
  smooth_button_->setText(smoothing_ == 0 ? tr("Raw") : tr("EMA %1").arg(smoothing_));
  x_button_->setText(x_ == XAxis::Step ? tr("Step") : x_ == XAxis::Epoch ? tr("Epoch") : tr("Wall"));
  for (QPushButton* button : {log_button_, smooth_button_, x_button_})
    button->setFixedWidth(QFontMetrics(button->font()).horizontalAdvance(button->text()) + 32);
  const bool loss = measure_ == Gauge::Loss;
  // In a narrow pane the values come first; the context menu has every option.
  log_button_->setVisible(loss && !compact_ && width() >= 300);
  smooth_button_->setVisible(loss && !compact_ && width() >= 380);
  x_button_->setVisible(loss && !compact_ && width() >= 420);
  nameMeasure();
}

// The values of the runs have the first right to the room beside the name.
void CurvePane::nameMeasure() {
  if (!measure_button_) return;
  const QFontMetrics metrics(measure_button_->font());
  const int room = width() - legend()->sizeHint().width() - kBesideTitle;
  QString name = measure_title(measure_);
  if (metrics.horizontalAdvance(name) > room) name = brief_title(measure_);
  measure_button_->setText(name);
  measure_button_->setFixedWidth(metrics.horizontalAdvance(name) + kArrow);
}

void CurvePane::setRuns(const std::vector<Run*>& runs) {
  bool same = runs.size() == curves_.size();
  for (size_t i = 0; same && i < runs.size(); ++i) same = curves_[i].run == runs[i];
  if (same) return;
  curves_.clear();
  for (Run* run : runs) {
    curves_.push_back({run, {}, {}, {}, Ema(smoothing_)});
    connect(run, &Run::changed, this, [this] { dirty_ = true; });
  }
  dirty_ = true;
  redraw();
}

void CurvePane::rebuild() {
  for (Curve& curve : curves_)
    curve = Curve{curve.run, {}, {}, {}, Ema(measure_ == Gauge::Accuracy ? 0.97 : smoothing_)};
  dirty_ = true;
  redraw();
}

void CurvePane::setXAxis(XAxis axis) {
  x_ = axis;
  refreshOptions();
  plot_->forgetZoom();
  rebuild();
}

// Which line is what, where there is more than one a run.
QString CurvePane::lineKey() const {
  if (measure_ == Gauge::Loss) return tr("train · ○ test");
  if (measure_ == Gauge::Accuracy) return tr("line test, faint train");
  return measure_ == Gauge::Memory ? tr("line reserved, dotted used") : QString();
}

void CurvePane::setMeasure(Gauge measure) {
  measure_ = measure;
  log_y_ = measure == Gauge::Loss;
  const QString brief = measure == Gauge::Loss             ? tr("train")
                        : measure == Gauge::Accuracy       ? QStringLiteral("%")
                        : measure == Gauge::AllocatorCalls ? tr("a step")
                        : measure == Gauge::AllocatorTime  ? tr("µs a step")
                        : measure == Gauge::Throughput     ? tr("samples/s")
                                                           : tr("MiB");
  const QString key = lineKey();
  setTitle(measure_title(measure), key.isEmpty() ? brief : measure == Gauge::Loss ? key : brief + " · " + key, brief);
  plot_->setAccessibleName(tr("%1 chart").arg(measure_title(measure)));
  plot_->setLogY(log_y_);
  refreshOptions();
  plot_->forgetZoom();
  rebuild();
}

void CurvePane::setLogY(bool on) {
  log_y_ = on;
  plot_->setLogY(on);
  refreshOptions();
  redraw();
}

void CurvePane::setLogX(bool on) {
  log_x_ = on;
  plot_->setLogX(on);
  refreshOptions();
  plot_->forgetZoom();
  redraw();
}

void CurvePane::setSmoothing(double factor) {
  smoothing_ = factor;
  refreshOptions();
  rebuild();
}

void CurvePane::setCompact(bool compact) {
  compact_ = compact;
  refreshOptions();
}

void CurvePane::resizeEvent(QResizeEvent* event) {
  Pane::resizeEvent(event);
  refreshOptions();
}

void CurvePane::undoZoom() { plot_->undoZoom(); }

double CurvePane::xOf(const Run& run, double step, double wall) const {
  if (x_ == XAxis::Wall) return wall;
  if (x_ == XAxis::Step) return step;
  return run.stepsPerEpoch() > 0 ? step / run.stepsPerEpoch() : 0;
}

std::optional<double> CurvePane::cursorX() const {
  if (!cursor_step_ || curves_.empty() || !curves_.front().run) return {};
  const Run& run = *curves_.front().run;
  return xOf(run, *cursor_step_, static_cast<double>(run.timeOfStep(*cursor_step_)) * 1e-9);
}

double CurvePane::stepOfX(double x) const {
  if (x_ == XAxis::Step || curves_.empty() || !curves_.front().run) return x;
  const Run& run = *curves_.front().run;
  return x_ == XAxis::Epoch ? x * run.stepsPerEpoch() : run.stepAt(static_cast<prof::TimeNs>(x * 1e9));
}

void CurvePane::setCursorStep(std::optional<double> step) {
  cursor_step_ = step;
  plot_->setCursor(cursorX());
  refreshLegend();
  refreshOverlay();
}

void CurvePane::takeSteps(Curve& curve) {
  const Run& run = *curve.run;
  const double scale = measure_ == Gauge::Accuracy ? 100 : 1;
  for (; curve.taken < run.steps.size(); ++curve.taken) {
    const StepPoint& p = run.steps[curve.taken];
    const double x = xOf(run, p.step, p.wall_s), y = measure_ == Gauge::Loss ? p.loss : p.accuracy * scale;
    curve.raw.append(x, y);
    curve.smooth.append(x, curve.ema.add(y));
  }
  for (; curve.taken_test < run.evals.size(); ++curve.taken_test) {
    const EvalPoint& p = run.evals[curve.taken_test];
    curve.test.append(xOf(run, p.step, p.wall_s), measure_ == Gauge::Loss ? p.loss : p.accuracy * scale);
  }
}

// Stretches of steps are merged as a run grows, so that these curves are taken whole each time.
bool CurvePane::takeDriverCalls(Curve& curve) {
  const Run& run = *curve.run;
  const bool time = measure_ == Gauge::AllocatorTime;
  if (!time && (measure_ != Gauge::AllocatorCalls || !counted_by_driver_alone(run))) return false;
  const auto points = driver_calls_over(run);
  if (points.empty()) return time;
  curve.raw.clear();
  double last = 0;
  for (const DriverPoint& p : points) {
    const double y = time ? p.us : p.calls;
    if (curve.raw.empty()) curve.raw.append(0, y);
    curve.raw.append(last = std::max(last, xOf(run, p.step, p.wall_s)), y);
  }
  return true;
}

void CurvePane::takeMeters(Curve& curve) {
  if (takeDriverCalls(curve)) return;
  const Run& run = *curve.run;
  for (; curve.taken < run.meters.size(); ++curve.taken) {
    const MeterPoint& p = run.meters[curve.taken];
    if (measure_ == Gauge::Memory && p.reserved <= 0 && p.used <= 0) continue;  // not recorded
    if (curve.raw.empty()) curve.raw.append(0, meter_value(measure_, p));
    curve.raw.append(xOf(run, p.step, p.wall_s), meter_value(measure_, p));
    if (measure_ == Gauge::Memory) curve.smooth.append(xOf(run, p.step, p.wall_s), p.used / kMiB);
  }
}

void CurvePane::take(Curve& curve) {
  if (!curve.run) return;
  per_step(measure_) ? takeSteps(curve) : takeMeters(curve);
}

const MinMaxSeries& CurvePane::shown(const Curve& curve) const {
  if (measure_ == Gauge::Accuracy) return curve.test;
  return measure_ == Gauge::Loss && smoothing_ > 0 ? curve.smooth : curve.raw;
}

void CurvePane::redraw() {
  dirty_ = false;
  for (Curve& curve : curves_) take(curve);
  std::erase_if(curves_, [](const Curve& curve) { return !curve.run; });
  scaleAxes();
  drawCurves();
  plot_->setEmptyText(emptyText());
  plot_->setCaption(noteFits() ? QString() : lineKey(),
                    Qt::AlignRight | (measure_ == Gauge::Accuracy ? Qt::AlignBottom : Qt::AlignTop));
  plot_->setCursor(cursorX());
  refreshLegend();
  refreshOverlay();
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

}  // namespace ws::app
