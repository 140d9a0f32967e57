// One step of each run on the same time scale, phases linked by ribbons, one cursor through both.
#pragma once
#include <QPointer>
#include <QWidget>
#include <optional>

#include "app/compare/comparison_model.h"

namespace ws::app {

class StepView : public QWidget {
  Q_OBJECT
 public:
  explicit StepView(QWidget* parent = nullptr);
  void setRuns(Run* baseline, Run* candidate, const PairComparison& comparison);
  void render(QPainter& painter, const QRectF& area) const;
  QSize minimumSizeHint() const override { return {480, 260}; }

 protected:
  void paintEvent(QPaintEvent*) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent*) override;

 private:
  struct Lane {
    QString name;
    const prof::Track* track;
    double height;
  };
  struct Block {
    QString name;
    double x0, x1;
  };  // a phase, in pixels
  std::vector<Lane> lanes(const Run& run) const;
  double paintRun(QPainter& painter, const QRectF& plot, double top, const Run& run, StepWindowNs window, double scale,
                  std::vector<Block>& phases) const;
  void paintLane(QPainter& painter, const QRectF& row, const Lane& lane, const Run& run, StepWindowNs window,
                 double scale, std::vector<Block>* phases) const;
  void paintRibbons(QPainter& painter, double top, double bottom, const std::vector<Block>& above,
                    const std::vector<Block>& below, double scale) const;
  void paintRuler(QPainter& painter, const QRectF& plot, double top, double scale) const;

  QPointer<Run> baseline_, candidate_;
  PairComparison comparison_;
  std::optional<double> cursor_;
};

}  // namespace ws::app
