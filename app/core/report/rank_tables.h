// The comparison of ranks as tables, for the window, reports and CSV files. No Qt.
#pragma once
#include "app/core/report/figure_table.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

// `wide`: also the share of the peak that each collective reaches, where it is known.
FigureTable collectives_table(const prof::RankReport& report, bool wide);
FigureTable ranks_table(const prof::RankReport& report);
extern const char* const kCollectivesNote;  // how to read the columns

}  // namespace ws::app
