#include "app/core/insights/rank_insights.h"

#include <algorithm>

#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr double kLateWorthALook = 0.02, kExposedWorthALook = 0.10;  // shares of a step

double all_steps_ns(const prof::RankReport& report, double us_a_step) {
  return us_a_step * 1e3 * static_cast<double>(report.steps.size());
}

std::optional<Insight> late_rank(const prof::RankReport& report) {
  if (report.straggler.rank < 0 || report.straggler.share < kLateWorthALook) return std::nullopt;
  Insight insight{"late rank", straggler_text(report),
                  "The others wait for it in a collective. Look at what this rank does before: its host may load data, "
                  "log or save, and its GPU may have more work or a lower clock. The page Ranks shows each step."};
  insight.look_at = prof::Meaning::Communication;
  insight.cost_ns = all_steps_ns(report, report.straggler.cost_us);
  return insight;
}

std::optional<Insight> exposed_transfers(const prof::RankReport& report) {
  if (!report.any() || !report.computation || report.step_us <= 0 || !(report.exposed_us >= kExposedWorthALook * report.step_us)) return std::nullopt;
  Insight insight{"exposed transfers",
                  "transfers between ranks that no computation hides take " + time_text(report.exposed_us) +
                      " of a mean step of " + time_text(report.step_us),
                  "All ranks are there, and only the transfer goes on. Transfer less often (sum the gradients of several "
                  "batches) or fewer bytes (gradients in bf16), or begin earlier, while the backward phase still runs."};
  insight.look_at = prof::Meaning::Communication;
  insight.cost_ns = all_steps_ns(report, report.exposed_us);
  return insight;
}

}  // namespace

std::vector<Insight> rank_insights(const prof::RankReport& report) {
  std::vector<Insight> found;
  for (auto insight : {late_rank(report), exposed_transfers(report)})
    if (insight) found.push_back(std::move(*insight));
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
