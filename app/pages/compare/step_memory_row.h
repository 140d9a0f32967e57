// The memory rows below the lanes: one scale for all runs, and the peak of the aligned step with its number.
#pragma once
#include "app/pages/compare/stepped_runs.h"

namespace ws::app {

class StepMemoryRow {
 public:
  explicit StepMemoryRow(const SteppedRuns& shown) : shown_(shown) {}
  double height(size_t run) const;  // 0 if the run has no such row
  double mostBytes() const;         // over the aligned steps of all runs
  QString peakText(size_t run) const;  // the same measure for all runs
  void paint(StepCanvas& canvas, const QRectF& row, size_t index) const;
  void paintPeak(StepCanvas& canvas, const QRectF& row, size_t index) const;

 private:
  TimeRange range_of(size_t run) const;  // where the peak is searched, in the run's own time
  bool ofReserved() const;
  const prof::CounterTrack& trackOf(size_t run) const;

  const SteppedRuns& shown_;
};

}  // namespace ws::app
