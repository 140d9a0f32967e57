#include <algorithm>
#include <cstddef>
#include <vector>

#include "profiling/analysis/ranks.h"

namespace ws::prof {

namespace {

constexpr double kWorthSaying = 0.10;  // of a step

// Each other rank waits for a straggler.
double caused_by_stragglers(const RankReport& report) {
  double cost = report.straggler.cost_us;
  for (const Straggler& one : report.more_late) cost += one.cost_us;
  const auto ranks = static_cast<double>(report.ranks.size());
  return cost * (ranks - 1) / ranks;
}

// In how many steps each rank comes last.
std::vector<int64_t> times_last(const RankReport& report) {
  std::vector<int64_t> times(report.ranks.size());
  for (size_t step = 0; step < report.steps.size(); ++step) {
    float most = 0;
    std::optional<size_t> latest;
    for (size_t rank = 0; rank < report.ranks.size(); ++rank)
      if (report.late(rank, step) > most) most = report.late(rank, step), latest = rank;
    if (latest) ++times[*latest];
  }
  return times;
}

}  // namespace

std::optional<UsualWait> usual_wait(const RankReport& report) {
  const bool of_all = std::ranges::none_of(
      report.collectives, [](const CollectiveRow& row) { return row.ranks != 0 || row.messages; });
  if (!report.any() || report.steps.empty() || report.step_us <= 0 || !of_all) return std::nullopt;
  const bool of_median = report.median_step_us > 0;
  UsualWait wait{report.wait_us - caused_by_stragglers(report), of_median};
  wait.share = wait.us / (of_median ? report.median_step_us : report.step_us);
  if (!(wait.share >= kWorthSaying)) return std::nullopt;
  const std::vector<int64_t> last = times_last(report);
  const auto most = std::ranges::max_element(last);
  wait.rank = report.ranks[static_cast<size_t>(most - last.begin())].rank, wait.last_steps = *most;
  constexpr int64_t kNearlyAlways = 9;  // of ten steps: then the straggler is what there is to say
  if (wait.rank == report.straggler.rank && 10 * wait.last_steps >= kNearlyAlways * static_cast<int64_t>(report.steps.size())) return std::nullopt;
  return wait;
}

}  // namespace ws::prof
