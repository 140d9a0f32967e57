// The figures that runs are compared by: each has a name, a unit and the noise of its own run. The verdict on two of
// them is decided here and nowhere else.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/compared_run.h"

namespace ws::app {

enum class Better : uint8_t { Lower, Higher, Neither };
enum class Verdict : uint8_t { Better, Worse, WithinNoise, Neutral };

enum class MeasureKind : uint8_t {
  StepTime,
  StepP5,
  StepP95,
  StepP99,
  SampleMean,
  WholeRunMean,
  Throughput,
  TrainingTime,
  TimeToAccuracy,
  Kernels,
  Allocations,
  Busy,
  LaunchDelay,
  HiddenCopies,
  TracingCost,
  DriverCalls,
  PeakMemory,
  FirstLoss,
  TestLoss,
  TestAccuracy,
};

// One figure of one run.
struct MeasureValue {
  MeasureKind kind;
  std::string group, name, unit;
  Interval value;  // NaN: not known
  Better better = Better::Neither;
  int decimals = 1;
};
using Measures = std::vector<MeasureValue>;

// What a comparison is asked, by the choices that differ: precision asks both.
struct Asked {
  bool result = false;  // data, model or training differ: loss and accuracy
  bool time = true;     // execution differs, or nothing that is known
};
Asked asked_of(const std::vector<const ComparedRun*>& runs);

// The same figures in the same order for every run, those that are asked for first, in units that all share. The time to an accuracy is that to the
// highest that all of them reached.
std::vector<Measures> measures_of(const std::vector<const ComparedRun*>& runs);
Measures measures_of(const ComparedRun& run, double reached = 0);  // reached: that accuracy; 0: none
double shared_accuracy(const std::vector<const ComparedRun*>& runs);  // 99 % of the best of the least accurate; 0: none
const MeasureValue& measure(const Measures& all, MeasureKind kind);

struct MeasureDelta {
  double delta = ComparedRun::kUnknown, noise = 0;  // the 95 % interval of the difference is delta ± noise
  double percent = ComparedRun::kUnknown;           // of the baseline; NaN for percentages and for a baseline of 0
  Verdict verdict = Verdict::Neutral;
  bool known() const { return delta == delta; }
};
MeasureDelta delta_of(const MeasureValue& baseline, const MeasureValue& candidate);

}  // namespace ws::app
