// Draws one measure of an experiment as bars (small multiples for two axes), as a heat map, against
// size, or as parallel coordinates.
#pragma once
#include <QWidget>

#include "app/pages/experiments/experiments_model.h"

namespace ws::app {

enum class ExperimentView { Bars, HeatMap, Lines, Parallel };

class ExperimentChart : public QWidget {
  Q_OBJECT
 public:
  explicit ExperimentChart(QWidget* parent = nullptr);
  void setResult(ExperimentResult result);
  void setOutcome(Outcome outcome);
  Outcome outcome() const { return outcome_; }
  void setView(ExperimentView view);
  bool allows(ExperimentView view) const;
  bool hasNumbers() const;  // a choice was trained  // a heat map needs two axes, lines need an axis of numbers
  ExperimentView view() const { return view_; }
  bool logarithmic() const { return barScale().log; }
  const OutcomeGrid& grid() const { return grid_; }
  void render(QPainter& painter, const QRectF& area) const;  // for exports
  QSize minimumSizeHint() const override { return {320, 160}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  struct Span {
    double least = 0, most = 0;
  };
  // Maps a value to the width of a bar: 0 is the left end, 1 the right end.
  struct BarScale {
    double from = 0, to = 1;
    bool log = false;
    double share(double value) const;
  };
  const TrialResult* trialAt(int group, int item) const;
  std::optional<Measured> at(int group, int item) const;
  Span span() const;  // over all medians
  QString valueText(double value) const;
  BarScale barScale() const;
  void renderBars(QPainter& painter, const QRectF& area) const;
  void paintBars(QPainter& painter, const QRectF& area, int group, const BarScale& scale) const;
  void paintDecades(QPainter& painter, const QRectF& space, const BarScale& scale) const;
  void paintBar(QPainter& painter, const QRectF& row, double left, int group, int item, const BarScale& scale) const;
  void renderMap(QPainter& painter, const QRectF& area) const;
  void paintCell(QPainter& painter, const QRectF& box, int group, int item, const Span& span) const;
  void paintScale(QPainter& painter, const QRectF& box, const Span& span) const;
  void renderLines(QPainter& painter, const QRectF& area) const;
  void paintLineGrid(QPainter& painter, const QRectF& plot, const Span& decades) const;

  ExperimentResult result_;
  OutcomeGrid grid_;
  Outcome outcome_ = Outcome::StepTime;
  ExperimentView view_ = ExperimentView::Bars;
};

}  // namespace ws::app
