// A QCustomPlot in the look of the window: theme, axes, one cursor line over the cached picture, zoom with undo.
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
};  // a change in mid-run
struct PlotNote {
  double x, y;
  QString text;
  QColor colour;
};  // stands above its point

struct PlotValue {
  int slot;
  QString text;
};  // of a run, on the card beside the cursor

class Plot : public QCustomPlot {
  Q_OBJECT
 public:
  explicit Plot(QWidget* parent = nullptr);
  void setCursor(std::optional<double> x);
  void setOverlay(std::vector<PlotDot> dots, std::vector<PlotMark> marks, std::vector<PlotNote> notes);
  // A card beside the cursor; empty: none.
  void setValues(std::vector<PlotValue> values);
  const std::vector<PlotValue>& values() const { return values_; }
  void setEmptyText(const QString& text);
  // Which line is what, in this corner, or in the one where the curves leave most room.
  void setCaption(const QString& text, Qt::Alignment corner);
  void setLogX(bool on) { setLog(xAxis, on); }
  void setLogY(bool on) { setLog(yAxis, on); }
  QRectF captionBox() const;  // empty: there is none
  bool zoomed() const { return zoomed_; }
  bool canUndoZoom() const { return !undo_.empty(); }
  void fit();         // back to all data
  void forgetZoom();  // other axes: the views of before mean nothing
  void undoZoom();
  void applyTheme();
  QSize minimumSizeHint() const override { return {120, 80}; }

 signals:
  void cursorMoved(double x);
  void zoomChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
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
  // A wheel turn or a held key is one zoom to undo, not fifty.
  void zoomTo(double from, double to, bool in_small_steps = false);
  void remember(bool in_small_steps);
  void paintCursor(QPainter& painter);
  void paintMarks(QPainter& painter);
  void paintCaption(QPainter& painter);
  void paintValues(QPainter& painter);
  int crossings(const QRectF& box) const;  // how much of the curves, dots and notes lies under it

  std::optional<double> cursor_;
  std::vector<PlotDot> dots_;
  std::vector<PlotMark> marks_;
  std::vector<PlotNote> notes_;
  std::vector<PlotValue> values_;
  QString empty_, caption_;
  Qt::Alignment caption_corner_;
  std::vector<QRectF> noted_;  // where notes stand
  std::vector<View> undo_;
  bool zoomed_ = false;
  QElapsedTimer last_step_;  // of a wheel turn or a held key
  std::optional<QPoint> press_;
  std::optional<QPoint> drag_;
};

}  // namespace ws::app
