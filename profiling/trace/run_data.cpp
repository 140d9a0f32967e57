#include "profiling/trace/run_data.h"

namespace ws::prof {

double steps_per_epoch(const RunSummary& summary, const std::vector<Evaluation>& evaluations) {
  if (summary.steps_per_epoch > 0) return summary.steps_per_epoch;
  for (auto e = evaluations.rbegin(); e != evaluations.rend(); ++e)
    if (e->epoch > 0) return static_cast<double>(e->step) / e->epoch;
  return 0;
}

}  // namespace ws::prof
