// The comparison of two runs: what differs, by how much, whether that is more than noise, and why. The command line, the
// Compare page and reports show this one.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/measures.h"
#include "profiling/analysis/waterfall.h"

namespace ws::app {

struct ComparedMeasure {
  MeasureValue a, b;
  MeasureDelta delta;
};

// What can be said of the speed of both in one sentence.
enum class Speed : uint8_t {
  Unknown,
  OtherWork,    // they train different things
  OtherBatch,   // the throughput is compared
  WithinNoise,
  Differs,      // the time of a step is compared
};

struct Comparison {
  std::string a_name, b_name;
  std::vector<ComparedMeasure> measures;
  Asked asked;
  Speed speed = Speed::Unknown;
  bool split = false;                      // both were traced alike; else there are no causes and no kernels
  prof::Waterfall by_kind, by_op;          // of means per step; the parts sum to their difference exactly
  bool causes_explain = false;             // false: the mean changes against the median, beyond noise
  std::vector<prof::KernelDelta> kernels;  // largest difference first
  std::vector<FieldChange> choices;        // that differ
  bool choices_known = false;              // of both
  std::vector<std::string> warnings;       // what makes it unfair, and what is left out

  const ComparedMeasure& of(MeasureKind kind) const;  // of a comparison that was made
};
Comparison compare(const ComparedRun& baseline, const ComparedRun& candidate);

// What makes the comparison unfair, and what is left out, in sentences.
std::vector<std::string> warnings_of(const ComparedRun& baseline, const ComparedRun& candidate);
// True if the difference of both can be split into causes.
bool splits_compare(const ComparedRun& a, const ComparedRun& b);
Speed speed_of(const ComparedRun& a, const ComparedRun& b, const MeasureDelta& step_time);

// The fields in which some run differs from another, with the value of each run; "–" of a run without choices.
struct ChoiceRow {
  std::string key;
  std::vector<std::string> values;
};
std::vector<ChoiceRow> differing_choices(const std::vector<const RunSpec*>& runs);

}  // namespace ws::app
