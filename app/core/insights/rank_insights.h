// Advice from the comparison of ranks: a rank that comes late, ranks that are late in turn, and transfers that no computation hides. No Qt here.
#pragma once
#include "app/core/insights/insight_rules.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

// The greatest cost first. The place of an insight is not set: it is in the step below.
std::vector<Insight> rank_insights(const prof::RankReport& report);
// The step that shows the late rank best: the one where it is latest. An index into report.steps; nullopt without a late rank.
std::optional<size_t> latest_step(const prof::RankReport& report);

}  // namespace ws::app
