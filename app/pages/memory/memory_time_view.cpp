#include "app/pages/memory/memory_time_view.h"

#include <QPainter>
#include <QPainterPath>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <set>

#include "app/widgets/theme.h"
#include "app/widgets/tip.h"
#include "app/text/units.h"
#include "app/timeline/time_scale.h"

namespace ws::app {
namespace {

constexpr double kLabels = 62, kTitle = 24, kEdge = 12, kLineHeight = 26, kFoot = 16;
constexpr size_t kLabelHeight = 11;  // px per row of sizes for its label

QString fragmented_text(const FragmentationCurve& curve, int decimals) {
  return QObject::tr("fragmented: %1 % of the free bytes are outside the largest free block at the peak, %2 % at worst")
      .arg(fixed_text(curve.at_peak * 100, decimals), fixed_text(curve.worst * 100, decimals));
}

QString short_text(const FragmentationCurve& curve) {
  return QObject::tr("%1 % of the free bytes are outside the largest free block").arg(fixed_text(curve.at_peak * 100, 1));
}

// A title, as a pane has it, and a note beside it.
void draw_title(QPainter& painter, QRectF line, const QString& title, const QString& note) {
  painter.setFont(ui_font(12.5, 600));
  painter.setPen(theme().text);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, title);
  line.setLeft(line.left() + painter.fontMetrics().horizontalAdvance(title) + 8);
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, painter.fontMetrics().elidedText(note, Qt::ElideRight, static_cast<int>(line.width())));
}

// Powers of two have no decimals.
QString class_text(uint64_t from) {
  return bytes_text(static_cast<double>(from)).replace(QRegularExpression("\\.0+ "), " ");
}

}  // namespace

MemoryTimeView::MemoryTimeView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName(tr("Sizes of live blocks and fragmentation over time"));
}

void MemoryTimeView::setCurve(FragmentationCurve curve, int slot) {
  curve_ = std::move(curve), slot_ = slot, most_ = 1;
  std::set<uint64_t> classes;
  for (const auto& moment : curve_.moments)
    for (const prof::SizeBin& bin : moment.sizes) classes.insert(bin.from), most_ = std::max(most_, bin.count);
  classes_.assign(classes.begin(), classes.end());
  setAccessibleDescription(curve_.empty() ? QString()
                                          : fragmented_text(curve_, 1));
  setToolTip(curve_.empty() ? QString()
                            : tr("Live blocks of %1 by size. Fragmented: the share of the free bytes that are not in "
                                 "the largest free piece.")
                                  .arg(curve_.of));
  update();
}

QRectF MemoryTimeView::lineArea() const { return {kLabels, kTitle + 2, width() - kLabels - kEdge, kLineHeight}; }
QRectF MemoryTimeView::sizeArea() const {
  const double top = lineArea().bottom() + kTitle + 4;
  return {kLabels, top, lineArea().width(), std::max(20.0, height() - top - kFoot)};
}
double MemoryTimeView::x(size_t moment) const {
  if (moment >= curve_.moments.size()) return sizeArea().right();
  const double share = (static_cast<double>(curve_.moments[moment].time) - curve_.x_begin) /
                       std::max(1e-9, curve_.x_end - curve_.x_begin);
  return sizeArea().left() + share * sizeArea().width();
}
double MemoryTimeView::rowHeight() const {
  return sizeArea().height() / static_cast<double>(std::max<size_t>(1, classes_.size()));
}
double MemoryTimeView::rowTop(uint64_t from) const {  // largest on top
  const auto at = std::ranges::lower_bound(classes_, from) - classes_.begin();
  return sizeArea().bottom() - rowHeight() * static_cast<double>(at + 1);
}

void MemoryTimeView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  painter.fillRect(rect(), t.base);
  draw_title(painter, QRectF(10, 3, width() - 20, 18), tr("Fragmentation"), curve_.empty() ? tr("no allocation was recorded") : short_text(curve_));
  if (curve_.empty()) return;
  draw_title(painter, QRectF(10, sizeArea().top() - 20, width() - 20, 18), tr("Live blocks by size"), tr("stronger colour: more blocks"));
  paintLine(painter);
  paintSizes(painter);
  paintScale(painter);
}

