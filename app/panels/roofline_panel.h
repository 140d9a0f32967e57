// What each op reached, against what this run's device was seen to reach at best and the ceilings that are known of the
// card.
#pragma once
#include <QTimer>
#include <QWidget>

#include "app/charts/pane.h"
#include "app/timeline/selection.h"
#include "profiling/analysis/roofline.h"

namespace ws::app {

// Ceilings by the device's name; zeros when the card is not known: then there is no roof to draw.
prof::Ceilings known_ceilings(const QString& device, Precision precision);

class RooflineView : public QWidget {
  Q_OBJECT
 public:
  explicit RooflineView(Selection* selection, QWidget* parent = nullptr);
  void setPoints(Run* run, std::vector<prof::RooflinePoint> points, prof::Ceilings ceilings);
  const std::vector<prof::RooflinePoint>& points() const { return points_; }
  QPointF placeOf(const prof::RooflinePoint& point) const;
  QSize minimumSizeHint() const override { return {320, 240}; }

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  bool event(QEvent*) override;

 private:
  QRectF area() const;
  double x(double intensity) const;
  double y(double flops) const;
  void paintRoof(QPainter&) const;
  void paintNames(QPainter& painter, const QRectF& box) const;
  int pointAt(QPointF at) const;

  Selection* selection_;
  QPointer<Run> run_;
  std::vector<prof::RooflinePoint> points_;
  prof::Ceilings ceilings_;
  double x_low_ = -2, x_high_ = 3, y_low_ = 6, y_high_ = 14;  // powers of ten
};

class RooflinePanel : public Pane {
  Q_OBJECT
 public:
  explicit RooflinePanel(Selection* selection, QWidget* parent = nullptr);
  void setRun(Run* run);
  RooflineView* view() const { return view_; }
  void refresh();

 protected:
  void showEvent(QShowEvent*) override;

 private:
  QPointer<Run> run_;
  RooflineView* view_;
  QTimer refresh_;
};

}  // namespace ws::app
