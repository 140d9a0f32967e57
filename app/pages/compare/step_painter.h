// Paints the linked timelines: lanes, ribbons that connect the same phases of neighbours, and the ruler.
#pragma once
#include <QBrush>
#include <QString>
#include <cstdint>
#include <vector>

#include "app/pages/compare/step_memory_row.h"
#include "profiling/analysis/step_lanes.h"
#include "profiling/trace/lod.h"

namespace ws::app {

enum class Tint : uint8_t { Slower, Faster, New };  // against the baseline; New: it has no such block
QBrush tint(Tint tint);

class StepPainter {
 public:
  explicit StepPainter(const SteppedRuns& shown) : shown_(shown), memory_(shown) {}
  void render(QPainter& painter, const QRectF& area) const;  // everything, if the area is high enough
  double contentHeight() const;
  QRectF plotOf(const QRectF& area) const;
  const StepMemoryRow& memory() const { return memory_; }

 private:
  struct Lane : prof::StepLane {
    double height;
  };
  struct Phase {
    QString name;
    double x0, x1;
    double us;
  };
  double ribbonHeight(size_t below) const;  // between a run and the one above it
  std::vector<Lane> lanes(size_t run) const;
  double runHeight(size_t run) const;
  void stretchInto(double height) const;
  void paintRuns(StepCanvas& canvas, double top) const;
  double paintRun(StepCanvas& canvas, double top, size_t index) const;
  QString lengthText(size_t index) const;
  QString roleOf(size_t index) const;
  void paintHead(StepCanvas& canvas, double top, size_t index) const;
  void paintLane(StepCanvas& canvas, const QRectF& row, const Lane& lane, size_t index) const;
  void paintTint(StepCanvas& canvas, const QRectF& box, const prof::LodRect& rect, size_t index) const;
  void paintAfterStep(StepCanvas& canvas, double top, double bottom, size_t index) const;
  std::vector<Phase> phasesOf(const StepCanvas& canvas, size_t index) const;
  void paintRibbons(StepCanvas& canvas, double top, double height, const std::vector<Phase>& above,
                    const std::vector<Phase>& below) const;
  std::vector<prof::TimeNs> ticksOf(const TimeScale& scale) const;
  void paintRuler(StepCanvas& canvas, double top) const;
  void paintEmpty(QPainter& painter, const QRectF& area) const;

  const SteppedRuns& shown_;
  StepMemoryRow memory_;
  mutable double stretch_ = 1;  // lanes are taller if there is space
};

}  // namespace ws::app
