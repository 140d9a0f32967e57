// The timelines of the compared runs, one below the other on one time scale: they zoom and pan together, phases are
// linked by ribbons, and what takes longer or shorter than in the first run is tinted.
#pragma once
#include <QBasicTimer>
#include <QPixmap>
#include <QPointer>
#include <QWidget>
#include <memory>
#include <optional>

#include "app/workspace/run.h"
#include "profiling/analysis/step_sample.h"
#include "profiling/analysis/step_lanes.h"
#include "profiling/analysis/memory_curves.h"
#include "app/timeline/time_scale.h"
#include "profiling/trace/lod.h"

namespace ws::app {

enum class StepAlign { Median, Step, Start };

class StepView : public QWidget {
  Q_OBJECT
 public:
  struct Shown {
    QPointer<Run> run;
    prof::StepSample sample;
    std::shared_ptr<const prof::MemoryCurves> memory = nullptr;  // none: not known, or not yet
  };
  explicit StepView(QWidget* parent = nullptr);
  void setRuns(std::vector<Shown> runs);  // the first is what the others are tinted against
  void setAlign(StepAlign align, int64_t step = 0);
  void setTinted(bool on);
  StepAlign align() const { return align_; }
  int64_t alignedStep() const { return step_; }

  // View time: 0 is where the aligned step begins in each run.
  TimeRange range() const { return range_; }
  void setRange(TimeRange range);
  TimeRange runRange(size_t run, TimeRange view) const {
    return {view.begin + runs_at_[run], view.end + runs_at_[run]};
  }
  std::optional<TimeRange> selected() const { return selected_; }
  void fit();
  void zoomBy(double factor);
  void panBy(double share);
  void render(QPainter& painter, const QRectF& area) const;  // for exports: everything, unscrolled
  double contentHeight() const;
  double mostBytes() const { return most_bytes_; }  // what the memory lanes of all runs reach up to
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
  static constexpr double kGutter = 124, kRuler = 22, kHead = 20;
  enum class Drag { None, Press, Select, Pan };
  struct Lane : prof::StepLane {
    double height;
  };
  struct Phase {
    QString name;
    double x0, x1;
    double us;
  };
  struct Canvas {
    QPainter& painter;
    QRectF plot;  // lanes; the ruler stands above
    TimeScale scale;
  };
  void align_runs();
  void stale();
  bool small() const { return runs_.size() > 2; }
  double ribbonHeight(size_t below) const;  // between a run and the one above it
  double memoryHeight(size_t run) const;    // 0: it has no lane
  void findMostBytes();
  void setTight();
  TimeRange memoryRange(size_t run) const;  // of which the peak is told, in the run's own time
  std::vector<Lane> lanes(size_t run) const;
  double runHeight(size_t run) const;
  void stretchInto(double height) const;
  QRectF plotOf(const QRectF& area) const;
  TimeScale scaleOf(const QRectF& plot) const { return {range_, plot.left(), plot.width()}; }
  void paintRuns(Canvas& canvas, double top) const;
  double paintRun(Canvas& canvas, double top, size_t index) const;
  void paintHead(Canvas& canvas, double top, size_t index) const;
  void paintLane(Canvas& canvas, const QRectF& row, const Lane& lane, size_t index) const;
  void paintMemory(Canvas& canvas, const QRectF& row, size_t index) const;
  void paintPeak(Canvas& canvas, const QRectF& row, size_t index) const;
  void paintTint(Canvas& canvas, const QRectF& box, const prof::LodRect& rect, size_t index) const;
  void paintAfterStep(Canvas& canvas, double top, double bottom, size_t index) const;
  std::vector<Phase> phasesOf(const Canvas& canvas, size_t index) const;
  void paintRibbons(Canvas& canvas, double top, double height, const std::vector<Phase>& above,
                    const std::vector<Phase>& below) const;
  std::vector<prof::TimeNs> ticksOf(const TimeScale& scale) const;
  void paintRuler(Canvas& canvas, double top) const;
  void paintSelection(QPainter& painter) const;
  void paintCursor(QPainter& painter) const;
  void paintEmpty(QPainter& painter, const QRectF& area) const;
  void sumSelection();
  prof::TimeNs timeAt(double x) const;

  std::vector<Shown> runs_;
  std::vector<prof::TimeNs> runs_at_;  // anchors: run time = view time + anchor
  std::vector<prof::StepWindowNs> windows_;  // the aligned step of each run
  StepAlign align_ = StepAlign::Median;
  int64_t step_ = 0;
  bool tinted_ = true;
  TimeRange range_{0, 1'000'000};
  bool by_hand_ = false;  // the person chose the range: new data does not change it
  std::optional<double> cursor_;
  std::optional<TimeRange> selected_;
  Drag drag_ = Drag::None;
  QPointF pressed_;
  TimeRange range_at_press_;
  double scroll_ = 0, scroll_at_press_ = 0;
  mutable double stretch_ = 1;  // lanes are taller where there is room
  bool tight_ = false;          // or all is lower where there is little
  double most_bytes_ = 0;
  QPixmap picture_;
  bool stale_ = true;
  QBasicTimer fetch_;
};

}  // namespace ws::app
