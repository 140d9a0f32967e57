// Which tracks of a run tell most about one step: what the Compare tab and reports draw. No Qt.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/step_sample.h"

namespace ws::prof {

struct StepLane {
  const Trace* trace;  // of the run, or of its steps as the GPU ran them
  const Track* track;
  std::string name;  // "phase", "stream 7", "CUDA API"; empty: more of the lane above
};
// At most `most` of them: phases, then where a GPU worked its streams, copies and calls, else the threads that did.
// Of a step only those in which something happened; with an empty one all that work often.
std::vector<StepLane> step_lanes(const Trace& marks, const Trace& trace, StepWindowNs step,
                                 size_t most);

}  // namespace ws::prof
