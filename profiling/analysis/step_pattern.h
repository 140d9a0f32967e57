// Finds the steps of a training loop that marks none: in the names of its ranges, or in the pattern its kernels repeat.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct SeenKernel {
  TimeNs start, end;
  uint32_t name;
  uint32_t call = 0;  // the number of the one that launched it
};
struct SeenLaunch {
  uint32_t call;
  TimeNs start;
};

// The number of kernels after which the sequence repeats; 0 when it does not.
size_t find_period(std::span<const uint32_t> names);

struct FoundStep {
  TimeNs start, end;
};
// Steps of a stream's kernels, in order of time. A step begins after the longest usual gap and lasts until the next
// begins. None reaches into `untraced`, in order of time too: what happened there is not known.
std::vector<FoundStep> find_steps(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced = {});

// The same for kernels of which more are to come. `usual`: a step as most are, kept from one call to the next; it is
// looked for when it is empty or when nothing is like it any more.
struct StepsSoFar {
  std::vector<FoundStep> steps;
  size_t used = 0;  // as many of the kernels are behind; the next call gets the rest, and more
};
StepsSoFar find_steps_so_far(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced,
                             std::vector<SeenKernel>& usual);
// The last of them.
std::vector<FoundStep> find_last_steps(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced,
                                       std::vector<SeenKernel>& usual);

// Those of ranges that name themselves steps: of ranges inside each other the outer one. None where there are fewer
// than two.
std::vector<FoundStep> steps_of_ranges(std::vector<FoundStep> ranges);
// When the GPU ran the steps that such ranges are. Where the host runs ahead, its ranges end before their kernels begin
// and say nothing of the GPU's time. Empty where that is not known, and where the host waits for its kernels. By the
// calls, in order of their numbers, that launched the kernels of one stream: from whatever thread, while a range was
// open.
std::vector<FoundStep> steps_on_gpu(std::span<const FoundStep> ranges, std::span<const SeenKernel> kernels,
                                    std::span<const SeenLaunch> launches);
// The same without calls: known only where each range launched the same kernels, and none were launched after the last.
std::vector<FoundStep> steps_on_gpu(std::span<const FoundStep> ranges, std::span<const SeenKernel> kernels);
// "step 12", "Iteration#3", "ProfilerStep#7": a range by such a name is a step.
bool names_a_step(std::string_view range);

}  // namespace ws::prof
