// The comparison of two runs: what differs, by how much, whether that is more than noise, and why. The command line,
// the Compare page and reports all show this comparison.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "app/core/comparison/measures.h"
#include "profiling/analysis/waterfall.h"
#include "profiling/base/sequential_test.h"

namespace ws::app {

struct ComparedMeasure {
  MeasureValue a, b;
  MeasureDelta delta;
};

// What one sentence can say about the speed of both runs.
enum class Speed : uint8_t {
  Unknown,
  OtherWork,    // they train different models or data, or are different programs
  OtherBatch,   // throughput is compared
  WithinNoise,
  Differs,      // step times are compared
};

struct Comparison {
  std::string a_name, b_name;
  std::string programs;  // "cnn.py and gpt.py" if both are recordings of different programs
  std::vector<ComparedMeasure> measures;
  Asked asked;
  Speed speed = Speed::Unknown;
  std::string steps_used;                  // of which steps the causes are, by steps_text()
  bool gpu = false;                        // kernels of a GPU are among the work; otherwise it is ops of a CPU
  bool split = false;                      // both have the same trace detail; otherwise no causes and no kernels
  prof::Waterfall by_kind, by_op;          // of the median steps; the parts sum exactly to their difference
  std::vector<prof::KernelDelta> kernels;  // largest difference first
  // The same by op, module (Layer) and line of a recorded program; only what a run names.
  std::map<prof::GroupBy, std::vector<prof::KernelDelta>> grouped;
  prof::StallComparison stalls;            // where kernels wait, if both were sampled
  std::vector<FieldChange> choices;        // only choices that differ
  bool choices_known = false;              // for both runs
  std::vector<std::string> warnings;       // what makes it unfair, and what is left out

  const ComparedMeasure& of(MeasureKind kind) const;  // only after compare()
};
Comparison compare(const ComparedRun& baseline, const ComparedRun& candidate);

// Returns sentences on what makes the comparison unfair, and what is left out.
std::vector<std::string> warnings_of(const ComparedRun& a, const ComparedRun& b, const std::string& name_a = "the baseline",
                                     const std::string& name_b = "the candidate");
// Like delta_of(), without a verdict where the runs do different work: other data have other losses, and a step of another
// batch or of a different program is no faster or slower.
MeasureDelta compared_delta(const ComparedRun& a, const ComparedRun& b, const MeasureValue& of_a, const MeasureValue& of_b);
// True if the difference between both can be split into causes.
bool splits_compare(const ComparedRun& a, const ComparedRun& b);
// A step of the candidate takes longer than a step of the baseline by more than a limit, or shorter, or neither.
// `diff --fail-above` and a pinned baseline ask this.
struct StepVerdict {
  GateVerdict verdict = GateVerdict::CannotTell;
  double limit = 0;
  // Shares of the baseline's step: the change, which lies between the other two with 95 % certainty. NaN: unknown.
  double change = ComparedRun::kUnknown, low = ComparedRun::kUnknown, high = ComparedRun::kUnknown;
};
StepVerdict judge_step(const MeasureValue& baseline, const MeasureValue& candidate, double limit = kUsualLimit);
Speed speed_of(const ComparedRun& a, const ComparedRun& b, const MeasureDelta& step_time);

// One field in which runs differ, with the value of each run; "–" if the choices of a run are unknown.
struct ChoiceRow {
  std::string key;
  std::vector<std::string> values;
};
std::vector<ChoiceRow> differing_choices(const std::vector<const RunSpec*>& runs);

// True if both runs do the same work, so that their step times can be compared.
bool same_task(const RunSpec* a, const RunSpec* b);
// True if both are recordings of different programs, or one is and the other is a training of ours: their figures stand side by side,
// and neither is better.
bool other_program(const ComparedRun& a, const ComparedRun& b);
bool same_work_a_sample(const RunSpec* a, const RunSpec* b);  // True if a sample needs the same work, with any batch

}  // namespace ws::app
