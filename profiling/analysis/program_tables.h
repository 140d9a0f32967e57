// Tables from the names that a recorded program gives itself: time by module as a tree, and host time by stack.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// Calls take(range, its time without inner ranges) for each of the program's ranges.
void each_own_range(const Trace& trace, TimeNs begin, TimeNs end, const std::function<void(const Span&, int64_t)>& take);

// The program's ranges by their time without inner ranges, for a CPU-only trace.
std::vector<KernelRow> range_table(const Trace& trace, TimeNs begin, TimeNs end, GroupBy by);

struct ModuleTimes {
  int64_t forward_ns = 0, backward_ns = 0, other_ns = 0;  // kernels of the module
  int64_t host_ns = 0;                                    // inside its ranges, all phases
  uint64_t kernels = 0;
  uint64_t peak_bytes = 0;  // blocks of the program's allocators, when the most bytes were live
  int64_t gpu_ns() const { return forward_ns + backward_ns + other_ns; }
};
struct ModuleNode {
  std::string name;  // "self_attn"
  std::string path;  // "encoder.layers.0.self_attn"
  std::string type;  // "Conv2d"; empty if it is not known, or the same as the name
  int depth = 0;
  ModuleTimes own, all;  // all: including the modules inside
};
// Each node comes before the nodes inside it; among siblings, most time first. Empty if the program marked no modules. Times are
// sums over the counted steps, bytes are of the whole run. Collectives are a node of their own.
std::vector<ModuleNode> module_tree(const Trace& trace, const CountedSteps& counted = {});
std::string to_text(const std::vector<ModuleNode>& tree, const CountedSteps& counted);
std::string to_json(const std::vector<ModuleNode>& tree, const CountedSteps& counted);

// Time by stack, outermost frame first. The first one is the thread; a frame without a path is a thread, an op or a kernel.
using FrameStack = std::vector<CodeFrame>;
using HostStacks = std::map<FrameStack, int64_t>;
struct HostStackOptions {
  bool gaps_only = false;  // only the time while the GPU was idle
  std::vector<TimeRange> ranges{{-kAlways, kAlways}};  // in order
};
bool has_samples(const Trace& trace);  // of the host's stacks
HostStacks host_stacks(const Trace& trace, const HostStackOptions& options);
HostStacks host_stacks(const Trace& trace);
// How sure shares of sampled time are: "only 28 stacks were sampled: a share of 50 % is known to ± 19 %". Empty where there are enough.
std::string few_samples_text(const Trace& trace, const std::vector<TimeRange>& ranges);
// One line per stack, as flamegraph.pl reads it: "main (train.py:9);forward (net.py:3) 120", in µs.
std::string collapsed_text(const HostStacks& stacks);
// `profiles`: stacks with a name each; speedscope lets one choose between them.
std::string speedscope_json(const std::vector<std::pair<std::string, HostStacks>>& profiles);
std::string speedscope_json(const HostStacks& stacks, const std::string& name);
// Functions by their time, excluding and including called functions. `of`: which steps, for the heading.
std::string host_text(const HostStacks& stacks, const std::string& of = {});

}  // namespace ws::prof
