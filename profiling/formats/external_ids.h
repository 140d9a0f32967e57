// The number by which PyTorch's profiler ties what ran on the GPU to the op that launched it ("External id"): each op
// and each range of the host has its own; a call has that of the innermost op around it, what it launched has the same.
// The nodes of a graph have that of the op around the graph's launch, and none where there is no such op.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "profiling/trace/trace.h"

namespace ws::prof {

class ExternalIds {
 public:
  explicit ExternalIds(const Trace& trace);
  uint64_t next(const Track& track, const Span& span);  // 0: none. Ask for each span once, track after track.

 private:
  struct OpSpan;
  void find_calls(const Trace& trace, std::unordered_map<std::string, std::vector<OpSpan>>& ops);

  uint64_t named_ = 0;                                // ops and ranges so far
  std::unordered_map<uint32_t, uint64_t> by_call_;    // correlation to op; 0: a call outside of any
  std::unordered_map<uint64_t, uint64_t> by_marked_;  // op tag and step to op; 0: it ran several times in the step
};

}  // namespace ws::prof
