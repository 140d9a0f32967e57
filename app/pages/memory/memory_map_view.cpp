#include "app/pages/memory/memory_map_view.h"

#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <cmath>

#include "app/widgets/theme.h"
#include "app/widgets/tip.h"
#include "app/text/units.h"
#include "app/timeline/time_scale.h"

namespace ws::app {
namespace {

constexpr double kLayerGap = 4, kLayerHeight = 16;
constexpr int kLeft = 54, kTop = 40, kRight = 14, kUseHeight = 110, kUseGap = 30;

// Returns 1, 2 or 5 times a power of ten, at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(std::max(least, 1e-9))));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

int decimals_of(double step) { return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))); }

QColor colour_of(const MapBlock& block) { return theme().of(meaning_of(block.content)); }

// "gradients"; empty if the content is not known.
QString content_text(const MapBlock& block) { return block.content == MemoryContent::Other ? QString() : content_name(block.content); }

}  // namespace

MemoryMapView::MemoryMapView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Memory map: address by time"));
}

void MemoryMapView::setMap(MemoryMap map, int slot, const QString& why_empty) {
  map_ = std::move(map), slot_ = slot, why_empty_ = why_empty;
  cursor_.reset();
  update();
}

void MemoryMapView::setSelected(BufferId buffer) { selected_ = buffer; update(); }
void MemoryMapView::setCursorX(double at) { cursor_ = at; update(); }
void MemoryMapView::showWhole(bool whole) { whole_ = whole; update(); }

QRectF MemoryMapView::mapArea() const {
  return {kLeft, kTop, double(width() - kLeft - kRight),
          std::max(60.0, height() - kTop - double(kUseHeight) - kUseGap - 24)};
}
QRectF MemoryMapView::useArea() const { return {kLeft, mapArea().bottom() + kUseGap, mapArea().width(), kUseHeight}; }
double MemoryMapView::x(double at) const {
  return mapArea().left() + (at - begin()) / (end() - begin()) * mapArea().width();
}
double MemoryMapView::y(double bytes) const {
  return mapArea().top() + bytes / static_cast<double>(map_.height) * mapArea().height();
}

QRectF MemoryMapView::boxOf(const MapBlock& block) const {
  const double top = y(static_cast<double>(block.y0)), high = std::max(3.0, y(static_cast<double>(block.y1)) - top);
  const double left = std::max(mapArea().left(), x(block.x0)), right = std::min(mapArea().right(), x(block.x1));
  return QRectF(left, top, std::max(1.0, right - left), high);
}

void MemoryMapView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  painter.fillRect(rect(), t.base);
  if (map_.empty()) {
    painter.setPen(t.quiet);
    painter.setFont(ui_font(12.5));
    painter.drawText(rect().adjusted(24, 0, -24, 0), Qt::AlignCenter | Qt::TextWordWrap, why_empty_);
    return;
  }
  paintAxes(painter);
  paintBlocks(painter);
  paintUse(painter);
  paintLayers(painter);
  if (!cursor_) return;
  QPen pen(t.text, 1);
  pen.setDashPattern({3, 2});
  painter.setPen(pen);
  painter.drawLine(QPointF(x(*cursor_), kTop - 16), QPointF(x(*cursor_), useArea().bottom()));
  paintUseAt(painter, *cursor_);
}

// What is in use at the cursor, beside its line.
void MemoryMapView::paintUseAt(QPainter& painter, double at) const {
  const QString text = bytes_in(static_cast<double>(used_at(map_, at)), byte_unit(static_cast<double>(map_.peak)));
  const double width = number_width(number_font(11, 600), text) + 8, line = x(at);
  const double left = line + width > useArea().right() ? line - width : line;
  const QRectF box(left, useArea().bottom() - 16, width, 15);
  QColor ground = theme().base;
  ground.setAlphaF(0.8F);
  painter.fillRect(box, ground);
  painter.setFont(number_font(11, 600));
  painter.setPen(theme().text);
  draw_number(painter, box, Qt::AlignCenter, text);
}

