// The comparison of ranks as tables, for the window, reports and CSV files. No Qt.
#pragma once
#include "profiling/analysis/ranks.h"

namespace ws::app {

// Names of NCCL's kernels without algorithm and protocol: "AllReduce f32". Whole where two of one size would be alike.
std::vector<std::string> short_collective_names(const prof::RankReport& report);
// `wide`: with whole names, and with the share of the peak that each collective reaches, where it is known.
Table collectives_table(const prof::RankReport& report, bool wide);
Table ranks_table(const prof::RankReport& report);
std::string collectives_note(const prof::RankReport& report);  // how to read the columns

}  // namespace ws::app
