// GPU time by the Python stack that launched it, as recorded at level lines. A trace without GPU work has the host time of
// its ranges instead.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// Each stack ends with the op and the kernel: main (train.py:60), forward (net.py:12), aten::addmm, gemm. What the backward
// pass launches has the stack of the forward op.
HostStacks launch_stacks(const Trace& trace, TimeRange range);
HostStacks launch_stacks(const Trace& trace, const std::vector<TimeRange>& ranges);
bool has_launch_stacks(const Trace& trace);  // false for runs recorded below level lines
std::string launch_text(const HostStacks& stacks, const std::string& of = {});  // as a tree; `of`: which steps

// Sets with_calls of each row by line, and adds rows for the program's lines that only call other lines.
void add_calling_lines(std::vector<KernelRow>& rows, const Trace& trace, TimeRange range);

// Time by line of this file, with what the line calls: line number → ns.
std::map<int, int64_t> time_by_line(const Trace& trace, TimeRange range, std::string_view path);

}  // namespace ws::prof
