// The points of one measure of one run for a chart: raw, smoothed, and from the tests.
#pragma once
#include <QPointer>

#include "app/charts/series.h"
#include "app/workspace/run.h"

namespace ws::app {

enum class Gauge { Loss, Accuracy, AllocatorCalls, AllocatorTime, Throughput, Memory };
enum class XAxis { Step, Epoch, Wall };

// One of several losses of a program.
struct LossLine {
  QString name;
  bool test = false;
  bool first = false;  // its points belong to the CurveData
  MinMaxSeries raw, smooth;
  Ema ema;
  size_t taken = 0;
};

class CurveData {
 public:
  // smoothing 0: off. byte_unit: of the values of Memory, in bytes.
  CurveData(Run* run, Gauge measure, XAxis x, double smoothing, double byte_unit);

  Run* run() const { return run_; }  // null once the run is deleted
  void take();                       // takes what the run got since the last call
  const MinMaxSeries& raw() const { return raw_; }
  double batchesInMean() const { return ema_.window(); }
  const MinMaxSeries& smooth() const { return smooth_; }  // for Memory: the used part of the reserved bytes
  const MinMaxSeries& test() const { return test_; }
  const MinMaxSeries& shown() const;  // the curve that a chart shows for the run
  const std::vector<LossLine>& losses() const { return losses_; }  // empty: one loss has no name
  const MinMaxSeries& shown(const LossLine& line) const;
  double xOf(double step, double wall) const;
  double xOfStep(double step) const;
  double stepOf(double x) const;

 private:
  void takeSteps();
  void takeLosses();
  void takeMeters();
  bool takeDriverCalls();  // false if this measure does not come from the driver's counts

  QPointer<Run> run_;
  Gauge measure_;
  XAxis x_;
  double smoothing_, byte_unit_;
  Ema ema_;
  MinMaxSeries raw_, smooth_, test_;
  std::vector<LossLine> losses_;
  size_t taken_ = 0, taken_test_ = 0;
  int thinned_ = 0;
};

}  // namespace ws::app
