// The data of the linked timelines: the runs, how they are aligned, and the visible range.
#pragma once
#include <QPointer>
#include <QRectF>
#include <memory>
#include <vector>

#include "app/timeline/time_scale.h"
#include "app/workspace/run.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/steps_of_run.h"

class QPainter;

namespace ws::app {

enum class StepAlign { Median, Step, Start };

struct SteppedRun {
  QPointer<Run> run;
  prof::StepSample sample;
  std::shared_ptr<const prof::MemoryCurves> memory = nullptr;  // null: unknown, or not yet known
};

struct SteppedRuns {
  static constexpr double kGutter = 124, kRuler = 22, kHead = 20;

  std::vector<SteppedRun> runs;            // the first run is the reference for the tint
  std::vector<prof::TimeNs> at;            // anchors: run time = view time + anchor
  std::vector<prof::StepWindowNs> windows;  // the aligned step of each run
  StepAlign align = StepAlign::Median;
  int64_t step = 0;
  bool tinted = true;
  bool comparing = false;  // the figures of these runs are not ready
  TimeRange range{0, 1'000'000};  // view time: 0 is the begin of the aligned step in each run
  double scroll = 0;
  bool tight = false;     // everything is lower if there is little space
  bool few = false;       // and nested ranges and copies leave, so that all runs are seen
  double most_bytes = 0;  // upper end of the memory rows of all runs

  bool small() const { return runs.size() > 2; }
  TimeRange runRange(size_t run, TimeRange view) const { return {view.begin + at[run], view.end + at[run]}; }
  TimeScale scaleOf(const QRectF& plot) const { return {range, plot.left(), plot.width()}; }
};

struct StepCanvas {
  QPainter& painter;
  QRectF plot;  // the lanes; the ruler is above
  TimeScale scale;
};

}  // namespace ws::app
