// Chooses the tracks of a run that show most about one step, for the Compare tab and reports. No Qt.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/steps_of_run.h"

namespace ws::prof {

struct StepLane {
  const Trace* trace;  // the trace of the run, or of its steps as the GPU ran them
  const Track* track;
  std::string name;  // "phase", "stream 7", "CUDA API"; empty: continues the lane above
};
// Returns at most `most` lanes: phases, then streams, copies and calls if a GPU worked, otherwise the threads that
// worked. With a step: only lanes with activity in it. With an empty step: all lanes that work often.
std::vector<StepLane> step_lanes(const Trace& marks, const Trace& trace, StepWindowNs step,
                                 size_t most);

}  // namespace ws::prof
