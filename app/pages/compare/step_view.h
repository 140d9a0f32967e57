// The timelines of the compared runs, one below the other on one time scale. They zoom and pan together. Ribbons link
// their phases. Work that takes longer or shorter than in the first run is tinted.
#pragma once
#include <QBasicTimer>
#include <QPixmap>
#include <QWidget>
#include <optional>

#include "app/pages/compare/step_painter.h"

namespace ws::app {

class StepView : public QWidget {
  Q_OBJECT
 public:
  using Shown = SteppedRun;
  explicit StepView(QWidget* parent = nullptr);
  void setRuns(std::vector<Shown> runs);  // the first run is the reference for the tint
  void setAlign(StepAlign align, int64_t step = 0);
  void setTinted(bool on);
  void setComparing(bool on) { shown_.comparing = on; update(); }
  StepAlign align() const { return shown_.align; }
  int64_t alignedStep() const { return shown_.step; }

  // View time: 0 is the begin of the aligned step in each run.
  TimeRange range() const { return shown_.range; }
  void setRange(TimeRange range);
  TimeRange runRange(size_t run, TimeRange view) const { return shown_.runRange(run, view); }
  std::optional<TimeRange> selected() const { return selected_; }
  void fit();
  void zoomBy(double factor);
  void panBy(double share);
  // for exports: everything, without scrolling
  void render(QPainter& painter, const QRectF& area) const { painter_.render(painter, area); }
  double contentHeight() const { return painter_.contentHeight(); }
  double mostBytes() const { return shown_.most_bytes; }  // upper end of the memory lanes of all runs
  QSize minimumSizeHint() const override { return {480, 220}; }

 signals:
  void rangeChanged();
  void said(const QString& sentence);

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void changeEvent(QEvent*) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent*) override;
  void timerEvent(QTimerEvent* event) override;

 private:
  enum class Drag { None, Press, Select, Pan };
  void align_runs();
  void stale();
  void setTight();
  void paintSelection(QPainter& painter) const;
  void paintCursor(QPainter& painter) const;
  void sumSelection();
  prof::TimeNs timeAt(double x) const;

  SteppedRuns shown_;
  StepPainter painter_{shown_};
  bool by_hand_ = false;  // the user chose the range: new data does not change it
  std::optional<double> cursor_;
  std::optional<TimeRange> selected_;
  Drag drag_ = Drag::None;
  QPointF pressed_;
  TimeRange range_at_press_;
  double scroll_at_press_ = 0;
  QPixmap picture_;
  bool stale_ = true;
  QBasicTimer fetch_;
};

}  // namespace ws::app
