// The figures of one run that others are compared with. Made of a file here, of a run of the window in
// app/workspace/compared_live_run.h. Figures that are not known are NaN.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/run_spec.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/step_time.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

enum class Traced : uint8_t { No, StepsOnly, Kernels };

struct ComparedRun {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string name, device;
  std::optional<RunSpec> spec;  // none: its choices are not known
  bool imported = false;        // another program's
  int64_t steps = 0;            // 0: not known
  Traced traced = Traced::No;
  prof::StepSample sample;      // the newest whole steps
  bool one_step = false;        // a trace without step marks: a part of it counts as one step
  prof::StepTime time;          // of a step
  double whole_run_us = 0;      // the mean over the run, with its first steps and those that were not traced; 0: not known
  double wall_s = kUnknown, peak_bytes = kUnknown;
  double driver_calls = kUnknown;                           // to the driver's allocator, per step
  double launch_delay_us = kUnknown, hidden_copies = kUnknown;  // medians and shares of the newest long row of steps
  Interval tracing_cost;                                    // a share of an untraced step
  double first_loss = kUnknown;
  std::vector<prof::Evaluation> evaluations;
  std::string lost_records;  // records that were dropped, damaged or not matched; empty: none

  const RunSpec* choices() const { return spec ? &*spec : nullptr; }
  double samples_per_s() const;
  double busy_percent() const;  // of the time of a step, by kernels and copies
  bool has_accuracy() const;
};

// Takes the trace: the sample from step `since` on, how closely it was traced, how late its work began. `marks` hold the
// steps: the trace itself, or its GpuSteps.
void take_trace(ComparedRun& run, const prof::Trace& marks, const prof::Trace& trace, double steps_per_epoch,
                int64_t since = 0);
ComparedRun compared_run(const prof::RunData& run);

// The choices of a run that was ours, or that was given ours; those of another program's trace mean nothing here.
std::optional<RunSpec> spec_of(const prof::RunSummary& file);
std::string lost_records(const prof::Losses& losses);  // "3 dropped, 2 damaged"; empty: none

}  // namespace ws::app
