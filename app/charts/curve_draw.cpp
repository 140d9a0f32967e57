// How a CurvePane draws: curves from the sampled series, axes that hold them, the values at the cursor.
#include <cmath>

#include "app/charts/curve_pane.h"
#include "app/charts/driver_calls.h"
#include "app/charts/plot.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr double kSteepShare = 0.02;  // of the width

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

}  // namespace

// Nearly everywhere the same pixels: who is drawn first would not be seen.
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
    const Curve& curve = curves_[i];
    const int slot = curve.run->slot;
    const bool above = std::any_of(curves_.begin(), curves_.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const Curve& other) { return covers(shown(curve), shown(other)); });
    QColor ghost = theme().run[std::max(0, slot) % 8];
    ghost.setAlphaF(0.3F);
    if (measure_ == Gauge::Loss && smoothing_ > 0) add_graph(plot_, curve.raw, QPen(ghost, 1), false);
    if (measure_ == Gauge::Accuracy) add_graph(plot_, curve.smooth, QPen(ghost, 1), false);
    QPen pen = run_pen(slot, 1.7);
    if (above) pen.setDashPattern({5, 5}), pen.setCapStyle(Qt::FlatCap);
    add_graph(plot_, shown(curve), pen, steps);
    if (measure_ == Gauge::Memory) add_graph(plot_, curve.smooth, QPen(pen.color(), 1.3, Qt::DotLine), steps);
    if (measure_ != Gauge::Loss || curve.test.size() > 200) continue;
    add_graph(plot_, curve.test, Qt::NoPen, false);
    plot_->graph()->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCircle, run_pen(slot % 4, 1.2), theme().base, above ? 3.5 : 6));
    plot_->graph()->setLineStyle(QCPGraph::lsNone);
  }
}

void CurvePane::scaleAxes() {
  double first = 0, last = 0;
  bool any = false;
  for (const Curve& curve : curves_) {
    const MinMaxSeries& series = curve.raw.empty() ? shown(curve) : curve.raw;
    if (series.empty()) continue;
    last = std::max(
        {last, series.at(series.size() - 1).x, curve.test.empty() ? 0 : curve.test.at(curve.test.size() - 1).x});
    any = true;
  }
  if (!plot_->zoomed()) {
    if (log_x_) first = x_ == XAxis::Step ? 1 : last * 1e-4;
    plot_->xAxis->setRange(first, any && last > first ? last + (last - first) * 0.015 : 1);
  }
  const QCPRange x = plot_->xAxis->range();
  double low = 0, high = 0;
  bool found = false;
  for (const Curve& curve : curves_)
    for (const MinMaxSeries* series : {&shown(curve), measure_ == Gauge::Loss ? &curve.test
                                                      : curve.test.empty()    ? &curve.smooth
                                                                              : nullptr}) {
      double a = 0, b = 0;
      if (!series || !series->range(x.lower, x.upper, a, b, log_y_)) continue;
      low = found ? std::min(low, a) : a, high = found ? std::max(high, b) : b;
      found = true;
    }
  // The faint curve of the training rows may leave that of the test; its steep beginning is not looked at.
  for (const Curve& curve : curves_)
    if (double a = 0, b = 0; measure_ == Gauge::Accuracy && found &&
                             curve.smooth.range(x.lower + x.size() * kSteepShare, x.upper, a, b, false))
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
      return bytes_text(value * (1 << 20));  // with its unit: small networks need less than the axis counts in
  }
  return {};
}

void CurvePane::refreshLegend() {
  std::vector<LegendItem> items;
  const auto at = cursorX();
  for (const Curve& curve : curves_) {
    const MinMaxSeries& series = shown(curve);
    const Point* p = series.empty() ? nullptr : at ? series.nearest(*at) : &series.at(series.size() - 1);
    items.push_back({curve.run ? curve.run->slot : 0, p ? valueText(p->y) : QStringLiteral("—")});
  }
  legend()->setItems(std::move(items));
  std::vector<PlotValue> values;
  if (at && !legend()->showsValues())
    for (const LegendItem& item : legend()->items()) values.push_back({item.slot, item.value});
  plot_->setValues(std::move(values));
  nameMeasure();
}

void CurvePane::refreshOverlay() {
  std::vector<PlotDot> dots;
  std::vector<PlotMark> marks;
  std::vector<PlotNote> notes;
  const auto at = cursorX();
  for (const Curve& curve : curves_) {
    if (!curve.run) continue;
    const Run& run = *curve.run;
    const QColor colour = theme().run[std::max(0, run.slot) % 8];
    const MinMaxSeries& series = shown(curve);
    if (!series.empty())
      if (const Point* p = at ? series.nearest(*at) : &series.at(series.size() - 1))
        dots.push_back({p->x, p->y, colour});
    if (const EvalPoint* best = measure_ == Gauge::Accuracy && run.evals.size() > 1 ? run.bestEval() : nullptr) {
      const double x = xOf(run, best->step, best->wall_s);
      dots.push_back({x, best->accuracy * 100, colour, true});
      notes.push_back({x, best->accuracy * 100, tr("best %1").arg(fixed_text(best->accuracy * 100, 2)), colour});
    }
    if (measure_ == Gauge::AllocatorCalls && !run.meters.empty() && !counted_by_driver_alone(run)) {
      const MeterPoint& m = run.meters.back();
      const QString text = m.allocate + m.free == 0
                               ? tr("none in a step")
                               : tr("%1 malloc + %2 free").arg(valueText(m.allocate), valueText(m.free));
      notes.push_back({plot_->xAxis->range().lower, m.allocate + m.free, text, theme().secondary});
    }
    for (const Change& change : run.changes)
      marks.push_back({xOf(run, static_cast<double>(change.step),
                           static_cast<double>(run.timeOfStep(static_cast<double>(change.step))) * 1e-9),
                       QString::fromStdString(change.key.substr(change.key.find('.') + 1) + " " + change.to)});
  }
  plot_->setOverlay(std::move(dots), std::move(marks), std::move(notes));
}

QString CurvePane::emptyText() const {
  if (curves_.empty()) return tr("Tick a run, or press Train");
  for (const Curve& curve : curves_)
    if (!shown(curve).empty() || (measure_ == Gauge::Accuracy && curve.smooth.size() > 1)) return {};
  if (measure_ == Gauge::Accuracy &&
      std::all_of(curves_.begin(), curves_.end(), [](const Curve& c) { return c.run->regression(); }))
    return tr("A line has no accuracy: look at the loss");
  if (std::all_of(curves_.begin(), curves_.end(), [](const Curve& c) { return c.run->loaded && !c.run->live(); }))
    return measure_ == Gauge::Memory     ? tr("No memory was recorded")
           : measure_ == Gauge::Accuracy ? tr("No test was recorded")
           : measure_ == Gauge::Loss     ? tr("No loss was recorded")
                                         : tr("Nothing of this was recorded");
  if (measure_ == Gauge::Accuracy) return tr("Filled at the end of the first epoch");
  return tr("Filled with the first steps");
}

}  // namespace ws::app
