// Time, or throughput, against size for every way of running, both axes logarithmic, painted by hand.
#pragma once
#include <QIcon>
#include <QWidget>
#include <optional>
#include <vector>

#include "engine/lab/lab.h"

namespace ws::app {

enum class LabAxis { Time, Flops, Bytes };
enum class LabClock { Host, Events };

// One result in the chart: the sweep itself, or one laid over it.
struct LabShown {
  lab::LabResult result;
  QString name;  // of an overlay: "PyTorch 2.11", "earlier 14:41"
  QString path;  // its run file; empty: none
};

// What one curve looks like; a pitfall is dashed and takes no part in comparisons.
struct LabCurve {
  lab::Way way;
  QString label, end_note;  // why it ends before the last size
  bool pitfall = false;
  size_t shown = 0;                               // 0: the sweep itself, then the overlays
  std::vector<QPointF> points;                    // size, value in the axis' unit
  std::vector<std::pair<double, double>> spread;  // 5th and 95th percentile of the clock shown; empty: not known
  bool earlier() const { return shown > 0; }
};

struct LabPick {
  size_t shown = 0;
  lab::Way way{};
  int64_t size = 0;
  bool operator==(const LabPick&) const = default;
};

class LabChart : public QWidget {
  Q_OBJECT
 public:
  explicit LabChart(LabAxis axis, QWidget* parent = nullptr);
  void setShown(const std::vector<LabShown>& shown);  // the first is the sweep itself
  void setAxis(LabAxis axis);
  // Events: of points that have such a time. The CPU's have none, and those of a pitfall would hide what it is.
  void setClock(LabClock clock);
  void setCompact(bool compact) { compact_ = compact; }  // no labels at the line ends, no crossovers
  void setCursorSize(std::optional<double> size);
  void setEmptyText(const QString& text) { empty_ = text; }
  LabAxis axis() const { return axis_; }
  std::optional<int64_t> cursorPoint() const;  // the measured size nearest to the cursor
  const std::vector<LabCurve>& curves() const { return curves_; }
  QPointF placeOf(const LabPick& pick) const;                // in the widget; where a click picks it
  void render(QPainter& painter, const QRectF& area) const;  // for exports
  QSize minimumSizeHint() const override { return {220, 120}; }

 signals:
  void cursorMoved(double size);
  void picked(const ws::app::LabPick& pick);  // clicked, or Enter on the ringed point

 protected:
  void paintEvent(QPaintEvent*) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
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
  std::vector<std::pair<double, QString>> ceilings() const;
  QString sizeTitle() const;
  void paintCurve(QPainter& painter, const Frame& frame, const LabCurve& curve) const;
  void paintPitfall(QPainter& painter, const Frame& frame, const LabCurve& curve) const;
  void paintEndLabels(QPainter& painter, const Frame& frame) const;
  void paintCeilings(QPainter& painter, const Frame& frame) const;
  void paintCrossovers(QPainter& painter, const Frame& frame) const;
  QRectF besidePlace(const Frame& frame, const QPointF& at, const QSizeF& size, const std::vector<QRectF>& taken) const;
  bool crosses(const Frame& frame, const LabCurve& curve, const QRectF& card) const;
  void paintCursor(QPainter& painter, const Frame& frame) const;
  QRectF cardPlace(const Frame& frame, double height) const;
  void paintCard(QPainter& painter, const Frame& frame, double size) const;
  void paintCardRow(QPainter& painter, const QRectF& card, double y, const LabCurve& curve, double value,
                    double reference) const;
  void paintRing(QPainter& painter, const Frame& frame) const;
  void addCurves(const LabShown& shown, size_t index);
  bool byEvents(const lab::LabPoint& point) const;
  double valueOf(const lab::LabPoint& point, double seconds) const;
  QString valueText(double value) const;
  std::optional<LabPick> pointAt(const QPointF& place) const;
  void stepRing(int by);
  void rebuild();

  LabAxis axis_;
  LabClock clock_ = LabClock::Host;
  bool compact_ = false;
  std::vector<LabShown> shown_;
  std::vector<LabCurve> curves_;
  std::vector<lab::Crossover> crossovers_;
  lab::Ceilings ceilings_;
  std::optional<double> cursor_;
  std::optional<LabPick> ring_;
  QString empty_;
};

QColor lab_colour(lab::Way way);
QPen lab_pen(lab::Way way, double width);  // ways of one colour differ in their pattern
QString lab_size_text(double size);
QString lab_label(lab::Way way);
QString lab_short_label(lab::Way way);  // only the CPU's ways say where they run
QIcon lab_way_icon(lab::Way way);       // its line

}  // namespace ws::app