void MemoryMapView::paintAxes(QPainter& painter) const {
  const Theme& t = theme();
  const QRectF area = mapArea();
  painter.setFont(ui_font(11));
  for (size_t i = 0; i < map_.sections.size(); ++i) {
    const double left = std::max(area.left(), x(map_.sections[i].first));
    const double right = std::min(area.right(), i + 1 < map_.sections.size() ? x(map_.sections[i + 1].first) : area.right());
    const QRectF band(left, 3, right - left - 1, 17);
    if (band.width() < 3) continue;
    painter.fillRect(band, t.raised);
    painter.setPen(t.strong_border);
    painter.drawRect(band);
    painter.setPen(t.secondary);
    const auto fits = [&](const QString& text) { return painter.fontMetrics().horizontalAdvance(text) + 8 < band.width(); };
    const QString& name = map_.sections[i].second;
    const QString text = fits(name) || !map_.by_step ? name : name.section(' ', -1);  // "21" of "step 21"
    if (fits(text)) painter.drawText(band.adjusted(5, 0, 0, 0), Qt::AlignVCenter, text);
  }
  painter.setPen(t.quiet);
  if (map_.by_step) painter.drawText(QRectF(0, 3, kLeft - 8, 17), Qt::AlignRight | Qt::AlignVCenter, tr("step"));
  const double pitch = area.width() / (end() - begin());
  if (map_.by_op)
    for (int op = 0; op < static_cast<int>(map_.x_end); ++op) {
      if (pitch < 18 && op % static_cast<int>(std::ceil(18 / pitch)) != 0) continue;
      painter.setPen(t.quiet);
      draw_number(painter, QRectF(x(op), 22, pitch, 16), Qt::AlignCenter, QString::number(op));
    }
  paintAddresses(painter);
}

// Labels round numbers and the end of the reserved memory.
void MemoryMapView::paintAddresses(QPainter& painter) const {
  const Theme& t = theme();
  const QRectF area = mapArea();
  const ByteUnit unit = byte_unit(static_cast<double>(map_.height));
  const double end = static_cast<double>(map_.height) / unit.bytes;
  const double step = round_step(end / std::max(2.0, area.height() / 60));
  const int decimals = decimals_of(step);
  const auto tick = [&](double value, const QString& text) {
    const double at = y(value * unit.bytes);
    painter.setPen(t.quiet);
    draw_number(painter, QRectF(0, at - 8, kLeft - 8, 16), Qt::AlignRight | Qt::AlignVCenter, text);
    painter.fillRect(QRectF(kLeft - 4, std::round(at), 4, 1), t.strong_border);
  };
  for (int i = 0; y(i * step * unit.bytes) < area.bottom() - 16; ++i) tick(i * step, fixed_text(i * step, decimals));
  tick(end, significant_text(end));
  painter.save();
  painter.translate(10, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-120, -8, 240, 16), Qt::AlignCenter,
                   (map_.by_op ? tr("offset in the arena, %1") : tr("address, %1")).arg(unit.name));
  painter.restore();
}

void MemoryMapView::paintBlocks(QPainter& painter) const {
  const Theme& t = theme();
  for (const MapBlock& block : map_.blocks) {
    if (!isShown(block)) continue;
    const QRectF box = boxOf(block);
    const bool chosen = selected_ != BufferId::None && block.buffer == selected_;
    const QColor colour = colour_of(block);
    QColor fill = colour;
    painter.fillRect(box, t.base);
    fill.setAlphaF(chosen ? 0.85F : 0.40F);
    painter.fillRect(box, fill);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(chosen ? QPen(t.text, 2) : QPen(colour, 1));
    painter.drawRect(chosen ? box.adjusted(1, 1, -1, -1) : box.adjusted(0, 0, -1, -1));
    if (box.width() < 30 || box.height() < 16) continue;
    painter.setPen(t.text);
    painter.setFont(ui_font(11, 600));
    const auto fits = [&](const QString& text) {
      return painter.fontMetrics().horizontalAdvance(text) + 10 < box.width();
    };
    if (fits(block.name)) painter.drawText(box.adjusted(6, 2, 0, 0), Qt::AlignTop, block.name);
    painter.setFont(ui_font(10.5));
    const QString size = bytes_text(static_cast<double>(block.bytes)), content = content_text(block), of = content.isEmpty() ? size : size + " · " + content;
    const QString& line = fits(of) ? of : size;
    if (box.height() > 32 && fits(line)) painter.setPen(t.secondary), painter.drawText(box.adjusted(6, 16, 0, 0), Qt::AlignTop, line);
  }
  painter.setPen(QPen(t.quiet, 1, Qt::DashLine));
  for (uint64_t seam : map_.seams)
    painter.drawLine(QPointF(mapArea().left(), y(static_cast<double>(seam))),
                     QPointF(mapArea().right(), y(static_cast<double>(seam))));
}

