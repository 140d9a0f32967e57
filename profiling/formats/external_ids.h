// "External id": the number by which PyTorch's profiler links GPU work to the op that launched it. Each op and each
// host range has its own number. A call has the number of the innermost op around it, and the work that it launched has
// the same. Graph nodes have the number of the op around the graph launch, or none if there is no op.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "profiling/trace/trace.h"

namespace ws::prof {

class ExternalIds {
 public:
  explicit ExternalIds(const Trace& trace);
  uint64_t next(const Track& track, const Span& span);  // 0: none. Call it once per span, in the order of the tracks.

 private:
  struct OpSpan;
  void find_calls(const Trace& trace, std::unordered_map<std::string, std::vector<OpSpan>>& ops);

  uint64_t named_ = 0;                                // ops and ranges numbered so far
  std::unordered_map<uint32_t, uint64_t> by_call_;    // correlation to op; 0: the call is outside of any op
  std::unordered_map<uint64_t, uint64_t> by_marked_;  // op tag and step to op; 0: the op ran several times in the step
};

}  // namespace ws::prof
