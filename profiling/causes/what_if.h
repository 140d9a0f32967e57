// Predicts the time of a step with edits: what they save together, what each of them does, and what would help most.
#pragma once
#include <string>
#include <vector>

#include "profiling/base/statistics.h"
#include "profiling/causes/edits.h"

namespace ws::prof {

struct EditPart {
  std::string text;
  double alone_us = 0;  // what the edit saves by itself; negative if steps get longer
  double mean_us = 0;   // its mean part in all orders; these sum to what the edits save together
};

// One cause of the length of a step. `path_us`: its time on the critical path of a step.
struct PathShare {
  std::string name;
  Meaning meaning = Meaning::Other;
  double path_us = 0;
  double work_us = 0, lasts_us = 0;  // as HelpRow::now_us, and the same with what its calls wait for
  double gpu_waits_us = 0;           // of path_us, while no GPU works
};

// What one part of the step costs: how much shorter the step would be if the part took no time. That is a limit, and
// often nobody can do it.
struct HelpRow {
  GroupKind kind = GroupKind::Op;
  std::string name;
  Meaning meaning = Meaning::Other;
  double now_us = 0;    // in the median step, on the rank that has most of it
  double path_us = 0;   // of it on the critical path
  double gain_us = 0;   // what a step saves if this is free
  int rank = -1;        // that has most of it; -1: one rank
  double slope() const { return now_us > 0 ? path_us / now_us : 0; }  // what 1 µs less saves
  bool only_waits() const { return now_us < 0.05 && gain_us >= 0.05; }  // "0.0 µs" in most steps
};
inline constexpr const char* kIfFree = "If a part took no time, a step would save";  // the title of such rows
inline constexpr const char* kNotTheSplit =
    "Savings differ from the step time split: without a part, all that follows begins earlier, too.";

struct WhatIf {
  Interval measured_us, predicted_us;
  Interval saves_us;        // the noise of both steps is the same, so this is known better than either
  double replay_error = 0;  // share by which the unchanged replay misses the measured time
  double steps = 0;         // that were replayed
  StepRange which;          // their numbers
  bool whole_trace = false;
  std::vector<EditPart> edits;
  std::vector<PathShare> path, path_after;  // longest first; each sums to the length of its step
  std::vector<HelpRow> rows, rows_after;    // sorted by gain
  size_t more_rows = 0, more_rows_after = 0;  // parts with less time on the path, which were not tried
  double unexplained_us = 0;                // a step; on the GPU, without a recorded cause
  std::string least_explained;              // the node after the longest such time; empty: none
  std::vector<std::string> warnings;
};

std::string of_rank(int rank);           // ", rank 1"; empty if there is one rank
// "waits for data, hand-over": after the edits, where a ready loader still hands over each batch; else the name.
std::string name_after(const HelpRow& row, const WhatIf& result);
// The causes that make up the launch gaps of the split in a measured step: "The GPU waits for launch calls and
// host outside CUDA: these are the “launch gaps” of the split, 95.5 µs."; empty if they do not sum to it.
std::string launch_gaps_text(const WhatIf& result, double launch_gaps_us);
// A sentence about it, if a row has such a name; else empty.
std::string hand_over_text(const WhatIf& result);
std::string edit_of(const HelpRow& row);  // what makes it free: "no allocator calls", "op fc1 gone"

std::string interval_text(const Interval& us);  // "12.3 ± 3.0 µs", "4.17 ± 1.00 ms"
std::string interval_text(const Interval& us, double step_us);  // in the unit of this step

inline constexpr size_t kMostHelpRows = 40;
// Without edits only the measured step is described.
WhatIf what_if(const StepCauses& causes, const Trace& trace, const std::vector<Edit>& edits, size_t most_rows = kMostHelpRows);

// What a step saves: "a step would take 12.3 µs less (4 %)", or "more" where less is negative. `at_most`: "up to 12.3 µs less".
std::string change_text(double less_us, double step_us, bool at_most);
// "A step would take 2.96 ms less (25 %)."; without edits, what a step takes.
std::string saving_text(const WhatIf& result);
// The same with all figures: "A step would take 246.8 ± 20.0 µs less (80 %): 60.4 µs instead of 307.2 ± 25.6 µs."
std::string step_text(const WhatIf& result);
std::string to_text(const WhatIf& result, const std::string& advice = {});  // advice: a paragraph before the parts of the step
std::string to_json(const WhatIf& result);

// The critical path of a step by cause, op, line and module, with the slack of what is not on it.
struct CriticalReport {
  struct Row {
    GroupKind kind;
    std::string name;
    Meaning meaning;
    double now_us, path_us, slack_us;  // now: as HelpRow; slack: how much later it could end, the least of a step; 0 on the path
    int rank;                          // that has most of it; -1: one rank
  };
  Interval step_us;
  double steps = 0;
  StepRange which;
  bool whole_trace = false;
  std::vector<Row> rows;  // by kind, then by time on the path
  double unexplained_us = 0;
  std::string least_explained;
  std::vector<std::string> warnings;
};
CriticalReport critical_report(const StepCauses& causes, const Trace& trace);
std::string to_text(const CriticalReport& report);
std::string to_json(const CriticalReport& report);

}  // namespace ws::prof
