#include "app/network/tile_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "app/widgets/theme.h"
#include "app/widgets/tip.h"

namespace ws::app {
namespace {

constexpr double kTileGap = 4, kLabel = 15, kEdge = 8;

}  // namespace

TileLayout layout_tiles(QSizeF area, int count, double below, double least, double most) {
  TileLayout best{1, 0, least};
  for (int columns = 1; columns <= count; ++columns) {
    const int rows = (count + columns - 1) / columns;
    const double side = std::min((area.width() + kTileGap) / columns - kTileGap, (area.height() + kTileGap) / rows - kTileGap - below);
    if (side > best.side) best = {columns, count, std::min(side, most)};
  }
  if (best.shown == 0) best.columns = std::max(1, static_cast<int>((area.width() + kTileGap) / (least + kTileGap)));
  const int rows = std::max(1, static_cast<int>((area.height() + kTileGap) / (best.side + below + kTileGap)));
  best.shown = std::min(count, best.columns * rows);
  return best;
}

TileView::TileView(const QString& name, QWidget* parent) : QWidget(parent) { setAccessibleName(name); }

void TileView::setTiles(std::vector<Tile> tiles) {
  tiles_ = std::move(tiles);
  update();
}

void TileView::setChosen(int tile) {
  if (std::exchange(chosen_, tile) != tile) update();
}

void TileView::setPickable(bool pickable) {
  pickable_ = pickable;
  setFocusPolicy(pickable ? Qt::StrongFocus : Qt::NoFocus);
}

double TileView::labelHeight() const { return tiles_.empty() || tiles_[0].label.isEmpty() ? 0 : kLabel; }

TileLayout TileView::layout() const {
  return layout_tiles(QSizeF(width() - 2 * kEdge, height() - kEdge), static_cast<int>(tiles_.size()), labelHeight(), least_, most_);
}

int TileView::shown() const { return layout().shown; }

QRectF TileView::place(const TileLayout& by, int tile) const {
  const double pitch = by.side + kTileGap;
  return {kEdge + pitch * (tile % by.columns), 2 + (pitch + labelHeight()) * (tile / by.columns), by.side, by.side};
}

int TileView::tileAt(QPointF at) const {
  const TileLayout by = layout();
  for (int i = 0; i < by.shown; ++i)
    if (place(by, i).adjusted(0, 0, 0, labelHeight()).contains(at)) return i;
  return -1;
}

void TileView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  const TileLayout by = layout();
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.setFont(ui_font(10.5));
  for (int i = 0; i < by.shown; ++i) {
    const Tile& tile = tiles_[static_cast<size_t>(i)];
    const QRectF box = place(by, i);
    painter.drawImage(box, tile.image);
    painter.setPen(i == chosen_ ? QPen(t.text, 2) : QPen(t.border, 1));  // a tile of zeros has the colour of the ground
    painter.drawRect(box);
    if (tile.label.isEmpty()) continue;
    painter.setPen(tile.wrong ? t.worse : t.secondary);
    const QRectF below(box.left(), box.bottom(), box.width(), kLabel);
    painter.drawText(below, Qt::AlignCenter, painter.fontMetrics().elidedText(tile.label, Qt::ElideRight, static_cast<int>(below.width())));
  }
  if (!hasFocus()) return;
  painter.setPen(QPen(t.focus, 2));
  painter.drawRect(rect().adjusted(1, 1, -1, -1));
}

void TileView::mousePressEvent(QMouseEvent* event) {
  const int tile = tileAt(event->position());
  if (!pickable_ || tile < 0) return QWidget::mousePressEvent(event);
  emit picked(tile);
}

void TileView::keyPressEvent(QKeyEvent* event) {
  const int count = shown();
  const int step = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if (!pickable_ || step == 0 || count == 0) return QWidget::keyPressEvent(event);
  emit picked(std::clamp(chosen_ + step, 0, count - 1));
}

bool TileView::event(QEvent* event) {
  const auto text_at = [this](QPointF at) {
    const int tile = tileAt(at);
    return tile < 0 ? QString() : tiles_[static_cast<size_t>(tile)].tip;
  };
  return showed_tip(event, this, text_at) || QWidget::event(event);
}

}  // namespace ws::app
