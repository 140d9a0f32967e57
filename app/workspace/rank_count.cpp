#include "app/workspace/rank_count.h"

#include <algorithm>
#include <set>

#include "app/workspace/run.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

int rank_count(const Run& run) {
  std::set<int> ranks;
  for (const prof::Track& track : run.trace.tracks())
    if (track.rank >= 0) ranks.insert(track.rank);
  if (!ranks.empty()) return static_cast<int>(ranks.size());
  return run.hasChoices() ? std::max(1, static_cast<int>(run.spec.exec.gpus)) : 1;
}

int memory_rank(const prof::Trace& trace) {
  int lowest = -1;
  for (const prof::Track& track : trace.tracks())
    if (track.rank >= 0 && track.spans > 0) lowest = lowest < 0 ? track.rank : std::min(lowest, track.rank);
  return lowest;
}

prof::TimeNs clock_error(const Run& run) {
  return run.reader ? static_cast<prof::TimeNs>(prof::clock_error_of(run.reader->summary()) * 1e3) : 0;
}

}  // namespace ws::app