void MemoryMapView::paintUse(QPainter& painter) const {
  const Theme& t = theme();
  const QRectF area = useArea();
  const UseScale at = useScale();
  painter.setFont(ui_font(12, 600));
  painter.setPen(t.text);
  const QString title = tr("In use, %1").arg(at.unit.name);
  painter.drawText(QRectF(area.left(), area.top() - 22, 300, 18), Qt::AlignVCenter, title);
  const double beside = area.left() + painter.fontMetrics().horizontalAdvance(title) + 8;
  painter.setFont(ui_font(11));
  painter.setPen(t.secondary);
  painter.drawText(QRectF(beside, area.top() - 22, std::max(0.0, area.right() - beside), 18), Qt::AlignVCenter, map_.use_note);
  painter.fillRect(QRectF(area.left(), area.bottom(), area.width(), 1), t.strong_border);
  painter.save();
  painter.setClipRect(area.adjusted(0, -4, 0, 4));
  paintUseCurve(painter, at);
  painter.restore();
  painter.setFont(ui_font(11));
  painter.setPen(t.quiet);
  const double most = at.top / at.unit.bytes, step = round_step(most / 4);
  for (int tick = 0; tick * step <= most; ++tick) {
    const double value = tick * step, y = at(static_cast<uint64_t>(value * at.unit.bytes));
    draw_number(painter, QRectF(0, y - 8, kLeft - 8, 16), Qt::AlignRight | Qt::AlignVCenter, fixed_text(value, decimals_of(step)));
    painter.fillRect(QRectF(kLeft - 4, std::round(y), 4, 1), t.strong_border);
  }
  if (at(map_.peak) - at(map_.reserved) > 14)
    painter.drawText(QRectF(area.left() + 4, at(map_.reserved) + 2, 110, 16), Qt::AlignVCenter, tr("reserved"));
  else if (map_.reserved > 0)  // above the line: below it is the peak
    painter.drawText(QRectF(area.right() - 110, at(map_.reserved) - 17, 106, 16), Qt::AlignVCenter | Qt::AlignRight, tr("reserved"));
  paintPeak(painter, at);
}

QRectF MemoryMapView::boxOf(const MapLayer& layer) const {
  return {x(layer.x0), useArea().bottom() + kLayerGap, std::max(1.0, x(layer.x1) - x(layer.x0) - 1), kLayerHeight};
}

// Below the curve: memory climbs in the forward layers and falls in the backward ones.
void MemoryMapView::paintLayers(QPainter& painter) const {
  const Theme& t = theme();
  painter.setFont(ui_font(10.5));
  for (const MapLayer& layer : map_.layers) {
    const QRectF box = boxOf(layer);
    painter.fillRect(box, layer.backward ? t.header : t.raised);
    painter.setPen(t.border);
    painter.drawRect(box);
    painter.setPen(t.secondary);
    const QString name = (layer.block.empty() ? "" : layer.name.toStdString() == layer.block ? "▸ " : "▾ ") + layer.name;
    if (painter.fontMetrics().horizontalAdvance(name) + 8 < box.width())
      painter.drawText(box.adjusted(4, 0, 0, 0), Qt::AlignVCenter, name);
  }
}

MemoryMapView::UseScale MemoryMapView::useScale() const {
  const double top = static_cast<double>(std::max({map_.peak, map_.reserved, uint64_t{1}})) * 1.08;
  return {useArea(), top, byte_unit(static_cast<double>(map_.peak))};  // the unit of the figures above
}

void MemoryMapView::paintUseCurve(QPainter& painter, const UseScale& at) const {
  const QRectF area = at.area;
  const QColor colour = theme().run[std::max(0, slot_) % 8];
  QPainterPath path;
  path.moveTo(area.left(), area.bottom());
  double last = area.bottom();
  for (auto point = map_.use.begin(); point != map_.use.end();) {  // per pixel column: minimum, maximum, last
    const double here = x(point->x), column = std::floor(here);
    uint64_t least = point->used, most = point->used;
    path.lineTo(here, last);
    for (; point != map_.use.end() && std::floor(x(point->x)) == column; ++point) {
      least = std::min(least, point->used), most = std::max(most, point->used);
      last = at(point->used);
    }
    for (const double y_at : {at(least), at(most), last}) path.lineTo(here, y_at);
  }
  path.lineTo(area.right(), last);
  QPainterPath under = path;
  under.lineTo(area.right(), area.bottom());
  QColor tint = colour;
  tint.setAlphaF(0.22F);
  painter.fillPath(under, tint);
  painter.setPen(QPen(colour, 1.5));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(path);
  if (map_.reserved > 0)
    painter.setPen(QPen(colour, 1.7)),
        painter.drawLine(QPointF(area.left(), at(map_.reserved)), QPointF(area.right(), at(map_.reserved)));
}

