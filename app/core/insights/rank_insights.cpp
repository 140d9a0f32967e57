#include "app/core/insights/trace_insights.h"

#include <algorithm>

#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr double kLateWorthALook = 0.02, kExposedWorthALook = 0.10;  // shares of a step

// `us` and the step are of the median step if the report has it, and otherwise means.
Insight of_communication(const prof::RankReport& report, double us, bool of_median, Insight insight) {
  insight.look_at = prof::Meaning::Communication;
  insight.cost_ns = us * 1e3 * static_cast<double>(report.steps.size());
  insight.of_median = of_median, insight.part_us = us, insight.step_us = of_median ? report.median_step_us : report.step_us;
  return insight;
}

Insight of_wait(const prof::RankReport& report, double us, bool of_median, Insight insight) {
  insight.part = prof::PartKind::RankWait;
  return of_communication(report, us, of_median, std::move(insight));
}

double late_step_us(const prof::RankReport& report) { return report.straggler.of_median ? report.median_step_us : report.step_us; }

std::optional<Insight> late_rank(const prof::RankReport& report) {
  if (report.straggler.rank < 0 || report.straggler.share < kLateWorthALook) return std::nullopt;
  const std::string rank = "rank " + std::to_string(report.straggler.rank);
  const auto row = std::ranges::find(report.ranks, report.straggler.rank, &prof::RankRow::rank);
  const bool known = row != report.ranks.end() && row->computes > 0;
  const std::string faster = "To arrive on time, " + rank + " must compute faster";
  const std::string before = report.straggler.computes > 0 ? faster + ": compare the shapes of its batches, its kernels and its clock with another rank."
                                                           : "Look at what " + rank + " does before: its host may load data, log or save.";
  Insight late = of_wait(report, report.straggler.cost_us, report.straggler.of_median,
                      {"late rank", straggler_reason(report)});
  late.how = before + " The page Ranks shows each step.";
  late.more = (report.straggler.of_median ? "The wait takes " + time_text(report.straggler.cost_us) + " of the median step." : with_capital(straggler_text(report)) + ".") + (known ? " Now " + rank + " computes for " + time_text(row->computes, late_step_us(report)) + " of a step." : "");
  late.edits = rank + " on time";
  return late;
}

std::optional<Insight> exposed_transfers(const prof::RankReport& report) {
  const bool of_median = report.median_step_us > 0;
  const double step = of_median ? report.median_step_us : report.step_us;
  if (!report.any() || !report.computation || report.step_us <= 0 || !(report.longest_exposed_us >= kExposedWorthALook * step)) return std::nullopt;
  Insight found = of_communication(
      report, report.longest_exposed_us, of_median,
      {"exposed transfers",
       "transfers between ranks that no computation hides take up to " + time_text(report.longest_exposed_us) + " of the " + (of_median ? "median" : "mean") + " step",
       "All ranks are there, and only the transfer goes on."});
  found.how = "Transfer less often (sum the gradients of several batches) or fewer bytes (gradients in bf16), or begin earlier, while the backward phase still runs.";
  return found;
}

std::optional<Insight> waiting_in_turn(const prof::RankReport& report) {
  const auto wait = prof::usual_wait(report);
  if (!wait) return std::nullopt;
  Insight found = of_wait(report, wait->us, wait->of_median, {"ranks late in turn", "a rank waits " + time_text(wait->us) + " of the " + (wait->of_median ? "median" : "mean") + " step for the last one", "Now one rank comes last, now another."});
  found.more = with_capital(usual_wait_text(*wait, report.steps.size())) + ".";
  found.how = "Look for what a host does not do in the same way in each step: loading data, logging, other programs on the same cores. The page Ranks shows each step.";
  return found;
}

}  // namespace

std::vector<Insight> rank_insights(const prof::RankReport& report) {
  std::vector<Insight> found;
  for (auto insight : {late_rank(report), waiting_in_turn(report), exposed_transfers(report)})
    if (insight) found.push_back(std::move(*insight));
  sort_rows(found, [](const Insight& a, const Insight& b) { return a.part_us > b.part_us; });
  return found;
}

std::optional<size_t> latest_step(const prof::RankReport& report) {
  const auto row = std::ranges::find(report.ranks, report.straggler.rank, &prof::RankRow::rank);
  if (row == report.ranks.end() || report.step_begins.size() != report.steps.size()) return std::nullopt;
  const auto rank = static_cast<size_t>(row - report.ranks.begin());
  std::optional<size_t> latest;
  for (size_t step = 0; step < report.steps.size(); ++step)
    if (report.late(rank, step) > (latest ? report.late(rank, *latest) : 0.0F)) latest = step;
  return latest;
}

}  // namespace ws::app
