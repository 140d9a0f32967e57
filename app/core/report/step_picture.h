// A typical step of a run as a report draws it: blocks of its lanes and the memory in use, counted from its begin. No
// Qt.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/step_sample.h"

namespace ws::app {

struct StepPicture {
  struct Block {
    prof::TimeNs begin, end;
    prof::Meaning meaning;
    std::string name;  // empty: several at once
  };
  struct Lane {
    std::string name;
    prof::TrackKind kind;
    std::vector<Block> blocks;
  };
  struct Level {
    prof::TimeNs time;
    double bytes;  // until the next
  };
  prof::TimeNs length = 0;  // 0: no step was traced
  int64_t steps = 1;        // so many, of one graph
  std::vector<Lane> lanes;
  std::vector<Level> memory;  // handed out; empty: not recorded
};

// The step whose length is the median of the sample.
StepPicture step_picture(const prof::Trace& marks, const prof::Trace& trace, const prof::StepSample& sample);

}  // namespace ws::app
