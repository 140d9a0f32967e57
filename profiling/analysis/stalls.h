// Where kernels wait and for what, from samples of their instructions: by kernel, by source line and by instruction.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/disassembly.h"
#include "profiling/base/table.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct StallRow {
  std::string kernel;  // with the file where several modules have a kernel of this name
  std::string file;    // of most of its samples, or of the line; empty: not known
  int line = 0;        // of a row by line or instruction; 0: not known
  uint32_t offset = 0;      // of a row by instruction: its place in the function, in bytes
  int depth = 0;            // of a row by call: how many calls are around it
  std::string function;     // of a row by call: the inlined function that the line is in; empty: the kernel
  std::string instruction;  // empty: no disassembler, or no row by instruction
  StallCounts counts{};
  uint64_t samples = 0;
  double share = 0;  // of the samples of all rows
  std::string place() const;  // "my.cu:14"; empty without a line
};
std::vector<StallRow> stalls_by_kernel(const Trace& trace);  // most samples first
// The lines of one kernel, as stalls_by_kernel() names it. Their samples sum to the samples of the kernel.
std::vector<StallRow> stalls_by_line(const Trace& trace, const std::string& kernel);
// The kept code of one kernel: several modules can have kernels of one name. Empty in runs of older versions.
std::vector<SampledCode> code_of(const Trace& trace, const std::string& kernel);
// The instructions of one kernel in their order, also those without samples as far as they are known. Their samples sum to the kernel's,
// and the samples of the instructions of a line to the line's.
std::vector<StallRow> stalls_by_instruction(const Trace& trace, const std::string& kernel, const std::vector<Disassembly>& texts = {});
// The kernel's samples as a tree of calls, which the compiler inlined: each row with all that it calls, calls below it by their samples. The
// roots sum to the kernel. Rows of less than 0.5 % of the kernel are left out. Empty: the code has no line info.
std::vector<StallRow> stalls_by_call(const Trace& trace, const std::string& kernel);
// Instructions without samples, of code that was only compiled.
std::vector<StallRow> rows_of(const Disassembly& text, const std::string& kernel);
bool same_file(std::string_view path, std::string_view name);  // "my.cu" is "/home/me/my.cu"
// The lines of one file, of all kernels: "my.cu" also finds "/home/me/my.cu". In order of lines. A row of line 0 has what these kernels do in
// other files, so that the rows sum to the kernels.
std::vector<StallRow> stalls_of_file(const Trace& trace, std::string_view file);

struct MainReason {
  Stall reason;
  double share;  // of the samples of the row
};
std::optional<MainReason> main_reason(const StallRow& row);  // why its warps wait most; nullopt: they issue

// The samples of one run, as comparisons need them: of kernels, and of the lines of all kernels. Shares are of all samples of the run.
struct RunStalls {
  std::vector<StallRow> kernels, lines;
  bool any() const { return !kernels.empty(); }
};
RunStalls stalls_of_run(const Trace& trace);

// One kernel or line in two sampled runs. The rule: each sample counts as one observation, and the difference of both shares has a 95 %
// interval (Newcombe). Fewer than 100 samples of a run, or an interval that holds 0: nothing can be said.
struct StallDelta {
  StallRow a, b;  // a run without samples there has none
  double low = 0, high = 0;  // of the difference of both shares
  bool differs = false;
  double delta() const { return b.share - a.share; }
  double change() const;  // relative to A; NaN: not known
  const StallRow& row() const { return a.samples > 0 ? a : b; }
};
struct StallComparison {
  std::vector<StallDelta> kernels, lines;  // largest difference first
  bool any() const { return !kernels.empty(); }
};
StallComparison compare_stalls(const RunStalls& a, const RunStalls& b);  // empty if one of the two has no samples
Table stall_delta_table(const std::vector<StallDelta>& rows, bool by_line);
// "my.cu:14 waits 31 % less"; empty if no line or kernel differs for sure.
std::string headline(const StallComparison& compared);

struct StallReport {
  std::vector<StallRow> kernels;
  std::string kernel;           // whose lines these are; empty: none was asked for
  std::vector<StallRow> lines, calls, instructions;
  std::string no_instructions;  // why their texts are missing; empty: they were not asked for, or are there
  std::vector<SampledWindow> windows;
  std::string said;  // what was sampled, or why nothing
};
// `kernel`: a part of a name; the first kernel that has it is taken. Throws Failure if none has it. `instructions`: of this kernel, which
// starts the disassembler.
StallReport stall_report(const RunData& run, std::string_view kernel = {}, bool instructions = false);
enum class StallsBy : uint8_t { Kernel, Line, Call, Instruction };
Table stall_table(const std::vector<StallRow>& rows, StallsBy by);
std::string to_text(const StallReport& report);
std::string to_json(const StallReport& report);
// Why there are no samples and how to get them, for empty pages and tables. `said`: kXrayKey of the run.
std::string no_samples_text(const std::string& said);

}  // namespace ws::prof
