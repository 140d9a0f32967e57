#include "profiling/analysis/waterfall.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/sort_rows.h"

namespace ws::prof {

namespace {

// Converts ns of many steps to ps of one step. Rounding carries over, so that consecutive parts still sum to the whole.
class PerStep {
 public:
  explicit PerStep(int64_t steps) : steps_(std::max<int64_t>(steps, 1)) {}
  int64_t ps(int64_t ns) {
    const auto scaled = static_cast<__int128>(ns) * 1000 + carried_;
    carried_ = static_cast<int64_t>(scaled % steps_);
    return static_cast<int64_t>(scaled / steps_);
  }

 private:
  int64_t steps_, carried_ = 0;
};

// Adds a part of one run to the cause of the same part.
void add_part(std::vector<Cause>& causes, const PartId& id, int64_t Cause::*side, int64_t ps) {
  const auto same = [&id](const Cause& c) { return c.op.empty() && c.meaning == id.meaning && c.kind == id.kind; };
  auto at = std::ranges::find_if(causes, same);
  if (at == causes.end()) at = causes.insert(at, {id.meaning, 0, 0, {}, id.kind});
  (*at).*side += ps;
}

void add_parts(std::vector<Cause>& causes, const Breakdown& b, int64_t Cause::*side) {
  PerStep per_step(b.steps);
  for (const BreakdownPart& part : parts_of(b)) add_part(causes, part.id, side, per_step.ps(part.ns));
}

bool is_op(const Cause& cause) { return !cause.op.empty(); }

void sort_by_change(std::vector<Cause>& causes) {
  sort_rows(causes, [](const Cause& p, const Cause& q) { return std::abs(p.delta_ps()) > std::abs(q.delta_ps()); });
}

// The ops of a part, among the ops of all parts. Ops of Sync are waits inside of kernels.
auto ops_of(const StepSample& sample, const PartId& id) {
  const auto& ops = sample.op_parts;
  const PartKind with_ops = id.meaning == Meaning::Sync ? PartKind::InnerWait : PartKind::OfMeaning;
  if (id.kind != with_ops) return std::pair(ops.end(), ops.end());
  return std::pair(ops.lower_bound({id.meaning, ""}), ops.lower_bound({static_cast<Meaning>(static_cast<size_t>(id.meaning) + 1), ""}));
}

// Adds the parts of one run in their order, so that the ops of a part sum to the part after rounding.
void add_by_op(const StepSample& sample, int64_t Cause::*side, std::map<std::string, Cause>& ops,
               std::vector<Cause>& rest) {
  PerStep per_step(sample.median_parts.steps);
  for (const auto& [id, ns] : parts_of(sample.median_parts)) {
    int64_t left = ns;
    const auto [first, last] = ops_of(sample, id);
    for (auto op = first; op != last; ++op) {
      const std::string& key = op->first.second;
      const std::string name = key.starts_with(kOpKey) ? key.substr(kOpKey.size()) : short_kernel_name(key);
      Cause& cause = ops.try_emplace(name, Cause{id.meaning, 0, 0, name.empty() ? "(no name)" : name}).first->second;
      cause.*side += per_step.ps(op->second);
      left -= op->second;
    }
    if (const int64_t ps = per_step.ps(left); ps != 0) add_part(rest, id, side, ps);
  }
}

// The times per step are the sums of the causes.
Waterfall made_of(std::vector<Cause> causes) {
  Waterfall result{0, 0, std::move(causes)};
  for (const Cause& cause : result.causes) result.a_ps += cause.a_ps, result.b_ps += cause.b_ps;
  sort_by_change(result.causes);
  return result;
}

}  // namespace

Waterfall waterfall(const Breakdown& a, const Breakdown& b) {
  std::vector<Cause> causes;
  add_parts(causes, a, &Cause::a_ps);
  add_parts(causes, b, &Cause::b_ps);
  return made_of(std::move(causes));
}

Waterfall waterfall_by_op(const StepSample& a, const StepSample& b) {
  std::map<std::string, Cause> ops;
  std::vector<Cause> rest, causes;
  add_by_op(a, &Cause::a_ps, ops, rest);
  add_by_op(b, &Cause::b_ps, ops, rest);
  for (auto& [name, cause] : ops) causes.push_back(std::move(cause));
  causes.insert(causes.end(), rest.begin(), rest.end());
  return made_of(std::move(causes));
}

Waterfall folded(Waterfall by_op, size_t most) {
  auto& causes = by_op.causes;
  const auto ops = static_cast<size_t>(std::ranges::count_if(causes, is_op));
  if (ops <= most + 1) return by_op;
  Cause rest{Meaning::Other, 0, 0, std::to_string(ops - most) + " other ops"};
  size_t kept = 0;
  std::erase_if(causes, [&](const Cause& cause) {
    if (!is_op(cause) || kept++ < most) return false;
    rest.a_ps += cause.a_ps, rest.b_ps += cause.b_ps;
    return true;
  });
  const auto last = std::find_if(causes.rbegin(), causes.rend(), is_op);
  causes.insert(last.base(), rest);
  return by_op;
}

Waterfall rounded(Waterfall w, int64_t unit_ps) {
  const auto round_off = [unit_ps](int64_t& ps) { ps = std::llround(static_cast<double>(ps) / static_cast<double>(unit_ps)) * unit_ps; };
  round_off(w.a_ps), round_off(w.b_ps);
  for (Cause& cause : w.causes) round_off(cause.a_ps), round_off(cause.b_ps);
  sort_by_change(w.causes);
  return w;
}

std::string cause_name(const Cause& cause) { return is_op(cause) ? cause.op : part_name({cause.meaning, cause.kind}); }

double driver_calls_per_step(const RunSummary& run) {
  const auto counted = run.extra.find("driver_calls_per_step");
  if (counted != run.extra.end()) return std::strtod(counted->second.c_str(), nullptr);
  return run.origin == "record" && run.steps > 0 ? run.allocator_calls_per_step
                                                 : std::numeric_limits<double>::quiet_NaN();
}

namespace {

using Uses = std::map<std::string, WorkUse>;

std::vector<KernelDelta> deltas(const Uses& a, const Uses& b) {
  std::map<std::string, KernelDelta> rows;
  for (const auto& [name, use] : a) rows[name].a_count = use.count, rows[name].a_us = use.us;
  for (const auto& [name, use] : b) rows[name].b_count = use.count, rows[name].b_us = use.us;
  std::vector<KernelDelta> result;
  for (auto& [name, row] : rows) {
    row.name = name;
    result.push_back(std::move(row));
  }
  sort_rows(result, [](const KernelDelta& p, const KernelDelta& q) {
    return std::abs(p.delta_us()) > std::abs(q.delta_us());
  });
  return result;
}

const Uses& uses_of(const StepSample& sample, GroupBy by) {
  static const Uses none;
  const auto at = sample.grouped.find(by);
  return at == sample.grouped.end() ? none : at->second;
}

}  // namespace

std::vector<KernelDelta> kernel_deltas(const StepSample& a, const StepSample& b) { return deltas(a.work, b.work); }

std::vector<KernelDelta> grouped_deltas(const StepSample& a, const StepSample& b, GroupBy by) {
  return deltas(uses_of(a, by), uses_of(b, by));
}

}  // namespace ws::prof
