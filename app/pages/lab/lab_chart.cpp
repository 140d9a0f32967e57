#include "app/pages/lab/lab_chart.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPen>
#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"
#include "app/text/units.h"
#include "engine/lab/correctness.h"

namespace ws::app {
namespace {

constexpr double kReach = 9;  // pixels around a point that pick it

// Why a curve has no point where others have one.
QString end_note(const lab::LabResult& result, lab::Way way) {
  for (const lab::LabPoint& p : result.points) {
    if (p.way != way) continue;
    if (!p.ok && p.note.find("largest that fits") != std::string::npos)
      return QObject::tr("%1 does not fit").arg(lab_size_text(static_cast<double>(p.size)));
    if (!p.ok && p.note.starts_with(lab::kWrong))
      return QObject::tr("wrong at %1").arg(lab_size_text(static_cast<double>(p.size)));
    if (!p.ok && p.note.find("left out") != std::string::npos) return QObject::tr("then too slow");
    if (!p.ok) return QObject::tr("ended by an error");
    if (p.median_s > result.spec.longest_call_s) return QObject::tr("then too slow");
  }
  return {};
}

}  // namespace

QString lab_size_text(double size) {
  const auto n = static_cast<int64_t>(std::llround(size));
  if (n >= 1 << 20 && n % (1 << 20) == 0) return QString::number(n >> 20) + " M";
  if (n > 16384 && n % 1024 == 0) return QString::number(n >> 10) + " k";
  return count_text(n);
}

QString lab_label(lab::Way way) {
  const auto label = lab::info(way).label;
  return QString::fromUtf8(label.data(), static_cast<int>(label.size()));
}

QColor lab_colour(lab::Way way) {
  const Theme& t = theme();
  // Eight run colours for the ways that answer different questions; ways that are kin share one.
  switch (way) {
    case lab::Way::CpuLoops:
      return t.run[7];
    case lab::Way::CpuLibrary:
      return t.run[5];
    case lab::Way::GpuPageable:
      return t.run[3];
    case lab::Way::GpuPinned:
      return t.run[6];
    case lab::Way::GpuResident:
    case lab::Way::GpuUnsynced:
    case lab::Way::GpuGraph:
      return t.run[1];
    case lab::Way::GpuOpByOp:
    case lab::Way::GpuGraphOps:
    case lab::Way::GpuNaive:
      return t.run[2];
    case lab::Way::GpuOverlap:
    case lab::Way::GpuTiled:
      return t.run[0];
    case lab::Way::GpuTf32:
    case lab::Way::GpuFp16:
      return t.run[4];
    case lab::Way::GpuCold:
      return t.quiet;
  }
  return t.text;
}

QString lab_short_label(lab::Way way) {
  const QString label = lab_label(way);
  return label.startsWith("GPU, ") ? label.mid(5) : label;
}

QPen lab_pen(lab::Way way, double width) {
  QPen pen(lab_colour(way), width);
  if (lab::info(way).pitfall) pen.setDashPattern({6 / width, 4 / width});
  if (way == lab::Way::GpuGraph || way == lab::Way::GpuGraphOps || way == lab::Way::GpuFp16)
    pen.setDashPattern({10 / width, 2.5 / width, 2 / width, 2.5 / width});
  return pen;
}

LabChart::LabChart(LabAxis axis, QWidget* parent) : QWidget(parent), axis_(axis) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAxis(axis);
}

void LabChart::setAxis(LabAxis axis) {
  axis_ = axis;
  setAccessibleName(axis == LabAxis::Time ? tr("Time against size") : tr("Throughput against size"));
  rebuild();
}

void LabChart::setClock(LabClock clock) {
  clock_ = clock;
  rebuild();
}

bool LabChart::byEvents(const lab::LabPoint& point) const {
  return clock_ == LabClock::Events && point.device_s > 0 && !lab::info(point.way).pitfall;
}

double LabChart::valueOf(const lab::LabPoint& point, double seconds) const {
  if (seconds <= 0) return 0;
  if (axis_ == LabAxis::Time) return seconds;
  return static_cast<double>(axis_ == LabAxis::Flops ? point.flops : point.bytes) / seconds;
}

QString LabChart::valueText(double value) const {
  if (axis_ == LabAxis::Time) return time_axis_text(value * 1e6);
  const bool flops = axis_ == LabAxis::Flops;
  if (value >= 1e12) return significant_text(value / 1e12) + (flops ? " TFLOP/s" : " TB/s");
  if (value >= 1e9) return significant_text(value / 1e9) + (flops ? " GFLOP/s" : " GB/s");
  return significant_text(value / 1e6) + (flops ? " MFLOP/s" : " MB/s");
}

