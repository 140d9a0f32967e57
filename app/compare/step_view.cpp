#include "app/compare/step_view.h"

#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "app/panels/theme.h"
#include "app/panels/units.h"
#include "profiling/lod.h"

namespace ws::app {
namespace {

constexpr double kGutter = 124, kRuler = 22, kHead = 20, kRibbon = 44;

double nice_step(double range) {
  const double raw = range / 7, decade = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * decade >= raw) return factor * decade;
  return 10 * decade;
}

}  // namespace

StepView::StepView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName(tr("One step of each run"));
}

void StepView::setRuns(Run* baseline, Run* candidate, const PairComparison& comparison) {
  baseline_ = baseline;
  candidate_ = candidate;
  comparison_ = comparison;
  update();
}

std::vector<StepView::Lane> StepView::lanes(const Run& run) const {
  std::vector<Lane> all;
  for (const prof::Track& track : run.trace.tracks()) {
    const QString name = QString::fromStdString(track.name);
    switch (track.kind) {
      case prof::TrackKind::Phases:
        all.push_back({tr("phase"), &track, 17});
        break;
      case prof::TrackKind::Stream:
        all.push_back({name, &track, 28});
        break;
      case prof::TrackKind::Api:
        all.push_back({tr("CUDA API"), &track, 24});
        break;
      case prof::TrackKind::CpuThread:
        if (track.depth == 0) all.push_back({name, &track, 28});
        break;
      default:
        break;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Lane& a, const Lane& b) {
    return a.track->kind == prof::TrackKind::Phases && b.track->kind != prof::TrackKind::Phases;
  });
  if (all.size() > 5) all.resize(5);
  return all;
}

void StepView::paintLane(QPainter& painter, const QRectF& row, const Lane& lane, const Run& run, StepWindowNs window,
                         double scale, std::vector<Block>* phases) const {
  painter.setPen(theme().secondary);
  painter.setFont(ui_font(11));
  painter.drawText(QRectF(row.left() - kGutter + 18, row.top(), kGutter - 26, row.height()),
                   Qt::AlignLeft | Qt::AlignVCenter, lane.name);
  const double width = static_cast<double>(window.end - window.begin) * scale;
  const bool gpu = lane.track->kind == prof::TrackKind::Stream;
  if (gpu) painter.fillRect(QRectF(row.left(), row.top() + 2, width, row.height() - 4), theme().idle);
  for (const prof::LodRect& r :
       prof::lod(*lane.track, window.begin, window.end, std::max(1, static_cast<int>(width)))) {
    const double x0 = std::max(0.0, static_cast<double>(r.x0)),
                 x1 = std::min(width, std::max(static_cast<double>(r.x1), x0 + 1));
    const QRectF box(row.left() + x0, row.top() + 2, x1 - x0, row.height() - 4);
    const QString name = QString::fromStdString(run.trace.name(r.span.name));
    if (phases) {
      painter.fillRect(box, theme().raised);
      painter.setPen(theme().strong_border);
      painter.drawRect(box.adjusted(0, 0, -1, -1));
      phases->push_back({name, box.left(), box.right()});
    } else {
      draw_fill(painter, box, meaning_brush(r.meaning));
    }
    const double room = box.width() - 8;
    painter.setFont(ui_font(10.5, 500));
    if (r.count > 1 || painter.fontMetrics().horizontalAdvance(name) > room) continue;
    painter.setPen(phases ? theme().text : theme().fill_ink);
    painter.drawText(box.adjusted(4, 0, -4, 0), Qt::AlignLeft | Qt::AlignVCenter, name);
  }
}

double StepView::paintRun(QPainter& painter, const QRectF& plot, double top, const Run& run, StepWindowNs window,
                          double scale, std::vector<Block>& phases) const {
  painter.fillRect(QRectF(plot.left() - kGutter, top, plot.width() + kGutter, kHead), theme().header);
  draw_badge(painter, QRectF(plot.left() - kGutter + 8, top + 2.5, 15, 15), run.slot);
  painter.setFont(ui_font(12, 600));
  painter.setPen(theme().text);
  painter.drawText(QRectF(plot.left() - kGutter + 30, top, plot.width(), kHead), Qt::AlignLeft | Qt::AlignVCenter,
                   run.title);
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QRectF(plot.left(), top, plot.width() - 8, kHead), Qt::AlignRight | Qt::AlignVCenter,
                   tr("%1 a step").arg(time_axis_text(static_cast<double>(window.end - window.begin) * 1e-3)));
  double y = top + kHead;
  for (const Lane& lane : lanes(run)) {
    paintLane(painter, QRectF(plot.left(), y, plot.width(), lane.height), lane, run, window, scale,
              lane.track->kind == prof::TrackKind::Phases ? &phases : nullptr);
    y += lane.height;
    painter.setPen(theme().grid);
    painter.drawLine(QPointF(plot.left() - kGutter, y), QPointF(plot.right(), y));
  }
  return y;
}

