// Draws the idea of each lesson.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "app/widgets/theme.h"
#include "app/window/start_page.h"

namespace ws::app {
namespace {

using prof::Meaning;

void blocks(QPainter& painter, double x, double y, const std::vector<std::pair<Meaning, double>>& parts) {
  for (const auto& [meaning, width] : parts) {
    draw_fill(painter, QRectF(x, y, width, 18), meaning_brush(meaning));
    x += width;
  }
}

// Stands for what a person shall guess first.
void hidden_bar(QPainter& painter, const QRectF& bar) {
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme().strong_border, 1, Qt::DashLine));
  painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
  painter.setPen(theme().secondary);
  painter.drawText(bar, Qt::AlignCenter, "?");
}

// A step with allocations is twice as long, as in the runs that ship with the program.
void allocation_picture(QPainter& painter, const QRectF& box, bool answered) {
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QPointF(box.left(), box.top() + 19), "direct");
  painter.drawText(QPointF(box.left(), box.top() + 53), "arena");
  const double x = box.left() + 44;
  blocks(painter, x, box.top() + 5,
         {{Meaning::Allocation, 18},
          {Meaning::Matrix, 20},
          {Meaning::Allocation, 16},
          {Meaning::Pointwise, 15},
          {Meaning::Allocation, 18},
          {Meaning::Matrix, 20},
          {Meaning::Allocation, 16},
          {Meaning::Optimizer, 13}});
  if (!answered) return hidden_bar(painter, QRectF(x, box.top() + 39, 136, 18));
  blocks(painter, x, box.top() + 39,
         {{Meaning::Matrix, 20}, {Meaning::Pointwise, 15}, {Meaning::Matrix, 20}, {Meaning::Optimizer, 13}});
}

// One curve for each answer. Their names come with the answer: zeros do not learn, normal weights begin far too high.
void weights_picture(QPainter& painter, const QRectF& box, bool answered) {
  struct Curve {
    const char* name;
    int colour;
    double high, end;
  };
  constexpr Curve kCurves[] = {{"normal", 1, 2, 36}, {"xavier", 2, 22, 46}, {"kaiming", 0, 26, 55}, {"zeros", 3, 24, 24}};
  const double left = box.left() + 30, right = box.left() + 140, floor = box.bottom() - 2;
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QPointF(box.left(), box.top() + 34), "loss");
  painter.setPen(QPen(theme().strong_border, 1));
  painter.drawLine(QPointF(left, box.top() + 2), QPointF(left, floor));
  painter.drawLine(QPointF(left, floor), QPointF(right, floor));
  for (const Curve& curve : kCurves) {
    QPainterPath path;
    const double high = box.top() + curve.high, end = box.top() + curve.end;
    path.moveTo(left + 1, high);
    path.cubicTo(left + 22, end - (curve.end - curve.high) / 6, left + 50, end - 1, right, end);
    painter.setPen(QPen(theme().run[curve.colour], 1.7));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.drawText(QPointF(right + 5, end + 4), answered ? curve.name : "?");
  }
}

// One bar for each run of the lesson. The three runs that ship with the program fuse and use a graph at once.
void speed_picture(QPainter& painter, const QRectF& box, const LessonPicture& picture) {
  using Bars = std::vector<std::pair<const char*, double>>;
  Bars bars{{"eager", 112}, {"+ arena", 60}, {"+ fused", 36}, {"+ graph", 9}};
  if (picture.recorded) bars = {{"direct", 112}, {"arena", 56}, {"graph", 6}};
  bars.resize(std::min(picture.runs, bars.size()));
  painter.setFont(ui_font(11));
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = box.top() + static_cast<double>(i) * 17;
    painter.setPen(theme().secondary);
    painter.drawText(QPointF(box.left(), y + 11), bars[i].first);
    if (i > 0 && !picture.answered)
      hidden_bar(painter, QRectF(box.left() + 52, y + 1, bars[0].second, 12));
    else
      draw_fill(painter, QRectF(box.left() + 52, y + 1, bars[i].second, 12),
                i + 1 == bars.size() ? theme().of(Meaning::Matrix) : theme().strong_border);
  }
}

// A straight boundary does not separate the classes; a bent one does.
void plane_picture(QPainter& painter, const QRectF& box) {
  const double side = box.height() - 4;
  for (int picture = 0; picture < 2; ++picture) {
    const QRectF plane(box.left() + picture * (side + 24), box.top() + 2, side, side);
    QPainterPath upper(plane.topLeft());
    upper.lineTo(plane.topRight());
    if (picture == 0)
      upper.lineTo(plane.right(), plane.top() + side * 0.42), upper.lineTo(plane.left(), plane.top() + side * 0.58);
    else
      upper.cubicTo(plane.right() - side * 1.1, plane.top() + side * 0.2, plane.left() + side * 1.1,
                    plane.top() + side * 0.8, plane.left(), plane.bottom());
    upper.closeSubpath();
    for (int half = 0; half < 2; ++half) {
      QColor fill = theme().data_class[half];
      fill.setAlphaF(0.25F);
      QPainterPath all;
      all.addRect(plane);
      painter.fillPath(half == 0 ? upper : all.subtracted(upper), fill);
    }
    painter.setPen(Qt::NoPen);
    for (int i = 0; i < 22; ++i) {
      const double turn = 0.5 + i * 0.2, reach = side * 0.022 * i;
      for (int arm = 0; arm < 2; ++arm) {
        const double angle = turn + arm * 3.14159;
        painter.setBrush(theme().data_class[arm]);
        painter.drawEllipse(plane.center() + QPointF(std::cos(angle), std::sin(angle)) * reach, 1.8, 1.8);
      }
    }
  }
}

}  // namespace

void paint_lesson(QPainter& painter, const QRectF& box, const LessonPicture& picture) {
  if (picture.name == "allocation") return allocation_picture(painter, box, picture.answered);
  if (picture.name == "hidden") return plane_picture(painter, box);
  if (picture.name == "weights") return weights_picture(painter, box, picture.answered);
  speed_picture(painter, box, picture);
}

}  // namespace ws::app