void LabChart::addCurves(const LabShown& shown, size_t index) {
  for (const lab::WayInfo& way : lab::ways()) {
    if (way.pitfall && axis_ != LabAxis::Time) continue;  // a throughput of work that was not waited for means nothing
    LabCurve curve{.way = way.way, .label = lab_label(way.way)};
    curve.pitfall = way.pitfall;
    curve.shown = index;
    if (index > 0) curve.label = tr("%1: %2").arg(shown.name, lab_short_label(way.way));
    curve.end_note = end_note(shown.result, way.way);
    for (const lab::LabPoint& p : shown.result.points) {
      const bool events = byEvents(p);
      const double value = p.way == way.way && p.ok ? valueOf(p, events ? p.device_s : p.median_s) : 0;
      if (value <= 0) continue;
      const double low = valueOf(p, events ? p.device_low_s : p.low_s),
                   high = valueOf(p, events ? p.device_high_s : p.high_s);
      const bool known = low > 0 && high > 0;
      curve.points.emplace_back(static_cast<double>(p.size), value);
      curve.spread.emplace_back(known ? std::min(low, high) : value, known ? std::max(low, high) : value);
    }
    const auto none = [](const auto& band) { return band.first == band.second; };
    if (std::ranges::all_of(curve.spread, none)) curve.spread.clear();
    if (!curve.points.empty()) curves_.push_back(std::move(curve));
  }
}

void LabChart::setShown(const std::vector<LabShown>& shown) {
  shown_ = shown;
  rebuild();
}

void LabChart::rebuild() {
  curves_.clear();
  crossovers_.clear();
  ceilings_ = {};
  for (size_t i = shown_.size(); i-- > 0;) addCurves(shown_[i], i);  // the sweep itself lies on top
  if (!shown_.empty()) {
    ceilings_ = shown_[0].result.ceilings;
    if (axis_ == LabAxis::Time && clock_ == LabClock::Host) crossovers_ = lab::crossovers(shown_[0].result);
  }
  std::erase_if(crossovers_, [](const lab::Crossover& c) {
    return lab::info(c.slower_below).gpu || !lab::info(c.faster_above).gpu;
  });
  if (crossovers_.size() > 3) crossovers_.resize(3);
  update();
}

void LabChart::setCursorSize(std::optional<double> size) {
  cursor_ = size;
  update();
}

std::optional<int64_t> LabChart::cursorPoint() const {
  std::optional<int64_t> nearest;
  if (!cursor_) return nearest;
  const auto away = [this](double size) { return std::abs(std::log(size / *cursor_)); };
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (!nearest || away(p.x()) < away(static_cast<double>(*nearest))) nearest = static_cast<int64_t>(p.x());
  return nearest;
}

QPointF LabChart::placeOf(const LabPick& pick) const {
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (curve.way == pick.way && curve.shown == pick.shown && static_cast<int64_t>(p.x()) == pick.size)
        return frame(rect()).at(p);
  return {-1, -1};
}

std::optional<LabPick> LabChart::pointAt(const QPointF& place) const {
  const Frame f = frame(rect());
  std::optional<LabPick> best;
  double least = kReach * kReach;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points) {
      const QPointF away = f.at(p) - place;
      const double distance = QPointF::dotProduct(away, away);
      if (distance <= least) least = distance, best = LabPick{curve.shown, curve.way, static_cast<int64_t>(p.x())};
    }
  return best;
}

void LabChart::mouseMoveEvent(QMouseEvent* event) {
  if (curves_.empty()) return;
  ring_ = pointAt(event->position());
  setCursor(ring_ ? Qt::PointingHandCursor : Qt::ArrowCursor);
  setToolTip(ring_ && !compact_ ? tr("Click: open the timeline of this point") : QString());
  update();
  emit cursorMoved(frame(rect()).sizeAt(event->position().x()));
}

void LabChart::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const auto pick = pointAt(event->position())) emit picked(*pick);
}

void LabChart::leaveEvent(QEvent*) {
  ring_.reset();
  update();
}

// Up and down go through the curves at the cursor, in the order in which they lie above each other.
void LabChart::stepRing(int by) {
  const auto size = cursorPoint();
  if (!size) return;
  std::vector<std::pair<double, LabPick>> here;
  for (const LabCurve& curve : curves_)
    for (const QPointF& p : curve.points)
      if (static_cast<int64_t>(p.x()) == *size) here.push_back({p.y(), {curve.shown, curve.way, *size}});
  if (here.empty()) return;
  std::ranges::sort(here, std::greater{}, &std::pair<double, LabPick>::first);
  const auto now = std::ranges::find_if(here, [this](const auto& entry) { return ring_ == entry.second; });
  const auto count = static_cast<std::ptrdiff_t>(here.size());
  const std::ptrdiff_t at = now == here.end() ? (by > 0 ? 0 : count - 1) : (now - here.begin() + by + count) % count;
  ring_ = here[static_cast<size_t>(at)].second;
  update();
}

void LabChart::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
      ring_.reset();
      return emit cursorMoved(cursor_.value_or(64) * (event->key() == Qt::Key_Right ? 2 : 0.5));
    case Qt::Key_Up:
      return stepRing(-1);
    case Qt::Key_Down:
      return stepRing(1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (ring_) emit picked(*ring_);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

}  // namespace ws::app