// Each phase of the upper run flows into the same phase of the lower one.
void StepView::paintRibbons(QPainter& painter, double top, double bottom, const std::vector<Block>& above,
                            const std::vector<Block>& below, double scale) const {
  int shade = 0;
  for (const Block& a : above) {
    const auto b = std::find_if(below.begin(), below.end(), [&](const Block& x) { return x.name == a.name; });
    if (b == below.end()) continue;
    const double middle = (top + bottom) / 2;
    QPainterPath path(QPointF(a.x0, top));
    path.lineTo(a.x1, top);
    path.cubicTo(a.x1, middle, b->x1, middle, b->x1, bottom);
    path.lineTo(b->x0, bottom);
    path.cubicTo(b->x0, middle, a.x0, middle, a.x0, top);
    QColor fill = theme().secondary;
    fill.setAlphaF(shade++ % 2 ? 0.16F : 0.30F);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillPath(path, fill);
    painter.setRenderHint(QPainter::Antialiasing, false);
    const QString text =
        tr("%1 %2 → %3")
            .arg(a.name, us_text((a.x1 - a.x0) / scale * 1e-3), time_axis_text((b->x1 - b->x0) / scale * 1e-3));
    painter.setFont(ui_font(11));
    if (painter.fontMetrics().horizontalAdvance(text) > a.x1 - a.x0 - 12) continue;
    painter.setPen(theme().text);
    painter.drawText(QRectF(a.x0, top + 2, a.x1 - a.x0, 18), Qt::AlignCenter, text);
  }
}

void StepView::paintRuler(QPainter& painter, const QRectF& plot, double top, double scale) const {
  const double range_us = plot.width() / scale * 1e-3, step = nice_step(range_us);
  painter.setFont(ui_font(11));
  for (double us = 0; us <= range_us; us += step) {
    const double x = plot.left() + us * 1e3 * scale;
    painter.setPen(theme().grid);
    painter.drawLine(QPointF(x, top + kRuler), QPointF(x, plot.bottom()));
    painter.setPen(theme().secondary);
    painter.drawText(QPointF(x + 4, top + 15), us == 0 ? tr("0 µs") : us_text(us));
  }
}

void StepView::render(QPainter& painter, const QRectF& area) const {
  painter.fillRect(area, theme().base);
  if (!baseline_ || !candidate_ || !comparison_.traced) {
    painter.setPen(theme().secondary);
    painter.setFont(ui_font(12.5));
    painter.drawText(
        area.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap,
        baseline_ && candidate_
            ? tr("One of the runs has no trace of its steps; its losses and times are compared below.")
            : tr("Tick two runs in the list at the right: a step of each is laid out here on one time scale."));
    return;
  }
  const QRectF plot(area.left() + kGutter, area.top(), area.width() - kGutter - 12, area.height());
  const auto longest = std::max(comparison_.baseline_step.end - comparison_.baseline_step.begin,
                                comparison_.candidate_step.end - comparison_.candidate_step.begin);
  const double scale = plot.width() / (static_cast<double>(longest) * 1.02);
  paintRuler(painter, plot, area.top(), scale);
  std::vector<Block> above, below;
  const double end = paintRun(painter, plot, area.top() + kRuler, *baseline_, comparison_.baseline_step, scale, above);
  paintRun(painter, plot, end + kRibbon, *candidate_, comparison_.candidate_step, scale, below);
  paintRibbons(painter, end, end + kRibbon, above, below, scale);
  if (!cursor_ || *cursor_ < plot.left()) return;
  QPen pen(theme().text, 1);
  pen.setDashPattern({3, 2});
  painter.setPen(pen);
  painter.drawLine(QPointF(*cursor_, area.top() + kRuler), QPointF(*cursor_, area.bottom()));
  const QString text = time_axis_text((*cursor_ - plot.left()) / scale * 1e-3);
  painter.setFont(ui_font(11, 600));
  const double width = painter.fontMetrics().horizontalAdvance(text) + 12;
  const QRectF flag(*cursor_ - width / 2, area.top() + 2, width, 18);
  painter.fillRect(flag, theme().text);
  painter.setPen(theme().base);
  painter.drawText(flag, Qt::AlignCenter, text);
}

void StepView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render(painter, rect());
}

void StepView::mouseMoveEvent(QMouseEvent* event) {
  cursor_ = event->position().x();
  update();
}

void StepView::leaveEvent(QEvent*) {
  cursor_.reset();
  update();
}

}  // namespace ws::app
