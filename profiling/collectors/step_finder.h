// Finds the steps of a recorded program that marks none, and what one of them takes.
#pragma once
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/collectors/step_pattern.h"
#include "profiling/collectors/trace_batch.h"

namespace ws::prof {

struct FoundSteps {
  std::vector<FoundStep> steps;
  bool by_ranges = false;  // the program's own; otherwise by the repeating pattern of kernels
  double us_each = 0, allocator_calls_each = 0;

  const char* from() const { return by_ranges ? "NVTX ranges" : "the repeating pattern of kernels"; }
  std::vector<Span> spans(NameId name) const;
};

class StepFinder {
 public:
  // Spans of one row; their names are numbers of `names`, which may be those of another list in the next call.
  void take(TrackKind kind, const std::string& row, std::span<const Span> spans, std::span<const std::string> names);
  void take(const StepAllocations& calls);
  FoundSteps find();  // empty when there are none

 private:
  uint32_t number(const std::string& name);
  std::vector<FoundStep> repetitions();
  size_t allocations_within(const std::vector<FoundStep>& steps) const;

  std::vector<FoundStep> ranges_;                           // that name themselves steps
  std::vector<FoundStep> untraced_;                         // nothing was recorded meanwhile
  std::map<std::string, std::vector<SeenKernel>> kernels_;  // by stream
  std::vector<TimeNs> allocations_;                         // when the driver's allocator was called, while it is known
  std::unordered_map<std::string, uint32_t> names_;
  size_t kept_ = 0;
  uint64_t allocator_calls_ = 0;
};

}  // namespace ws::prof
