// A typical step of a run for a report: blocks of its lanes and the memory in use. Times count from its begin. No Qt.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/steps_of_run.h"

namespace ws::app {

struct StepPicture {
  struct Block {
    prof::TimeNs begin, end;
    prof::Meaning meaning;
    std::string name;  // empty if it merges several
  };
  struct Lane {
    std::string name;
    prof::TrackKind kind;
    std::vector<Block> blocks;
  };
  struct Level {
    prof::TimeNs time;
    double bytes;  // until the next level
  };
  prof::TimeNs length = 0;  // 0 if no step was traced
  int64_t steps = 1;        // number of steps, if one graph runs several
  std::vector<Lane> lanes;
  std::vector<Level> memory;  // allocated bytes; empty if not recorded
};

// Takes the step with the median length of the sample.
StepPicture step_picture(const prof::Trace& marks, const prof::Trace& trace, const prof::StepSample& sample);

}  // namespace ws::app
