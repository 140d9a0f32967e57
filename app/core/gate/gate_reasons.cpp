// Which modules, lines, ops or kernels make one of two runs slower, and whether they do different work.
#include <algorithm>
#include <cmath>

#include "app/core/comparison/comparison_text.h"
#include "app/core/gate/gate.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {
namespace {

constexpr size_t kMostRows = 3, kMostNames = 5;
constexpr double kSmallest = 0.05;  // of the whole difference

// Adds the largest changes in the direction of the whole.
void add_rows(GateReasons& reasons, const std::string& kind, std::vector<GateReason> rows, double whole_us) {
  std::erase_if(rows, [whole_us](const GateReason& row) { return (row.b_us - row.a_us) / whole_us < kSmallest || row.name.starts_with("("); });
  std::ranges::stable_sort(rows, std::ranges::greater{}, [](const GateReason& row) { return std::abs(row.b_us - row.a_us); });
  rows.resize(std::min(rows.size(), kMostRows));
  for (GateReason& row : rows) row.kind = kind, reasons.rows.push_back(std::move(row));
}

std::vector<GateReason> rows_of(const std::vector<prof::KernelDelta>& deltas) {
  std::vector<GateReason> rows;
  for (const prof::KernelDelta& delta : deltas) rows.push_back({"", prof::shortened(prof::plain_kernel_name(delta.name), 80), delta.a_us, delta.b_us});
  return rows;
}

std::vector<GateReason> rows_of(const prof::Waterfall& by_op) {
  std::vector<GateReason> rows;
  for (const prof::Cause& cause : by_op.causes) rows.push_back({"", prof::cause_name(cause), 1e-6 * static_cast<double>(cause.a_ps), 1e-6 * static_cast<double>(cause.b_ps)});
  return rows;
}

}  // namespace

GateReasons reasons_of(const prof::RunData& a, const prof::RunData& b) {
  const Comparison comparison = compare(compared_run(a), compared_run(b));
  GateReasons reasons;
  if (!comparison.split) {
    reasons.missing = "the recordings do not show what carries it";
    return reasons;
  }
  const double whole_us = 1e-6 * static_cast<double>(comparison.by_op.b_ps - comparison.by_op.a_ps);
  for (const auto by : {prof::GroupBy::Layer, prof::GroupBy::Line})
    if (const auto found = comparison.grouped.find(by); found != comparison.grouped.end())
      add_rows(reasons, group_word(comparison, by), rows_of(found->second), whole_us);
  add_rows(reasons, "part", rows_of(comparison.by_op), whole_us);
  for (const prof::KernelDelta& kernel : comparison.kernels)
    for (auto [names, none, some] : {std::tuple{&reasons.only_a, kernel.b_count, kernel.a_count}, {&reasons.only_b, kernel.a_count, kernel.b_count}})
      if (none == 0 && some > 0 && names->size() < kMostNames) names->push_back(prof::shortened(prof::plain_kernel_name(kernel.name), 80));
  return reasons;
}

void explain(GateResult& result, const std::function<GateReasons()>& recorded) {
  if (!result.failure.empty()) return;
  result.reasons = recorded();
  const GateVerdict verdict = result.state.verdict;
  if (verdict != GateVerdict::Slower && verdict != GateVerdict::Faster) result.reasons.rows.clear(), result.reasons.missing.clear();
}

}  // namespace ws::app
