// Finds the steps of a recorded program that marks none, and what one of them takes.
#pragma once
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/analysis/step_pattern.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

struct FoundSteps {
  std::vector<FoundStep> steps;
  bool by_ranges = false;  // the program's own; otherwise by the repeating pattern of kernels
  double us_each = 0, allocator_calls_each = 0;

  const char* from() const { return by_ranges ? "the program's ranges" : "the repeating pattern of kernels"; }
  std::vector<Span> spans(NameId name) const;
};

class StepFinder {
 public:
  // `most_kept`: kernels, and calls, that are kept to look for steps in. Once there are more, the steps that are
  // certain by then are all that is kept of them.
  explicit StepFinder(size_t most_kept = 4'000'000) : most_kept_(most_kept) {}
  // Spans of one row; their names are numbers of `names`, which may be those of another list in the next call.
  void take(TrackKind kind, const std::string& row, std::span<const Span> spans, std::span<const std::string> names);
  void take(const StepAllocations& calls);
  FoundSteps find();  // empty when there are none

 private:
  uint32_t number(const std::string& name);
  void settle();
  void settle_allocations(std::span<const FoundStep> steps, TimeNs until);
  std::vector<SeenKernel>* busiest_row();
  std::vector<FoundStep> repetitions();
  std::vector<FoundStep> ranges_on_gpu(std::span<const FoundStep> ranges);

  std::vector<FoundStep> ranges_;                           // that name themselves steps
  std::vector<FoundStep> untraced_;                         // nothing was recorded meanwhile
  std::map<std::string, std::vector<SeenKernel>> kernels_;  // by stream; runs of graphs have rows of their own
  std::vector<SeenLaunch> launches_;                        // the calls, where those were recorded
  std::vector<TimeNs> allocations_;  // when the driver's allocator was called, where that is known
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<FoundStep> settled_;  // steps whose kernels are no longer kept
  std::string settled_row_;         // theirs
  std::vector<SeenKernel> usual_;
  bool let_go_ = false;   // some kernels are kept no longer
  bool skipped_ = false;  // some of them were in no step
  size_t most_kept_, kept_ = 0;
  uint64_t allocator_calls_ = 0, calls_seen_ = 0, calls_in_steps_ = 0;
};

}  // namespace ws::prof
