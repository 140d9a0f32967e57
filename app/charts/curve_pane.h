// A chart that shows how one measure changes over a run, for every ticked run, with the value at the shared cursor.
#pragma once
#include <optional>

#include "app/charts/curve_data.h"
#include "app/text/units.h"
#include "app/widgets/pane.h"

class QCPScatterStyle;
class QMenu;

namespace ws::app {

class Plot;

class CurvePane : public Pane {
  Q_OBJECT
 public:
  CurvePane(std::vector<Gauge> measures, QWidget* parent = nullptr);

  void setRuns(const std::vector<Run*>& runs);
  // A step of the first run. `values`: show the values of many runs beside the cursor, where they cover the chart.
  void setCursorStep(std::optional<double> step, bool values = true);
  void setXAxis(XAxis axis);
  void setMeasure(Gauge measure);
  void setLogY(bool on);
  void setLogX(bool on);
  void setSmoothing(double factor);  // 0: off
  QString lineKey(bool brief = false) const;  // names the lines and marks that are drawn
  Gauge measure() const { return measure_; }
  bool dirty() const { return dirty_; }
  void redraw();  // takes the new points and paints
  Plot* plot() const { return plot_; }
  bool canUndoZoom() const;
  void undoZoom();
  void renderTo(QPainter& painter, const QRectF& area);  // draws a picture for export; call redraw() afterwards
  QByteArray csv() const;                                // the raw points of the curves

 signals:
  void cursorMoved(double step);  // step of the first run
  void pointerLeft();
  void xAxisChosen(ws::app::XAxis axis);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // the legend was resized

 private:
  void buildOptions();
  void fillMenu(QMenu* menu);
  void rebuild();
  void drawCurves();
  void drawTests(const MinMaxSeries& tests, const QCPScatterStyle& marks);
  void scaleAxes();
  void refreshLegend();
  void showValues();
  void refreshOverlay();
  void showNote();
  void showCaption();
  QString meanName() const;
  void nameMeasure();
  bool ofBatches() const;
  QString shownTitle() const;
  std::optional<double> cursorX() const;
  double stepOfX(double x) const;
  bool covers(const MinMaxSeries& upper, const MinMaxSeries& lower) const;
  QString valueText(double value) const;
  QString legendText(const CurveData& curve, double value) const;
  QString legendTip() const;
  std::optional<Point> legendPoint(const CurveData& curve) const;
  QString emptyText() const;
  void fitUnit();
  void exportImage();

  std::vector<Gauge> measures_;
  Gauge measure_;
  XAxis x_ = XAxis::Step;
  bool log_x_ = false, log_y_ = false, dirty_ = true;
  double smoothing_ = 0.98;  // as many batches as in the one loss of a run
  QString key_;  // as the note has it
  ByteUnit unit_ = byte_unit(0);
  std::vector<CurveData> curves_;
  std::optional<double> cursor_step_;
  bool cursor_values_ = true;
  Plot* plot_;
  QPushButton* measure_button_ = nullptr;
};

QString measure_title(Gauge measure);

}  // namespace ws::app
