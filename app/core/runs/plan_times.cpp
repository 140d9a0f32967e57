#include "app/core/runs/plan_times.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/plan/op_tags.h"
#include "profiling/analysis/inner_parts.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

bool runs_from(const Plan& plan, const std::vector<prof::OpInfo>& ops, size_t base) {
  if (base + plan.ops.size() > ops.size()) return false;
  for (size_t i = 0; i < plan.ops.size(); ++i)
    if (ops[base + i].name != plan.ops[i].name) return false;
  return true;
}

// Returns the tracks where the work itself was recorded. The most precise kind wins.
std::vector<const prof::Track*> work_tracks(const prof::Trace& trace) {
  for (prof::TrackKind kind : {prof::TrackKind::Inner, prof::TrackKind::Stream, prof::TrackKind::CpuThread}) {
    std::vector<const prof::Track*> tracks;
    for (const auto& track : trace.tracks())
      if (track.kind == kind && track.spans > 0) tracks.push_back(&track);
    if (!tracks.empty()) return tracks;
  }
  return {};
}

bool is_of_layer(const Plan& plan, const Op& op, const std::string& layer) {
  const bool named = op.layer >= 0 && static_cast<size_t>(op.layer) < plan.layer_names.size();
  return layer.empty() || !named || plan.layer_names[static_cast<size_t>(op.layer)] == layer;
}

// Finds the op of a phase and layer. A gradient that is never stored is computed by the op that updates with it.
size_t op_of_part(const Plan& plan, const prof::OpInfo& part) {
  const auto find = [&](std::string_view phase) {
    return static_cast<size_t>(
        std::ranges::find_if(
            plan.ops, [&](const Op& op) { return to_string(op.phase) == phase && is_of_layer(plan, op, part.layer); }) -
        plan.ops.begin());
  };
  const size_t found = find(part.phase);
  return found == plan.ops.size() && part.phase == to_string(Phase::Backward) ? find(to_string(Phase::Update)) : found;
}

void add_part(PlanTimes& times, const Plan& plan, const prof::Trace& trace, const prof::InnerPart& part) {
  const double us = 1e-3 * part.ns_a_step;
  if (part.meaning == prof::Meaning::Sync) return static_cast<void>(times.waits_us += us);
  if (part.op >= trace.ops.size()) return;
  if (const size_t op = op_of_part(plan, trace.ops[part.op]); op < times.us.size()) times.us[op] += us;
}

// The block of layers of an op; empty outside of them.
std::string part_of(const Plan& plan, const Op& op) {
  const bool known = op.layer >= 0 && static_cast<size_t>(op.layer) < plan.layer_parts.size();
  return known ? plan.layer_parts[static_cast<size_t>(op.layer)] : std::string();
}

// "▸ forward · block 2: 17 ops, 1.2 MiB written, 45.6 µs", of the ops from `first` on.
Table::Cell block_heading(const Plan& plan, const PlanTimes& times, size_t first, const std::string& part, bool folded) {
  size_t end = first;
  int64_t written = 0;
  double us = 0;
  for (; end < plan.ops.size() && plan.ops[end].phase == plan.ops[first].phase && part_of(plan, plan.ops[end]) == part; ++end) {
    for (const BufferId id : plan.ops[end].out) written += plan.buffer(id).bytes();
    us += times.us[end];
  }
  Table::Cell cell(part);
  cell.text = (folded ? "▸ " : "▾ ") + std::string(to_string(plan.ops[first].phase)) + " · " + part + ": " + std::to_string(end - first) +
              (end - first == 1 ? " op, " : " ops, ") + bytes_text(static_cast<double>(written)) + " written" +
              (us > 0 ? ", " + fixed(us, 1) + " µs" : "");
  cell.tip = folded ? "Shows the ops of this block." : "Hides the ops of this block.";
  return cell;
}

std::string heading_of(const Plan& plan, const Op& op) {
  const std::string phase(to_string(op.phase));
  const bool named = op.layer >= 0 && static_cast<size_t>(op.layer) < plan.layer_names.size();
  if (!named) return phase;
  const auto layer = static_cast<size_t>(op.layer);
  const std::string part = layer < plan.layer_parts.size() ? plan.layer_parts[layer] : "";
  return phase + (part.empty() ? "" : " · " + part) + " · " + plan.layer_names[layer];
}

Table::Cell names_of(const Plan& plan, const std::vector<BufferId>& ids) {
  constexpr size_t kNamed = 3;
  if (ids.empty()) return {};
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, ids.size()); ++i) names += (i > 0 ? "  " : "") + plan.buffer(ids[i]).name;
  return names + (ids.size() > kNamed ? "  +" + std::to_string(ids.size() - kNamed) : "");
}

// "dX2: dh1 = dz2·W2ᵀ", "dW2 = h1ᵀ·dz2": the name that the op has on every page, and what it computes.
std::string named_product(const Plan& plan, const Op& op) {
  const std::string formula = describe(plan, op);
  return formula.starts_with(op.name + " =") ? formula : op.name + ": " + formula;
}

