// Explains the difference between the median steps of baseline and candidate: one bar per cause, and the
// bars sum exactly to the difference. Bars by kind are side by side if their names fit. Otherwise, and by
// op, they are one below the other.
#pragma once
#include <QWidget>

#include "app/core/comparison/comparison.h"

namespace ws::app {

class WaterfallView : public QWidget {
  Q_OBJECT
 public:
  // Times are in the unit.
  struct Bar {
    QString name;
    double from, to;
    prof::PartId part;
    bool end = false;
    int slot = -1;
    double in_a = 0, in_b = 0;  // time of the cause in both runs
    bool rest = false;          // causes that are too small for a bar, and what rounding leaves
    QString small = {};         // these causes with their changes
  };
  explicit WaterfallView(QWidget* parent = nullptr);
  // Slots of −1: there are no two runs to compare.
  void setComparison(const Comparison& comparison, int baseline_slot, int candidate_slot);
  void setComparing(bool on) { comparing_ = on; update(); }  // the figures of the runs are not ready
  void setByOp(bool by_op);
  bool byOp() const { return by_op_; }
  prof::Waterfall shown(double height) const;  // by op: as many ops as fit, and the rest as one
  std::vector<Bar> bars(const prof::Waterfall& w) const;  // their rounded numbers sum to the rounded ends
  void render(QPainter& painter, const QRectF& area) const;
  QString explained(const QPointF& at) const;  // describes the bar there; empty if there is none
  QSize minimumSizeHint() const override { return {250, 180}; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool event(QEvent* event) override;

 private:
  // One unit for all bars: µs, ms for long steps, or s.
  struct Unit {
    const char* name;
    double ps;
  };
  // Geometry of the bars: each in a column, or in a row.
  struct Places {
    QRectF plot;
    double pitch;
  };
  Unit unit() const;
  QString axisCaption() const;
  QString whyGrey() const;  // empty if the causes have their colours
  bool withinNoise() const;
  bool inRows(const QRectF& area, const std::vector<Bar>& all) const;
  Places places(const QRectF& area, const std::vector<Bar>& all) const;
  bool paintsNothing(QPainter& painter, const QRectF& area) const;
  void paintColumns(QPainter& painter, const QRectF& area, const std::vector<Bar>& all) const;
  void paintRows(QPainter& painter, const QRectF& area, const std::vector<Bar>& all) const;
  void paintNames(QPainter& painter, const std::vector<Bar>& all, const Places& places) const;
  void paintRow(QPainter& painter, const QRectF& row, const QRectF& plot, const Bar& bar, double scale) const;
  void paintBlock(QPainter& painter, const QRectF& block, const Bar& bar) const;
  void paintBar(QPainter& painter, const Bar& bar, const QRectF& box, double zero, double scale) const;

  Comparison comparison_;
  int baseline_slot_ = -1, candidate_slot_ = -1;
  bool comparing_ = false;
  bool by_op_ = false;
};

}  // namespace ws::app
