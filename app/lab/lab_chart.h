// Time, or throughput, against size for every way of running, both axes logarithmic, painted by hand.
#pragma once
#include <QWidget>
#include <map>
#include <optional>

#include "engine/lab/lab.h"

namespace ws::app {

enum class LabAxis { Time, Flops, Bytes };

// What one curve looks like; a pitfall is dashed and takes no part in comparisons.
struct LabCurve {
  lab::Way way;
  QColor colour;
  QString label;
  bool pitfall = false, earlier = false;          // earlier: of an overlaid result
  std::vector<QPointF> points;                    // size, value in the axis' unit
  std::vector<std::pair<double, double>> spread;  // 5th and 95th percentile, same order; empty: none
};

class LabChart : public QWidget {
  Q_OBJECT
 public:
  explicit LabChart(LabAxis axis, QWidget* parent = nullptr);
  void setResult(const lab::LabResult& result, const std::vector<lab::LabResult>& overlays);
  void setCompact(bool compact) { compact_ = compact; }  // no labels at the line ends, no crossovers
  void setCursorSize(std::optional<double> size);
  void setEmptyText(const QString& text) { empty_ = text; }
  std::optional<double> cursorSize() const { return cursor_; }
  const std::vector<LabCurve>& curves() const { return curves_; }
  void render(QPainter& painter, const QRectF& area) const;  // for exports
  QSize minimumSizeHint() const override { return {220, 120}; }

 signals:
  void cursorMoved(double size);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Frame {
    QRectF plot;
    double x0 = 0, x1 = 1, y0 = 0, y1 = 1;  // decades
    QPointF at(const QPointF& p) const;
    double sizeAt(double x) const;
  };
  Frame frame(const QRectF& area) const;
  void paintGrid(QPainter& painter, const Frame& frame) const;
  void paintCurve(QPainter& painter, const Frame& frame, const LabCurve& curve) const;
  void paintEndLabels(QPainter& painter, const Frame& frame) const;
  void paintCeilings(QPainter& painter, const Frame& frame) const;
  void paintCrossovers(QPainter& painter, const Frame& frame) const;
  void paintCursor(QPainter& painter, const Frame& frame) const;
  void paintCard(QPainter& painter, const Frame& frame, double size) const;
  void addCurves(const lab::LabResult& result, bool earlier);
  double valueOf(const lab::LabPoint& point, double seconds) const;
  QString valueText(double value) const;

  LabAxis axis_;
  bool compact_ = false;
  std::vector<LabCurve> curves_;
  std::vector<lab::Crossover> crossovers_;
  lab::Ceilings ceilings_;
  std::optional<double> cursor_;
  QString empty_;
};

QColor lab_colour(lab::Way way);

}  // namespace ws::app
