// What makes a comparison of two runs unfair, in sentences. No Qt: the window, reports and the command line say the
// same.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/run_spec.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {

enum class Traced : uint8_t { No, StepsOnly, Kernels };

struct ComparedRun {
  const RunSpec* spec = nullptr;  // nullptr: its choices are not known
  std::string device;
  int64_t steps = 0;  // 0: not known
  Traced traced = Traced::No;
  bool imported = false;  // another program's
};

Traced traced_as(bool any_spans, bool any_work);
// The choices of a run that was ours, or that was given ours; those of another program's trace mean nothing here.
std::optional<RunSpec> spec_of(const prof::RunSummary& file);
std::vector<std::string> mismatches(const ComparedRun& a, const ComparedRun& b);
// Whether both do the same work, so that the time of a step may be laid beside the other's.
bool same_task(const RunSpec* a, const RunSpec* b);
bool same_work_a_sample(const RunSpec* a, const RunSpec* b);  // whatever the batch

}  // namespace ws::app
