// Finds the steps of a training loop that marks none, from the names of its ranges or from the repeating pattern of its
// kernels.
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
  uint32_t call = 0;  // number of the launching call
};
struct SeenLaunch {
  uint32_t call;
  TimeNs start;
};

// Returns the number of kernels after which the sequence repeats, or 0 if it does not repeat.
size_t find_period(std::span<const uint32_t> names);

struct FoundStep {
  TimeNs start, end;
  uint32_t step = 0;  // as the program counts, + 1; 0: it does not
  bool operator==(const FoundStep&) const = default;
};
// Finds steps in the kernels of one stream, in order of time. A step begins after the longest usual gap and lasts until
// the next one begins. No step overlaps an `untraced` stretch (also in order of time), because its content is unknown.
std::vector<FoundStep> find_steps(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced = {});

// The same while more kernels will follow. `usual`: the kernels of a typical step, kept between calls. It is determined
// again if it is empty or no longer matches.
struct StepsSoFar {
  std::vector<FoundStep> steps;
  size_t used = 0;  // number of kernels that are done; the next call gets the remaining and the new ones
};
StepsSoFar find_steps_so_far(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced,
                             std::vector<SeenKernel>& usual);
// Finds the remaining steps at the end.
std::vector<FoundStep> find_last_steps(std::span<const SeenKernel> kernels, std::span<const FoundStep> untraced,
                                       std::vector<SeenKernel>& usual);

// Selects steps from ranges with step names: of nested ranges the outer one. Empty if there are fewer than two.
std::vector<FoundStep> steps_of_ranges(std::vector<FoundStep> ranges);
// Times when the GPU ran the steps of these ranges, of kernels whose launches are not known (RangeSteps: of known ones). If
// the host runs ahead, its ranges end before their kernels begin and say nothing about GPU time. By what repeats: works only
// if each range launched similar kernels. The first may also prepare the optimizer, some may print, and evaluations may lie
// between them. Returns {} otherwise, or if the host waits for its kernels.
std::vector<FoundStep> steps_on_gpu(std::span<const FoundStep> ranges, std::span<const SeenKernel> kernels);
// True if a range by this name is a step: "step 12", "Iteration#3", "ProfilerStep#7". False for "SGD.step", which
// is a part of a step.
bool names_a_step(std::string_view range);

}  // namespace ws::prof
