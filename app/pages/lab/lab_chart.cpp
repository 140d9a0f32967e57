#include "app/pages/lab/lab_chart.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/pages/lab/lab_cards.h"
#include "app/pages/lab/lab_chart_painter.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr double kReach = 9;  // pixels around a point where a click picks it

}  // namespace

LabChart::LabChart(LabAxis axis, QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAxis(axis);
}

void LabChart::setAxis(LabAxis axis) {
  scene_.axis = axis;
  setAccessibleName(axis == LabAxis::Time ? tr("Time against size") : tr("Throughput against size"));
  rebuild();
}

void LabChart::setClock(LabClock clock) {
  scene_.clock = clock;
  rebuild();
}

void LabChart::setShown(const std::vector<LabShown>& shown) {
  scene_.shown = shown;
  rebuild();
}

void LabChart::rebuild() {
  scene_.rebuild();
  update();
}

void LabChart::setCursorSize(std::optional<double> size) {
  scene_.cursor = size;
  update();
}

QPointF LabChart::placeOf(const LabPick& pick) const {
  for (const LabCurve& curve : scene_.curves)
    for (const QPointF& p : curve.points)
      if (curve.way == pick.way && curve.shown == pick.shown && static_cast<int64_t>(p.x()) == pick.size)
        return scene_.frame(rect()).at(p);
  return {-1, -1};
}

std::optional<LabPick> LabChart::pointAt(const QPointF& place) const {
  const LabFrame f = scene_.frame(rect());
  std::optional<LabPick> best;
  double least = kReach * kReach;
  for (const LabCurve& curve : scene_.curves)
    for (const QPointF& p : curve.points) {
      const QPointF away = f.at(p) - place;
      const double distance = QPointF::dotProduct(away, away);
      if (distance <= least) least = distance, best = LabPick{curve.shown, curve.way, static_cast<int64_t>(p.x())};
    }
  return best;
}

void LabChart::mouseMoveEvent(QMouseEvent* event) {
  if (scene_.curves.empty()) return;
  scene_.ring = pointAt(event->position());
  setCursor(scene_.ring ? Qt::PointingHandCursor : Qt::ArrowCursor);
  const bool opens = scene_.ring && scene_.ring->shown < scene_.shown.size() && !scene_.shown[scene_.ring->shown].path.isEmpty();
  setToolTip(opens && !scene_.compact ? tr("Click: open the timeline of this point") : QString());
  update();
  emit cursorMoved(scene_.frame(rect()).sizeAt(event->position().x()));
}

void LabChart::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const auto pick = pointAt(event->position())) emit picked(*pick);
}

void LabChart::leaveEvent(QEvent*) {
  scene_.ring.reset();
  update();
}

// Up and Down move through the curves at the cursor, from the highest to the lowest.
void LabChart::stepRing(int by) {
  const auto size = cursorPoint();
  if (!size) return;
  std::vector<std::pair<double, LabPick>> here;
  for (const LabCurve& curve : scene_.curves)
    for (const QPointF& p : curve.points)
      if (static_cast<int64_t>(p.x()) == *size) here.push_back({p.y(), {curve.shown, curve.way, *size}});
  if (here.empty()) return;
  std::ranges::sort(here, std::greater{}, &std::pair<double, LabPick>::first);
  const auto now = std::ranges::find_if(here, [this](const auto& entry) { return scene_.ring == entry.second; });
  const auto count = static_cast<std::ptrdiff_t>(here.size());
  const std::ptrdiff_t at = now == here.end() ? (by > 0 ? 0 : count - 1) : (now - here.begin() + by + count) % count;
  scene_.ring = here[static_cast<size_t>(at)].second;
  update();
}

void LabChart::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
      scene_.ring.reset();
      return emit cursorMoved(scene_.cursor.value_or(64) * (event->key() == Qt::Key_Right ? 2 : 0.5));
    case Qt::Key_Up:
      return stepRing(-1);
    case Qt::Key_Down:
      return stepRing(1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (scene_.ring) emit picked(*scene_.ring);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void LabChart::render(QPainter& painter, const QRectF& area) const {
  const LabFrame frame = scene_.frame(area);
  LabChartPainter lines(scene_, frame, painter);
  LabCards cards(scene_, frame, painter);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(area, theme().base);
  if (scene_.curves.empty()) {
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(12.5));
    painter.drawText(area.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_);
    return;
  }
  lines.paintGrid();
  lines.paintCurves();
  if (!scene_.compact) cards.paintCrossovers();
  cards.paintCursor();
  cards.paintRing();
}

void LabChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

}  // namespace ws::app
