// What two runs differ in: step time, its causes, the choices, the measures. Computed once when a run changes; no widgets.
#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "app/session/run.h"
#include "profiling/analysis/compare.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {

enum class Verdict { Better, Worse, WithinNoise, Neutral };

struct MeasureRow {
  QString group, name, unit;
  double baseline = 0, candidate = 0;  // NaN: not known
  double noise = 0;                    // half width of the 95 % interval of the difference; 0: unknown
  int decimals = 1;
  Verdict verdict = Verdict::Neutral;
  double delta() const { return candidate - baseline; }
};

// Steps of equal length on both sides of the same scale: where one step of a run begins and ends.
struct StepWindowNs { prof::TimeNs begin = 0, end = 0; };

struct PairComparison {
  prof::Waterfall waterfall;   // a: baseline, b: candidate; parts sum to the difference exactly
  double baseline_us = 0, candidate_us = 0, half_width_us = 0;
  bool beyond_noise = false;
  std::vector<MeasureRow> measures;
  std::vector<prof::KernelDelta> kernels;
  std::vector<FieldChange> choices;
  QStringList warnings;        // mismatches, named
  StepWindowNs baseline_step, candidate_step;  // the median step of each
  bool traced = false;         // both have spans to split
};

PairComparison compare_runs(const Run& baseline, const Run& candidate);
// The step whose length is the median of the newest ones.
StepWindowNs median_step(const prof::Trace& trace);
prof::Breakdown newest_breakdown(const prof::Trace& trace);  // steps 0: no whole step is there
QString verdict_text(Verdict verdict);

}  // namespace ws::app
