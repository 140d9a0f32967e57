// Converts sampled stacks to a tree of functions for a flame graph, of one run or of two runs with their difference.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiling/analysis/program_tables.h"

namespace ws::prof {

struct FlameNode {
  std::string function;  // "Net.forward"; for a root frame the thread
  std::string path;      // "net.py"; empty: a thread, or code without a file
  double ns = 0, alone = 0;   // including called functions; excluding them
  double before = 0;          // ns in the baseline
  uint32_t parent = 0;
  int depth = 0;              // 0 for the root
  std::vector<uint32_t> inside;     // most time first
  std::map<int, double> lines;      // time by line inside the function, in ns
};
using FlameTree = std::vector<FlameNode>;  // [0]: the root with all time. Empty if there are no samples

FlameTree flame_tree(const HostStacks& stacks);
// Each run's times are divided by its steps, so that runs of different lengths can be compared. Contains the functions
// of both. Threads are matched by their names without the number at the end.
FlameTree flame_difference(const HostStacks& baseline, double baseline_steps, const HostStacks& candidate, double candidate_steps);

inline constexpr const char* kPythonModule = "python";  // the interpreter and what it ships with

// True if a file belongs neither to Python nor to an installed package.
bool is_own_path(const std::string& path);
// Stacks of the program's own functions: packages, libraries and the interpreter are left out between them, and of what the innermost
// own function calls only one frame is left. Unchanged if no stack has an own function.
HostStacks folded_libraries(const HostStacks& stacks);
// What a function belongs to: the file of the user's own code, else the installed package, kPythonModule, or the library.
std::string module_of_path(const std::string& path);

}  // namespace ws::prof
