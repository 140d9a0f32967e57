// A chart of time or throughput against size for each variant. Both axes are logarithmic. It is painted by hand.
#pragma once
#include <QWidget>

#include "app/pages/lab/lab_scene.h"

namespace ws::app {

class LabChart : public QWidget {
  Q_OBJECT
 public:
  explicit LabChart(LabAxis axis, QWidget* parent = nullptr);
  void setShown(const std::vector<LabShown>& shown);  // the first is the sweep itself
  void setAxis(LabAxis axis);
  void setClock(LabClock clock);
  void setCompact(bool compact) { scene_.compact = compact; }
  void setCursorSize(std::optional<double> size);
  void setEmptyText(const QString& text) { empty_ = text; }
  LabAxis axis() const { return scene_.axis; }
  std::optional<int64_t> cursorPoint() const { return scene_.cursorPoint(); }
  const std::vector<LabCurve>& curves() const { return scene_.curves; }
  QPointF placeOf(const LabPick& pick) const;                // position in the widget; a click there picks it
  void render(QPainter& painter, const QRectF& area) const;  // for exports
  QSize minimumSizeHint() const override { return {220, 120}; }

 signals:
  void cursorMoved(double size);
  void picked(const ws::app::LabPick& pick);  // on a click, or on Enter at the ringed point

 protected:
  void paintEvent(QPaintEvent*) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  std::optional<LabPick> pointAt(const QPointF& place) const;
  void stepRing(int by);
  void rebuild();

  LabScene scene_;
  QString empty_;
};

}  // namespace ws::app
