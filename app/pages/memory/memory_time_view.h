// Sizes of the live blocks over time, darker for more blocks. A line above shows the fragmentation of the free memory.
#pragma once
#include <QWidget>

#include "app/pages/memory/memory_history_text.h"

namespace ws::app {

class MemoryTimeView : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryTimeView(QWidget* parent = nullptr);
  void setCurve(FragmentationCurve curve, int slot);
  const FragmentationCurve& curve() const { return curve_; }
  QString tipAt(QPointF place) const;  // what was live there; empty outside the chart
  QSize sizeHint() const override { return {320, 150}; }
  QSize minimumSizeHint() const override { return {200, 110}; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool event(QEvent*) override;

 private:
  QRectF lineArea() const;
  QRectF sizeArea() const;
  double x(size_t moment) const;
  double rowHeight() const;
  double rowTop(uint64_t from) const;
  void paintLine(QPainter&) const;
  void paintSizes(QPainter&) const;
  void paintScale(QPainter&) const;

  FragmentationCurve curve_;
  std::vector<uint64_t> classes_;  // lower bounds of the size classes, smallest first
  uint64_t most_ = 1;              // most blocks of a class at one time
  int slot_ = 0;
};

}  // namespace ws::app