Table::Row row_of(const Plan& plan, size_t number, double us) {
  const Op& op = plan.ops[number];
  int64_t written = 0;
  for (const BufferId id : op.out) written += plan.buffer(id).bytes();
  const int64_t work = flops(plan, op);
  Table::Cell name(op.kind == OpKind::MatMul ? named_product(plan, op) : op.name);
  name.swatch = static_cast<int>(meaning_of(op));
  Table::Row row{{number, name, names_of(plan, op.in), names_of(plan, op.out), op.out.empty() ? Table::Cell() : Table::Cell(written),
                  work ? Table::Cell(work) : Table::Cell(), us > 0 ? Table::Cell(us) : Table::Cell()}};
  for (Table::Cell& cell : row.cells) cell.tip = describe(plan, op) + (op.note.empty() ? "" : "\n" + op.note);
  return row;
}

}  // namespace

Table plan_rows(const Plan& plan, const PlanTimes& times, const std::function<bool(const std::string& block)>& folded) {
  using Kind = Table::Kind;
  Table table{{{"number", "#", "", Kind::Count}, {"op", "op", "", Kind::Text}, {"reads", "reads", "", Kind::Text},
               {"writes", "writes", "", Kind::Text}, {"bytes", "written", "", Kind::Bytes}, {"flop", "FLOP", "", Kind::Significant},
               {"us", times.means ? "mean" : "median", "µs", Kind::Time}}, {}};
  std::string heading, block;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const std::string part = part_of(plan, plan.ops[i]), of_phase = std::string(to_string(plan.ops[i].phase)) + " · " + part;
    const bool fold = !part.empty() && folded(part);
    if (const std::string next = part.empty() ? "" : of_phase; next != block)
      if (block = next; !part.empty()) table.rows.push_back({{block_heading(plan, times, i, part, fold)}, Table::Row::Part::Heading});
    if (fold) {
      heading.clear();
      continue;
    }
    if (const std::string next = heading_of(plan, plan.ops[i]); next != heading)
      table.rows.push_back({{heading = next}, Table::Row::Part::Heading});
    table.rows.push_back(row_of(plan, i, times.us[i]));
  }
  return table;
}

std::map<std::string, std::string> blocks_of(const Plan& plan) {
  std::map<std::string, std::string> blocks;
  for (size_t i = 0; i < std::min(plan.layer_names.size(), plan.layer_parts.size()); ++i)
    if (!plan.layer_parts[i].empty()) blocks[plan.layer_names[i]] = plan.layer_parts[i];
  return blocks;
}

std::vector<prof::OpTag> op_tags(const Plan& plan, const prof::Trace& trace) {
  std::vector<prof::OpTag> tags(plan.ops.size(), prof::kNoOp);
  // An executor registers a plan's ops in order. The newest registration is the running one, or the one that
  // ran when work was last recorded.
  constexpr size_t kNewest = 20'000;
  const auto times = op_times(trace, kNewest);
  size_t newest = 0;
  for (size_t base = trace.ops.size(); base-- > 1;) {
    if (!runs_from(plan, trace.ops, base)) continue;
    if (newest == 0) newest = base;
    const auto recorded = times.lower_bound(static_cast<prof::OpTag>(base));
    if (recorded == times.end() || recorded->first >= base + tags.size()) continue;
    newest = base;
    break;
  }
  for (size_t i = 0; newest > 0 && i < tags.size(); ++i) tags[i] = static_cast<prof::OpTag>(newest + i);
  if (newest > 0) return tags;
  for (size_t i = 0; i < plan.ops.size(); ++i)
    for (size_t tag = 1; tag < trace.ops.size(); ++tag)
      if (trace.ops[tag].name == plan.ops[i].name && trace.ops[tag].phase == to_string(plan.ops[i].phase))
        tags[i] = static_cast<prof::OpTag>(tag);
  return tags;
}

std::map<prof::OpTag, OpTime> op_times(const prof::Trace& trace, size_t newest_spans) {
  std::map<prof::OpTag, std::vector<uint64_t>> durations;
  std::map<std::pair<prof::OpTag, uint32_t>, uint64_t> of_step;  // an op may be several kernels
  for (const prof::Track* track : work_tracks(trace)) {
    size_t seen = 0;
    for (auto block = track->blocks.rbegin(); block != track->blocks.rend() && seen < newest_spans; ++block)
      for (const prof::Span& span : block->spans) {
        ++seen;
        if (span.op == prof::kNoOp) continue;
        if (span.step > 0) of_step[{span.op, span.step}] += span.duration;
        else durations[span.op].push_back(span.duration);
      }
  }
  for (const auto& [work, ns] : of_step) durations[work.first].push_back(ns);
  std::map<prof::OpTag, OpTime> times;
  for (auto& [op, ns] : durations) {
    const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
    std::ranges::nth_element(ns, middle);
    times[op] = {ns.size(), static_cast<double>(*middle) * 1e-3};
  }
  return times;
}

PlanTimes plan_times(const Plan& plan, const prof::Trace& trace) {
  PlanTimes times{std::vector<double>(plan.ops.size(), 0.0)};
  for (const prof::InnerPart& part : prof::InnerParts(trace).all()) add_part(times, plan, trace, part);
  times.means = times.waits_us > 0 || std::ranges::any_of(times.us, [](double us) { return us > 0; });
  if (times.means) return times;
  const auto measured = op_times(trace);
  const auto tags = op_tags(plan, trace);
  for (size_t i = 0; i < tags.size(); ++i)
    if (const auto time = measured.find(tags[i]); tags[i] != prof::kNoOp && time != measured.end())
      times.us[i] = time->second.us;
  return times;
}

}  // namespace ws::app
