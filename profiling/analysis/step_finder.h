// Finds the steps of a recorded program that marks none, and the time and allocator calls per step.
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
  std::vector<FoundStep> untraced;  // stretches between them of which nothing is known
  bool by_ranges = false;  // true: from the program's ranges; false: from the repeating pattern of kernels
  bool kernels = false;    // false: of the host alone
  double us_each = 0, allocator_calls_each = 0;

  const char* from() const { return by_ranges ? "the program's ranges" : "the repeating pattern of kernels"; }
  std::vector<Span> spans(NameId name, size_t first = 0) const;  // of all steps from `first` on
};

class StepFinder {
 public:
  // `most_kept`: the limit of kernels and calls kept for the search. Beyond it, the finder keeps only the steps that
  // are already certain.
  explicit StepFinder(size_t most_kept = 4'000'000) : most_kept_(most_kept) {}
  // Takes spans of one row. Their names are indices into `names`, which may be a different list in the next call.
  void take(TrackKind kind, const std::string& row, std::span<const Span> spans, std::span<const std::string> names);
  void take(const StepAllocations& calls);
  FoundSteps find();  // empty if there are no steps
  // Steps of a program without kernels while it runs: those that ended since the last call. The newest one waits for its
  // successor.
  const FoundSteps& so_far();

 private:
  uint32_t number(const std::string& name);
  void settle();
  void settle_allocations(std::span<const FoundStep> steps, TimeNs until);
  std::vector<SeenKernel>* busiest_row();
  std::vector<FoundStep> repetitions();
  std::vector<FoundStep> ranges_on_gpu(std::span<const FoundStep> ranges);

  FoundSteps so_far_;
  size_t looked_ = 0;                                       // ranges before this one are in so_far_, or inside of them
  std::vector<FoundStep> ranges_;                           // ranges whose names say that they are steps
  std::vector<FoundStep> untraced_;                         // nothing was recorded in them
  std::map<std::string, std::vector<SeenKernel>> kernels_;  // by stream; graph runs have their own rows
  std::vector<SeenLaunch> launches_;                        // launching calls, if they were recorded
  std::vector<TimeNs> allocations_;                         // times of driver allocator calls, if known
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<FoundStep> settled_;  // steps whose kernels are no longer kept
  std::string settled_row_;         // row of the settled steps
  std::vector<SeenKernel> usual_;
  bool let_go_ = false;   // some kernels were dropped
  bool skipped_ = false;  // some dropped kernels were in no step
  size_t most_kept_, kept_ = 0;
  uint64_t allocator_calls_ = 0, calls_seen_ = 0, calls_in_steps_ = 0;
};

// Finds the steps of each rank in a process. Work that belongs to no rank counts only where none belongs to one.
class StepFinders {
 public:
  void take(int rank, TrackKind kind, const std::string& row, std::span<const Span> spans, std::span<const std::string> names);
  void take(const StepAllocations& calls);
  std::map<int, FoundSteps> find();  // by rank, -1: of the process; without those that have no steps
  template <class Use>
  void each_so_far(Use use) {  // StepFinder::so_far() with its rank
    for (auto& [rank, finder] : ranks_) use(rank, finder.so_far());
    if (ranks_.empty()) use(-1, process_.so_far());
  }

 private:
  StepFinder& of(int rank);
  StepFinder process_;
  std::map<int, StepFinder> ranks_;
  StepAllocations calls_{};  // of the process so far
};

}  // namespace ws::prof
