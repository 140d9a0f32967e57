// The figures that runs are compared by. Each has a name, a unit and the noise of its own run. Only this file
// decides the verdict on two of them.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/compared_run.h"

namespace ws::app {

enum class Better : uint8_t { Lower, Higher, Neither };
// Equal: both are exact, so no noise could hide a difference.
enum class Verdict : uint8_t { Better, Worse, WithinNoise, Equal, NoiseUnknown, Neutral };

enum class MeasureKind : uint8_t {
  StepTime,
  StepP5,
  StepP95,
  StepP99,
  SampleMean,  // of the same steps as the median
  WholeRunMean,
  Throughput,
  TrainingTime,
  TimeToAccuracy,
  Kernels,
  Allocations,
  DriverAllocations,
  Busy,
  LaunchDelay,
  HiddenCopies,
  TracingCost,
  RankWait,
  ExposedTransfer,
  BusBandwidth,
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
  Interval value;  // NaN if unknown; a half width of NaN: its noise is unknown, of 0: an exact count
  Better better = Better::Neither;
  int decimals = 1;
  std::vector<double> few;  // the samples, if they are few: see noise_of_few()
  const char* no_noise = "too few steps";  // why the noise is unknown, if it is
};
using Measures = std::vector<MeasureValue>;

// What a comparison has to answer, from the choices that differ. A change of precision asks for both.
struct Asked {
  bool result = false;  // data, model or training differ: loss and accuracy
  bool time = true;     // execution differs, or no known choice differs
};
Asked asked_of(const std::vector<const ComparedRun*>& runs);

// Returns the same figures in the same order for every run, the most relevant ones first. All runs share the units.
// "Time to accuracy" uses shared_accuracy().
std::vector<Measures> measures_of(const std::vector<const ComparedRun*>& runs);
// reached: the accuracy for "time to accuracy"; 0: none
Measures measures_of(const ComparedRun& run, double reached = 0);
double shared_accuracy(const std::vector<const ComparedRun*>& runs);  // 99 % of the lowest best one; 0: unknown
const MeasureValue& measure(const Measures& all, MeasureKind kind);
MeasureValue step_time_measure(const prof::StepTime& time);  // its noise is NaN without samples
MeasureValue step_time_measure(const ComparedRun& run);

struct MeasureDelta {
  double delta = ComparedRun::kUnknown, noise = 0;  // the 95 % interval of the difference is delta ± noise (NaN: unknown)
  double percent = ComparedRun::kUnknown;           // relative to the baseline; NaN for percentages or a baseline of 0
  Verdict verdict = Verdict::Neutral;
  const char* no_noise = "";  // why the noise is unknown, if it is
  bool known() const { return delta == delta; }
};
MeasureDelta delta_of(const MeasureValue& baseline, const MeasureValue& candidate);

}  // namespace ws::app
