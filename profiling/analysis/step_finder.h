// The steps of a recorded program: those that it marked, otherwise those that are found; and the time and allocator calls per
// step.
#pragma once
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/analysis/range_steps.h"
#include "profiling/analysis/step_pattern.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

struct FoundSteps {
  std::vector<FoundStep> steps;
  std::vector<FoundStep> untraced;  // stretches between them of which nothing is known
  bool marked = false;     // the program marked them: they are in the trace already
  bool by_ranges = false;  // from the program's ranges; otherwise from the repeating pattern of kernels
  bool kernels = false;    // false: of the host alone
  size_t stayed = 0;       // the first steps are the same as so_far() returned before
  double us_each = 0, allocator_calls_each = 0;

  const char* from() const { return marked ? "the program's marks" : by_ranges ? "the program's ranges" : "the repeating pattern of kernels"; }
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
  // The steps that are complete while the program runs, as find() would find them now. What comes later may change
  // them: see FoundSteps::stayed. `now`: the newest time.
  const FoundSteps& so_far(TimeNs now);

 private:
  uint32_t number(const std::string& name);
  void update_ranges(TimeNs now, bool over);
  void count_kept();
  void settle();
  void settle_allocations(std::span<const FoundStep> steps, TimeNs until);
  std::vector<SeenKernel>* busiest_row();
  std::vector<FoundStep> repetitions();
  std::vector<FoundStep> repetitions_after(const std::vector<FoundStep>& marked);
  void look_for_repetitions();
  void look_again(const std::vector<SeenKernel>& row);
  void sort_searched(std::vector<SeenKernel>& row);
  std::vector<FoundStep> ranges_on_gpu();
  TimeNs untraced_between(std::span<const FoundStep> steps) const;

  FoundSteps so_far_;
  std::vector<FoundStep> marked_;    // by the program
  RangeSteps ranges_;                // ranges whose names say that they are steps
  std::vector<FoundStep> untraced_;  // nothing was recorded in them
  RangeSteps::Kernels kernels_;      // by stream, in no step yet; graph runs have their own rows
  std::vector<TimeNs> allocations_;                         // times of driver allocator calls, if known
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<FoundStep> settled_;  // steps whose kernels are no longer kept
  std::string settled_row_;         // row of the settled steps
  std::vector<SeenKernel> usual_;
  // Repetitions of a program that runs: found anew now and then, because more kernels tell better what a step is.
  struct Search {
    std::string row;
    size_t kernels = 0;  // of the row when it was found
    size_t sorted = 0;   // kernels of the row that are in order
    size_t used = 0;     // kernels that are in steps, or before one
    size_t tried = 0;    // kernels after these, in which there was no step
    std::vector<SeenKernel> usual;
  };
  Search search_;
  bool spans_dropped_ = false;   // some kernels were dropped
  bool skipped_ = false;  // some dropped kernels were in no step
  bool any_kernel_ = false;
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
  void each_so_far(TimeNs now, Use use) {  // StepFinder::so_far() with its rank
    for (auto& [rank, finder] : ranks_) use(rank, finder.so_far(now));
    const FoundSteps& of_process = process_.so_far(now);
    use(-1, ranks_.empty() ? of_process : FoundSteps{});
  }

 private:
  StepFinder& of(int rank);
  StepFinder process_;
  std::map<int, StepFinder> ranks_;
  StepAllocations calls_{};  // of the process so far
};

}  // namespace ws::prof
