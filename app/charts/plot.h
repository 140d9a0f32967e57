// A QCustomPlot in the style of the window: theme, axes, a cursor line over the cached picture, zoom with undo.
#pragma once
#include <qcustomplot.h>

#include <optional>
#include <vector>

namespace ws::app {

struct PlotDot {
  double x, y;
  QColor colour;
  bool open = false;
};
struct PlotMark {
  double x;
  QString text;
};  // a change during the run
struct PlotNote {
  double x, y;
  QString text;
  QColor colour;
};  // text above its point

struct PlotValue {
  int slot;
  QString text;
};  // value of a run, on the card beside the cursor

class Plot : public QCustomPlot {
  Q_OBJECT
 public:
  explicit Plot(QWidget* parent = nullptr);
  void setCursor(std::optional<double> x);
  void setOverlay(std::vector<PlotDot> dots, std::vector<PlotMark> marks, std::vector<PlotNote> notes);
  // Shows a card beside the cursor, without a cursor the line above the curves, or nothing if empty.
  void setValues(std::vector<PlotValue> values);
  void setValueLine(bool on);  // space for a line above the curves
  const std::vector<PlotValue>& values() const { return values_; }
  const std::vector<PlotDot>& dots() const { return dots_; }
  void setEmptyText(const QString& text);
  // Shows what each line is, in this corner, or in another one that covers less of the curves.
  void setCaption(const QString& text, Qt::Alignment corner);
  void setXName(const QString& name);  // stands left of the numbers of the axis
  void setLogX(bool on) { setLog(xAxis, on); }
  void setLogY(bool on) { setLog(yAxis, on); }
  QRectF captionBox() const;  // empty if there is no caption
  bool zoomed() const { return zoomed_; }
  bool canUndoZoom() const { return !undo_.empty(); }
  void fit();         // shows all data
  void forgetZoom();  // for new axes: earlier views no longer apply
  void undoZoom();
  void applyTheme();
  QSize minimumSizeHint() const override { return {120, 80}; }

 signals:
  void cursorMoved(double x);
  void pointerLeft();
  void zoomChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  struct View {
    QCPRange x, y;
    bool zoomed;
  };
  void setLog(QCPAxis* axis, bool on);
  // Many wheel turns or repeats of a held key count as one zoom to undo.
  void zoomTo(double from, double to, bool in_small_steps = false);
  void remember(bool in_small_steps);
  void paintCursor(QPainter& painter);
  void paintMarks(QPainter& painter);
  void paintXName(QPainter& painter) const;
  void paintCaption(QPainter& painter);
  void paintValues(QPainter& painter);
  void paintLastValues(QPainter& painter);
  int crossings(const QRectF& box) const;  // how much of the curves, dots and notes lies under the box

  std::optional<double> cursor_;
  std::vector<PlotDot> dots_;
  std::vector<PlotMark> marks_;
  std::vector<PlotNote> notes_;
  std::vector<PlotValue> values_;
  QString empty_, caption_, x_name_;
  Qt::Alignment caption_corner_;
  std::vector<QRectF> noted_;  // where notes are drawn
  std::vector<View> undo_;
  bool zoomed_ = false;
  QElapsedTimer last_step_;  // last wheel turn or repeat of a held key
  std::optional<QPoint> press_;
  std::optional<QPoint> drag_;
};

}  // namespace ws::app
