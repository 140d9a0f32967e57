// Sampled stacks as a tree of functions, for a flame graph: of one run, or of two with their difference.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiling/analysis/program_tables.h"

namespace ws::prof {

struct FlameNode {
  std::string function;  // "Net.forward"; of the outermost: the thread
  std::string path;      // "net.py"; empty: a thread, or code without a file
  double ns = 0, alone = 0;   // with what it calls; without
  double before = 0;          // ns in the baseline
  uint32_t parent = 0;
  int depth = 0;              // of the root: 0
  std::vector<uint32_t> inside;     // most time first
  std::map<std::string, double> lines;  // where in the function the time was: "12" → ns
};
using FlameTree = std::vector<FlameNode>;  // [0]: all of it. Empty: nothing was sampled

FlameTree flame_tree(const HostStacks& stacks);
// Times of each are divided by its steps, so that runs of different lengths compare. Functions of either are there.
FlameTree flame_difference(const HostStacks& baseline, double baseline_steps, const HostStacks& candidate, double candidate_steps);

// True for a file that is not Python's, nor of an installed package.
bool is_own_path(const std::string& path);

}  // namespace ws::prof
