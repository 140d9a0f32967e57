// The figures of one run for a comparison. compared_run() makes them from a file; app/workspace/compared_live_run.h
// makes them from a run of the window. Unknown figures are NaN.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/run_spec.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/stalls.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// Phases: for a program without a GPU. They and kernels tell where the whole step went, steps alone do not.
enum class Traced : uint8_t { No, StepsOnly, Phases, Kernels };

struct ComparedRun {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string name, device;
  std::optional<RunSpec> spec;  // nullopt if its choices are unknown
  bool imported = false;        // from another program
  std::string program;          // of a recorded command: "train.py"; empty if unknown
  std::string python_level;     // of a recorded Python program; empty if unknown
  int64_t steps = 0;            // 0 if unknown
  Traced traced = Traced::No;
  prof::StepSample sample;      // the newest complete steps
  int rank_of_steps = -1;       // the rank of the sample, if its tracks have ranks
  bool several_ranks = false;
  bool one_step = false;        // a trace without step marks: a part of it counts as one step
  prof::StepTime time;          // step time
  double mean_step_us = kUnknown;  // of the sample, or of all compared steps of all ranks; without pauses
  double whole_run_us = 0;      // mean over the whole run, with first steps and untraced steps; 0 if unknown
  double wall_s = kUnknown, peak_bytes = kUnknown;
  double driver_calls = kUnknown;                           // calls to the driver's allocator, per step
  double launch_delay_us = kUnknown, hidden_copies = kUnknown;  // median and share over the newest long row of steps
  // For a run with several ranks, of its median step: the longest wait of a rank for the last one, and the longest transfers
  // that no computation hides. The bus bandwidth is of the collective that takes most time.
  double rank_wait_us = kUnknown, exposed_us = kUnknown, bus_gb_s = kUnknown;
  Interval tracing_cost;                                    // share of an untraced step
  double first_loss = kUnknown;
  std::vector<prof::Evaluation> evaluations;
  prof::RunStalls stalls;    // of an X-ray
  std::string lost_records;  // records that were dropped, damaged or not matched; empty if none

  const RunSpec* choices() const { return spec ? &*spec : nullptr; }
  double samples_per_s() const;
  double busy_percent() const;  // share of the median step with kernels or copies running
  bool has_accuracy() const;
  bool machine_busy() const;  // something else used the machine while it was measured
};

// Takes the sample of the steps, its detail, and the launch delay.
void take_trace(ComparedRun& run, const prof::StepsOfRun& steps);
// The choices of a run of ours show if its host ran ahead.
prof::StepsOfRun steps_of(const prof::RunData& data, const ComparedRun& run);
void take_ranks(ComparedRun& run, const prof::RankReport& report);
ComparedRun compared_run(const prof::RunData& run, const prof::RankReport& ranks);
ComparedRun compared_run(const prof::RunData& run);  // all spans of its ranks are in memory

struct NamedRun {
  std::string name;
  const ComparedRun* run;
};
// The program of a command: "train.py" of "python3 train.py --lr 0.1" and of "torchrun --nproc-per-node 2 train.py".
std::string program_of(const std::vector<std::string>& command);

// "Medians of steps 21–258 of A (rank 0), steps 21–1 019 of B"; of one run "Median of steps 21–258 of rank 0".
std::string steps_text(const std::vector<NamedRun>& runs);

// Returns the choices of a run of ours, or of a run that was given our choices. Returns
// nullopt for traces of other programs.
std::optional<RunSpec> spec_of(const prof::RunSummary& file);
std::string lost_records(const prof::Losses& losses);  // "3 dropped, 2 damaged"; empty if none

}  // namespace ws::app
