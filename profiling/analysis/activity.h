// Measures how busy the GPU was, how late its work began, and how much of the copying overlapped with kernels. With several
// ranks, everything is of the rank whose steps stand for the run.
#pragma once
#include <optional>

#include "profiling/analysis/covered_time.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct Activity {
  int64_t wall = 0;  // excludes untraced stretches
  int64_t untraced = 0;
  int64_t busy = 0;     // at least one kernel or copy was running, and not only collectives that waited for a rank
  int64_t waiting = 0;  // all that ran were collectives that waited for a rank
  int64_t kernels = 0;  // at least one kernel was running
  int64_t copies = 0;   // at least one copy was running
  int64_t overlap = 0;  // a copy and a kernel ran at the same time
  double busy_share() const { return wall > 0 ? static_cast<double>(busy) / static_cast<double>(wall) : 0; }
  double hidden_copies() const { return copies > 0 ? static_cast<double>(overlap) / static_cast<double>(copies) : 0; }
};
// `rank`: another one than the one whose steps stand for the run. -1: all.
Activity activity(const Trace& trace, TimeNs begin, TimeNs end, std::optional<int> rank = {});
CoveredTime untraced_time(const Trace& trace, TimeNs begin, TimeNs end);  // stretches that were left untraced on purpose

// Delay from the start of each call to the start of the first work that it launched (same correlation).
DurationStats launch_delay(const Trace& trace, TimeNs begin, TimeNs end);

}  // namespace ws::prof
