// What runs differ in: step time and its causes, the choices, the measures. Computed once when a run changes; no
// widgets.
#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "app/workspace/run_sample.h"
#include "profiling/analysis/waterfall.h"

namespace ws::app {

enum class Verdict { Better, Worse, WithinNoise, Neutral };
enum class Better { Lower, Higher, Neither };

// One figure of one run; NaN: not known.
struct MeasureValue {
  QString group, name, unit;
  double value = 0;
  double half_width = 0;  // of its 95 % interval, from the run's own spread; 0: unknown
  Better better = Better::Neither;
  int decimals = 1;
};
// The same figures in the same order for every run. `reached`: the accuracy whose time is asked for; 0: none.
std::vector<MeasureValue> measures_of(const Run& run, const RunSample& sample, double reached);
// Beside each other all have one unit: KiB becomes MiB where one of them is large.
void share_units(std::vector<std::vector<MeasureValue>>& runs);
double step_half_width(const Run& run, const RunSample& sample);  // of its time per step, µs; 0: not known
double rows_of_a_step(const Run& run);                            // NaN: not known
double peak_bytes(const Run& run);                                // NaN: not known
double driver_calls(const Run& run);                              // to the driver's allocator, a step
double shared_accuracy(const std::vector<const Run*>& runs);      // 99 % of what the least accurate one reached

struct MeasureDelta {
  double delta = 0, noise = 0;  // the 95 % interval of the difference is delta ± noise
  double relative = 0;          // of the baseline; NaN when that is 0
  Verdict verdict = Verdict::Neutral;
};
MeasureDelta delta_of(const MeasureValue& baseline, const MeasureValue& candidate);

struct PairComparison {
  prof::Waterfall waterfall;  // a: baseline, b: candidate; parts sum to the difference exactly
  prof::Waterfall by_op;      // the same, with the kernels' parts by op
  double baseline_us = 0, candidate_us = 0, half_width_us = 0;
  bool beyond_noise = false;
  std::vector<prof::KernelDelta> kernels;  // largest difference first
  std::vector<FieldChange> choices;
  bool choices_known = false;  // of both: another program's are not
  QStringList warnings;        // mismatches, named
  bool traced = false;         // both have spans to split
};
PairComparison compare_runs(const Run& baseline, const RunSample& a, const Run& candidate, const RunSample& b);
PairComparison compare_runs(const Run& baseline, const Run& candidate);

// The fields in which some run differs from the first, with its value in each.
struct ChoiceRow {
  std::string key;
  std::vector<std::string> values;  // by run; "–" of one that has no choices
};
std::vector<ChoiceRow> differing_choices(const std::vector<const Run*>& runs);

QString verdict_text(Verdict verdict);
QString verdict_mark(Verdict verdict);  // "✓ ", "▲ ", "◌ "

}  // namespace ws::app
