// Shows the measured speed of each op against the peak rates of the GPU.
// The peak rates are measured; before that, they come from the data sheet.
#pragma once
#include <QTimer>
#include <QWidget>
#include <optional>
#include <vector>

#include "app/widgets/pane.h"
#include "app/workspace/job.h"
#include "app/workspace/focus.h"
#include "profiling/analysis/roofline.h"

class QPushButton;

namespace ws::app {

class Headlined;
class MeaningLegend;

struct Roof {
  prof::Ceilings ceilings;  // zeros if the GPU is unknown: then nothing is drawn
  bool measured = false;    // otherwise from the data sheet
  bool recorded = false;    // measured where the run was recorded, and stored with it
  QString whose{};          // "measured on this machine"
  // Peak rate of products for each number format, with tensor cores: what another precision could reach.
  std::vector<std::pair<QString, double>> products{};
  double l2_bytes_per_s = 0;         // 0 if unknown
  double dram_peak_bytes_per_s = 0;  // from the data sheet; hardware counters are relative to it
};
Roof roof_of(const QString& device, Precision precision);  // with the peak rates that this machine knows
Roof roof_of(const Run& run);                              // with those in the run's file, if it has them

class RooflineView : public QWidget {
  Q_OBJECT
 public:
  static QString above_roof();  // why a point can lie there
  explicit RooflineView(Focus* focus, QWidget* parent = nullptr);
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
  std::vector<QRectF> pointBoxes() const;
  std::optional<QRectF> placeAt(double line, double width, const std::vector<QRectF>& taken) const;
  // These add the places of their words to `taken`.
  void paintRoof(QPainter& painter, std::vector<QRectF>& taken) const;
  void paintOtherCeilings(QPainter& painter, std::vector<QRectF>& taken) const;
  void paintSlopeName(QPainter& painter, double bytes_per_s, const QString& text, std::vector<QRectF>& taken) const;
  std::vector<QRectF> slopeBoxes() const;
  void paintCounted(QPainter& painter) const;
  std::optional<QRectF> placeOfName(QPointF at, double width, const QRectF& box, const std::vector<QRectF>& taken) const;
  void paintNames(QPainter& painter, const QRectF& box, std::vector<QRectF> taken) const;
  int pointAt(QPointF at) const;
  QRectF lineOf(double flops) const;
  QString tipOf(const prof::RooflinePoint& point) const;
  QString tipAt(QPointF at) const;

  Focus* focus_;
  QPointer<Run> run_;
  std::vector<prof::RooflinePoint> points_;
  Roof roof_;
  double x_low_ = -2, x_high_ = 3, y_low_ = 6, y_high_ = 14;  // powers of ten
};

class RooflinePanel : public Pane {
  Q_OBJECT
 public:
  explicit RooflinePanel(Focus* focus, QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return run_; }
  RooflineView* view() const { return view_; }
  void refresh();

 protected:
  void showEvent(QShowEvent*) override;

 private:
  static QString finding(const std::vector<prof::RooflinePoint>& points);
  static QString notes(const Roof& roof);
  void measure();

  QPointer<Run> run_;
  Headlined* body_;
  RooflineView* view_;
  QPushButton* evaluation_;
  bool shows_evaluation_ = false;
  MeaningLegend* colours_;
  QPushButton* measure_;
  QTimer refresh_;
  Job measuring_;  // measures the GPU; last member, so that it ends first
};

}  // namespace ws::app
