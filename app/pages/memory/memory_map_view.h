// The map itself: a rectangle a buffer, free space hatched, the bytes in use below on the same axis.
#pragma once
#include <QWidget>
#include <optional>

#include "app/pages/memory/memory_blocks.h"

namespace ws::app {

class MemoryMapView : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryMapView(QWidget* parent = nullptr);
  void setMap(MemoryMap map, int slot);
  const MemoryMap& map() const { return map_; }
  void setSelected(BufferId buffer);
  void setCursorX(double x);
  std::optional<double> cursorX() const { return cursor_; }
  QRectF boxOf(const MapBlock& block) const;
  QSize minimumSizeHint() const override { return {360, 240}; }

 signals:
  void blockChosen(const ws::app::MapBlock& block);
  void cursorMoved(double x);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  bool event(QEvent*) override;

 private:
  QRectF mapArea() const;
  QRectF useArea() const;
  double x(double at) const;
  double y(double bytes) const;
  const MapBlock* blockAt(QPointF at) const;  // the one on top
  QString tipAt(QPointF at) const;
  void paintAxes(QPainter&) const;
  void paintAddresses(QPainter&) const;
  void paintBlocks(QPainter&) const;
  void paintUse(QPainter&) const;

  MemoryMap map_;
  int slot_ = 0;
  BufferId selected_ = BufferId::None;
  std::optional<double> cursor_;
};

}  // namespace ws::app
