#include "profiling/analysis/allocator_history.h"

#include <algorithm>
#include <limits>

#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

constexpr size_t kMostEntries = 4096;
constexpr int64_t kMostRows = 16;  // in the table over the steps

double us(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

std::string step_row(const CallSums& sums, int64_t steps, const std::string& name) {
  const auto each = static_cast<double>(std::max<int64_t>(1, steps));
  return formatted("{:11.2f} {:11.2f} {:12.3f} {:11.3f}  {}\n", static_cast<double>(sums.allocations) / each,
                   static_cast<double>(sums.frees) / each, us(sums.ns) / each,
                   static_cast<double>(sums.bytes) * 1e-6 / each, name);
}

std::string step_table(const AllocatorHistory& calls, int64_t steps) {
  const int64_t each = calls.steps_each();
  steps = std::max(steps, static_cast<int64_t>(calls.by_step().size()) * each);
  const int64_t entries = (steps + each - 1) / each;
  const int64_t together = (entries + kMostRows - 1) / kMostRows;  // entries per row
  std::string text =
      formatted("\n{:>11} {:>11} {:>12} {:>11}  {}\n", "allocated", "freed", "µs", "MB", "a step, over the steps");
  const auto sums_from = [&](int64_t entry) {
    CallSums sums;
    for (int64_t i = entry; i < std::min(entry + together, static_cast<int64_t>(calls.by_step().size())); ++i)
      sums.add(calls.by_step()[static_cast<size_t>(i)]);
    return sums;
  };
  const auto quiet = [](const CallSums& sums) { return sums.allocations + sums.frees == 0; };
  for (int64_t entry = 0, next = 0; entry < entries; entry = next) {
    const CallSums sums = sums_from(entry);
    next = entry + together;
    while (quiet(sums) && next < entries && quiet(sums_from(next))) next += together;  // quiet stretches share one row
    const int64_t first = entry * each, last = std::min(steps, next * each) - 1;
    const std::string name = first == last ? std::to_string(first) : std::to_string(first) + "–" + std::to_string(last);
    text += step_row(sums, last - first + 1, name);
  }
  text += step_row(calls.in_steps(), steps, "all steps");
  return text;
}

}  // namespace

void CallSums::add(const CallSums& more) {
  allocations += more.allocations, frees += more.frees, bytes += more.bytes, ns += more.ns;
}

CallSums sums_of(const StepAllocations& c) {
  return {uint64_t{c.allocations} + c.async_allocations + c.host_allocations,
          uint64_t{c.frees} + c.async_frees + c.host_frees, c.bytes, c.time_ns};
}

void AllocatorHistory::take(const StepAllocations& counted) {
  const CallSums sums = sums_of(counted);
  all_.add(sums);
  OpCalls& op = by_op_[counted.op];
  op.all.add(sums);
  if (counted.step == 0) return;
  op.in_steps.add(sums);
  in_steps_.add(sums);
  const auto step = static_cast<int64_t>(counted.step) - 1;
  while (step / steps_each_ >= static_cast<int64_t>(kMostEntries)) widen();
  const auto at = static_cast<size_t>(step / steps_each_);
  if (by_step_.size() <= at) by_step_.resize(at + 1);
  by_step_[at].add(sums);
}

// Merges pairs of entries.
void AllocatorHistory::widen() {
  steps_each_ *= 2;
  for (size_t i = 0; i < by_step_.size(); ++i) {
    if (i % 2 == 0)
      by_step_[i / 2] = by_step_[i];
    else
      by_step_[i / 2].add(by_step_[i]);
  }
  by_step_.resize((by_step_.size() + 1) / 2);
}

Table allocator_rows(const Trace& trace, const AllocatorHistory& calls, int64_t steps) {
  using Kind = Table::Kind;
  Table table{{{"calls", "calls", "", Kind::Count, 0, 0, ""},
               {"calls_a_step", "per step", "", Kind::Number, 2, 0, "Calls of a step."},
               {"us_a_step", "µs per step", "", Kind::Time, 3, 0, ""},
               {"allocations", "allocated", "", Kind::Count, 0, 10, ""},
               {"frees", "freed", "", Kind::Count, 0, 10, ""},
               {"total_us", "total", "µs", Kind::Time, 3, 12, ""},
               {"us_a_call", "µs per call", "", Kind::Time, 3, 12, ""},
               {"mb", "MB", "", Kind::Number, 3, 10, ""},
               {"bytes", "asked for", "", Kind::Bytes, 0, 0, ""},
               {"name", "allocator calls of", "", Kind::Text, 0, 1, ""}}, {}};
  std::vector<std::pair<OpTag, AllocatorHistory::OpCalls>> rows(calls.by_op().begin(), calls.by_op().end());
  sort_rows(rows, [](const auto& a, const auto& b) { return a.second.all.ns > b.second.all.ns; });
  const double each = steps > 0 ? 1 / static_cast<double>(steps) : std::numeric_limits<double>::quiet_NaN();
  for (const auto& [op, sums] : rows) {
    const OpInfo info = op < trace.ops.size() ? trace.ops[op] : OpInfo{};
    const CallSums& all = sums.all;
    Table::Cell name(op == kNoOp || info.name.empty() ? "(no op)" : formatted("{:.200}", info.name));
    name.swatch = static_cast<int>(op == kNoOp ? Meaning::Allocation : info.meaning);
    name.tip = formatted("{} allocations and {} frees, {} in them together", all.allocations, all.frees, time_text(us(all.ns)));
    const auto made = static_cast<double>(all.calls()), bytes = static_cast<double>(all.bytes);
    table.rows.push_back({{all.calls(), static_cast<double>(sums.in_steps.calls()) * each, us(sums.in_steps.ns) * each, all.allocations,
                           all.frees, us(all.ns), made > 0 ? us(all.ns) / made : 0, bytes * 1e-6, bytes, name}});
  }
  return table;
}

std::string allocator_text(const Trace& trace, const AllocatorHistory& calls, int64_t steps) {
  if (calls.empty()) return "";
  std::string text = "\n" + to_text(allocator_rows(trace, calls, steps));
  if (calls.in_steps().calls() > 0) text += step_table(calls, steps);
  return text;
}

}  // namespace ws::prof
