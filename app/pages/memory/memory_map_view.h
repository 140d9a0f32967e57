// The map: one rectangle per buffer, free space left empty, and below it the bytes in use on the same axis.
#pragma once
#include <QWidget>
#include <optional>

#include "app/pages/memory/memory_blocks.h"
#include "app/text/units.h"

namespace ws::app {

class MemoryMapView : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryMapView(QWidget* parent = nullptr);
  void setMap(MemoryMap map, int slot, const QString& why_empty);
  const MemoryMap& map() const { return map_; }
  void setSelected(BufferId buffer);
  void setCursorX(double x);
  void showWhole(bool whole);  // all steps, not only the one that the map opens with
  double begin() const { return whole_ || map_.by_op ? map_.x_begin : map_.x_from; }
  double end() const { return whole_ || map_.by_op ? map_.x_end : map_.x_until; }
  std::optional<double> cursorX() const { return cursor_; }
  QRectF boxOf(const MapBlock& block) const;
  QSize minimumSizeHint() const override { return {360, 240}; }

 signals:
  void blockChosen(const ws::app::MapBlock& block);
  void foldWanted(const QString& block, bool folded);  // of layers

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
  const MapBlock* blockAt(QPointF at) const;  // the topmost one
  QString tipAt(QPointF at) const;
  void paintAxes(QPainter&) const;
  void paintUseAt(QPainter&, double at) const;
  void paintAddresses(QPainter&) const;
  void paintBlocks(QPainter&) const;
  struct UseScale {
    QRectF area;
    double top;  // bytes at the upper edge
    ByteUnit unit;
    double operator()(uint64_t bytes) const { return area.bottom() - static_cast<double>(bytes) / top * area.height(); }
  };
  UseScale useScale() const;
  void paintUse(QPainter&) const;
  void paintLayers(QPainter&) const;
  QRectF boxOf(const MapLayer& layer) const;
  void paintUseCurve(QPainter&, const UseScale& at) const;
  void paintPeak(QPainter&, const UseScale& at) const;

  MemoryMap map_;
  QString why_empty_;
  int slot_ = 0;
  bool isShown(const MapBlock& block) const { return block.x1 > begin() && block.x0 < end(); }
  bool whole_ = false;
  BufferId selected_ = BufferId::None;
  std::optional<double> cursor_;
};

}  // namespace ws::app