void MemoryTimeView::paintLine(QPainter& painter) const {
  const Theme& t = theme();
  const QRectF area = lineArea();
  painter.setPen(t.quiet);
  draw_number(painter, QRectF(0, area.top() - 6, kLabels - 6, 14), Qt::AlignRight | Qt::AlignVCenter, "100 %");
  draw_number(painter, QRectF(0, area.bottom() - 8, kLabels - 6, 14), Qt::AlignRight | Qt::AlignVCenter, "0");
  painter.fillRect(QRectF(area.left(), area.bottom(), area.width(), 1), t.strong_border);
  painter.fillRect(QRectF(area.left(), area.top(), area.width(), 1), t.minor_grid);
  QPainterPath path;
  double last = area.bottom();
  path.moveTo(area.left(), last);
  for (size_t i = 0; i < curve_.moments.size(); ++i) {
    path.lineTo(x(i), last);
    last = area.bottom() - curve_.moments[i].fragmentation() * area.height();
    path.lineTo(x(i), last);
  }
  path.lineTo(area.right(), last);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(t.run[std::max(0, slot_) % 8], 1.5));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(path);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void MemoryTimeView::paintSizes(QPainter& painter) const {
  const Theme& t = theme();
  const QRectF area = sizeArea();
  painter.fillRect(area, t.minor_grid);
  QColor fill = t.run[std::max(0, slot_) % 8];
  const double high = rowHeight(), scale = std::log1p(static_cast<double>(most_));
  for (size_t i = 0; i < curve_.moments.size(); ++i) {
    const double left = x(i), right = std::max(left + 1, x(i + 1));
    for (const prof::SizeBin& bin : curve_.moments[i].sizes) {
      fill.setAlphaF(static_cast<float>(0.25 + 0.75 * std::log1p(static_cast<double>(bin.count)) / scale));
      painter.fillRect(QRectF(left, rowTop(bin.from) + 0.5, right - left, std::max(1.0, high - 1)), fill);
    }
  }
}

void MemoryTimeView::paintScale(QPainter& painter) const {
  const Theme& t = theme();
  const QRectF area = sizeArea();
  painter.setPen(t.quiet);
  const auto every = static_cast<size_t>(std::ceil(static_cast<double>(kLabelHeight) / std::max(1.0, rowHeight())));
  for (size_t i = 0; i < classes_.size(); i += std::max<size_t>(1, every))
    draw_number(painter, QRectF(0, rowTop(classes_[i]), kLabels - 6, rowHeight()), Qt::AlignRight | Qt::AlignVCenter,
                class_text(classes_[i]));
  const QRectF foot(area.left(), area.bottom() + 1, area.width(), kFoot - 1);
  const auto about = std::max<prof::TimeNs>(1000, static_cast<prof::TimeNs>((curve_.x_end - curve_.x_begin) / 1000));
  const auto text = [&](double at) {
    return curve_.by_op ? tr("op %1").arg(static_cast<int>(at)) : offset_time(static_cast<prof::TimeNs>(at), about);
  };
  draw_number(painter, foot, Qt::AlignLeft | Qt::AlignVCenter, curve_.first.isEmpty() ? text(curve_.x_begin) : curve_.first);
  draw_number(painter, foot, Qt::AlignRight | Qt::AlignVCenter,
              curve_.last.isEmpty() ? text(curve_.by_op ? curve_.x_end - 1 : curve_.x_end) : curve_.last);
}

QString MemoryTimeView::tipAt(QPointF place) const {
  if (curve_.empty() || !lineArea().united(sizeArea()).contains(place)) return {};
  size_t at = 0;
  while (at + 1 < curve_.moments.size() && x(at + 1) <= place.x()) ++at;
  const prof::MemoryMoment& moment = curve_.moments[at];
  QString text =
      tr("%1 live, %2 free in %3 places, the largest %4: fragmented %5 %")
          .arg(bytes_text(static_cast<double>(moment.live)), bytes_text(static_cast<double>(moment.free_bytes)))
          .arg(moment.holes)
          .arg(bytes_text(static_cast<double>(moment.largest_hole)), fixed_text(moment.fragmentation() * 100, 1));
  for (const prof::SizeBin& bin : moment.sizes)
    text += "\n" + tr("%1 of %2 and more").arg(bin.count).arg(class_text(bin.from));
  return text;
}

bool MemoryTimeView::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return tipAt(at); }) || QWidget::event(event);
}

}  // namespace ws::app
