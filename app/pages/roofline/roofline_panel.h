// What each op reached, against what the card was seen to reach at best or, before that is measured, its data sheet.
#pragma once
#include <QTimer>
#include <QWidget>

#include "app/widgets/pane.h"
#include "app/workspace/job.h"
#include "app/workspace/selection.h"
#include "profiling/analysis/roofline.h"

class QPushButton;

namespace ws::app {

struct Roof {
  prof::Ceilings ceilings;  // zeros when the card is not known: then there is nothing to draw
  bool measured = false;    // else from the maker's data sheet
  bool recorded = false;    // where the run was, and kept with it
  QString whose{};          // "measured on this machine"
  // Products of each kind of number, tensor cores among them: what another precision could reach.
  std::vector<std::pair<QString, double>> products{};
  double l2_bytes_per_s = 0;         // 0: not known
  double dram_peak_bytes_per_s = 0;  // of the data sheet, which hardware counters refer to
};
Roof roof_of(const QString& device, Precision precision);  // as this machine knows it
Roof roof_of(const Run& run);                              // as the run's file does, if it does

class RooflineView : public QWidget {
  Q_OBJECT
 public:
  explicit RooflineView(Selection* selection, QWidget* parent = nullptr);
  void setPoints(Run* run, std::vector<prof::RooflinePoint> points, const Roof& roof);
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
  void paintOtherCeilings(QPainter& painter) const;
  void paintCounted(QPainter& painter) const;
  void paintNames(QPainter& painter, const QRectF& box) const;
  int pointAt(QPointF at) const;
  QString tipAt(QPointF at) const;

  Selection* selection_;
  QPointer<Run> run_;
  std::vector<prof::RooflinePoint> points_;
  Roof roof_;
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
  void measure();

  QPointer<Run> run_;
  RooflineView* view_;
  QPushButton* measure_;
  QTimer refresh_;
  Job measuring_;  // of the card; the last member, so that it ends first
};

}  // namespace ws::app
