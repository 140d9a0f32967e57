// Where kernels wait and for what, from samples of their instructions: by kernel and by source line.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/base/table.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct StallRow {
  std::string kernel;  // with the file where several modules have a kernel of this name
  std::string file;    // of most of its samples, or of the line; empty: not known
  int line = 0;        // of a row by line; 0: not known
  StallCounts counts{};
  uint64_t samples = 0;
  double share = 0;  // of the samples of all rows
  std::string place() const;  // "my.cu:14"; empty without a line
};
std::vector<StallRow> stalls_by_kernel(const Trace& trace);  // most samples first
// The lines of one kernel, as stalls_by_kernel() names it. Their samples sum to the samples of the kernel.
std::vector<StallRow> stalls_by_line(const Trace& trace, const std::string& kernel);
// The lines of one file, of all kernels: "my.cu" also finds "/home/me/my.cu". In order of lines. A row of line 0 has what these kernels do in
// other files, so that the rows sum to the kernels.
std::vector<StallRow> stalls_of_file(const Trace& trace, std::string_view file);

struct MainReason {
  Stall reason;
  double share;  // of the samples of the row
};
std::optional<MainReason> main_reason(const StallRow& row);  // why its warps wait most; nullopt: they issue

struct StallReport {
  std::vector<StallRow> kernels;
  std::string kernel;           // whose lines these are; empty: none was asked for
  std::vector<StallRow> lines;
  std::vector<SampledWindow> windows;
  std::string said;  // what was sampled, or why nothing
};
// `kernel`: a part of a name; the first kernel that has it is taken. Throws Failure if none has it.
StallReport stall_report(const RunData& run, std::string_view kernel = {});
// A row each; `by_line`: places instead of kernels.
Table stall_table(const std::vector<StallRow>& rows, bool by_line);
std::string to_text(const StallReport& report);
std::string to_json(const StallReport& report);
// Why there are no samples and how to get them, for empty pages and tables. `said`: kXrayKey of the run.
std::string no_samples_text(const std::string& said);

}  // namespace ws::prof