// To the left of the peak, where usage is lower. Earlier peaks end at the ground of the text.
void MemoryMapView::paintPeak(QPainter& painter, const UseScale& at) const {
  if (map_.peak_x < begin() || map_.peak_x > end()) return;
  painter.setPen(theme().text);
  painter.setFont(ui_font(11, 600));
  const QString peak = tr("peak");
  const double wide = painter.fontMetrics().horizontalAdvance(peak);
  double edge = map_.peak_x;
  for (const UsePoint& point : map_.use) {
    if (point.x > map_.peak_x) break;
    if (static_cast<double>(point.used) < 0.8 * static_cast<double>(map_.peak))
      edge = map_.peak_x;
    else
      edge = std::min(edge, point.x);
  }
  const double peak_x = std::clamp(x(edge) - wide - 6, at.area.left() + 4, at.area.right() - wide - 4);
  const QRectF box(peak_x, at(map_.peak) + 4, wide, painter.fontMetrics().height());
  QColor ground = theme().base;
  ground.setAlphaF(0.85F);
  painter.fillRect(box.adjusted(-3, 0, 3, 0), ground);
  painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, peak);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(theme().text);
  painter.setPen(QPen(theme().base, 1));
  painter.drawEllipse(QPointF(x(map_.peak_x), at(map_.peak)), 3.5, 3.5);
  painter.restore();
}

void MemoryMapView::mouseMoveEvent(QMouseEvent* event) {
  if (map_.empty() || !mapArea().adjusted(0, -40, 0, 160).contains(event->position())) return;
  const double at =
      begin() + (event->position().x() - mapArea().left()) / mapArea().width() * (end() - begin());
  setCursorX(std::clamp(at, begin(), end()));
}

void MemoryMapView::mousePressEvent(QMouseEvent* event) {
  for (const MapLayer& layer : map_.layers)
    if (!layer.block.empty() && boxOf(layer).contains(event->position()))
      return emit foldWanted(QString::fromStdString(layer.block), layer.name.toStdString() != layer.block);
  const MapBlock* block = blockAt(event->position());
  setSelected(block ? block->buffer : BufferId::None);
  if (block) emit blockChosen(*block);
}

void MemoryMapView::keyPressEvent(QKeyEvent* event) {
  const int by = event->key() == Qt::Key_Right || event->key() == Qt::Key_Down ? 1
                 : event->key() == Qt::Key_Left || event->key() == Qt::Key_Up  ? -1
                                                                               : 0;
  if (by == 0 || map_.blocks.empty()) return QWidget::keyPressEvent(event);
  int at = -1;
  for (size_t i = 0; i < map_.blocks.size(); ++i)
    if (map_.blocks[i].buffer == selected_ && selected_ != BufferId::None) at = static_cast<int>(i);
  const auto next = static_cast<size_t>(std::clamp(at + by, 0, static_cast<int>(map_.blocks.size()) - 1));
  setSelected(map_.blocks[next].buffer);
  emit blockChosen(map_.blocks[next]);
}

const MapBlock* MemoryMapView::blockAt(QPointF at) const {
  for (auto block = map_.blocks.rbegin(); block != map_.blocks.rend(); ++block)
    if (isShown(*block) && boxOf(*block).contains(at)) return &*block;
  return nullptr;
}

QString MemoryMapView::tipAt(QPointF at) const {
  for (const MapLayer& layer : map_.layers)
    if (boxOf(layer).contains(at))
      return (layer.backward ? tr("%1, backward").arg(layer.name)
                             : tr("%1, forward: keeps %2 for the backward phase").arg(layer.name, bytes_text(static_cast<double>(layer.kept)))) +
             (layer.block.empty()                          ? QString()
              : layer.name.toStdString() == layer.block ? tr("\nClick to see its layers")
                                                         : tr("\nClick to fold %1").arg(QString::fromStdString(layer.block)));
  const MapBlock* block = blockAt(at);
  if (!block) return {};
  const QString life = map_.by_op ? tr("alive during ops %1 to %2").arg(block->x0).arg(block->x1 - 1)
                                  : tr("alive %1").arg(span_time(static_cast<int64_t>(block->x1 - block->x0)));
  const QString content = content_text(*block);
  return block->name + (content.isEmpty() ? QString() : ", " + content) + (block->layer.isEmpty() ? QString() : tr(", written by %1").arg(block->layer)) + "\n" + bytes_text(static_cast<double>(block->bytes)) + "\n" + life;
}

bool MemoryMapView::event(QEvent* event) {
  return showed_tip(event, this, [this](QPointF at) { return tipAt(at); }) || QWidget::event(event);
}

}  // namespace ws::app
