#include "app/core/insights/run_insights.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/core/comparison/compared_run.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/trace_insights.h"
#include "app/core/runs/data_shape.h"
#include "app/core/runs/loss_figure.h"
#include "app/core/runs/machine.h"
#include "profiling/base/version.h"
#include "profiling/trace/code_places.h"

namespace ws::app {

namespace {

constexpr size_t kRowsWithOccupancy = 8;

// Width of the softmax output; 0 for a regression.
int64_t classes_of(const CompiledPlan& plan) {
  for (const Op& op : plan.before.ops)
    if (op.kind == OpKind::Softmax && !op.out.empty()) return plan.before.buffer(op.out[0]).cols;
  return 0;
}

void add_kernels(RunFacts& facts, const JudgedRun& run) {
  const prof::StepWindowNs row = run.sample.row;
  facts.kernels = prof::kernel_table(run.trace, row.begin, row.end, prof::GroupBy::Op);
  facts.layers = prof::kernel_table(run.trace, row.begin, row.end, prof::GroupBy::Layer);
  facts.kernels_per_step = run.sample.kernels_per_step;
  for (size_t i = 0; i < std::min(kRowsWithOccupancy, facts.kernels.size()); ++i) {
    const prof::Detail& detail = facts.kernels[i].detail;
    facts.occupancy.push_back(run.limits && detail.block[0] > 0 ? prof::occupancy_of(detail, *run.limits).share : -1);
  }
}

// A training of ours has rules about communication, with a change to try.
std::vector<Insight> found_in_ranks(const JudgedRun& run, const prof::RankReport& ranks) {
  std::vector<Insight> found = rank_insights(ranks);
  if (run.choices) std::erase_if(found, [](const Insight& one) { return one.rule != "late rank"; });
  return found;
}

// The choices say what could be done better. The trace adds what no choice explains.
std::vector<Insight> found_in_steps(const JudgedRun& run, const RunFacts& facts) {
  std::vector<Insight> found;
  if (facts.step_us > 0 || run.has_losses) found = insights(facts);
  TraceLook steps = look_of(run.trace, run.sample);
  steps.own_training = !run.imported;
  for (Insight& more : trace_insights(steps))
    if (std::ranges::find(found, more.look_at, &Insight::look_at) == found.end()) found.push_back(std::move(more));
  return found;
}

JudgedRun judged(const prof::RunData& data, const ComparedRun& run, const std::optional<CompiledPlan>& plan) {
  JudgedRun judged{.trace = data.trace, .choices = run.spec, .imported = run.imported, .sample = run.sample};
  judged.gpu = prof::used_gpu(data.trace) || (run.spec && run.spec->exec.device == Device::Cuda);
  judged.plan = plan ? &*plan : nullptr;
  judged.limits = card_limits(data.summary.device, data.summary.machine);
  judged.has_losses = !data.metrics.empty(), judged.first_loss = run.first_loss;
  judged.last_loss = mean_of_newest(data.metrics, &prof::Metric::loss).value;
  judged.driver_calls = run.driver_calls, judged.peak_bytes = run.peak_bytes, judged.tracing_cost = run.tracing_cost;
  return judged;
}

}  // namespace

namespace {

// What every view shows as the step: the split of the median one.
RunFacts facts_of_program(const JudgedRun& run) {
  if (!run.sample.traced()) return facts_of(judged_part(look_of(run.trace)));
  RunFacts facts = facts_of(RunSpec{}, run.sample.median_parts, true);
  facts.steps = run.sample.which, facts.rank = run.sample.rank;
  return facts;
}

TraceLook look_of_program(const JudgedRun& run) {
  TraceLook look = judged_part(look_of(run.trace));
  if (look.steps.count > 0 && run.sample.traced()) look.median_step_us = run.sample.median_step_us();
  return look;
}

}  // namespace

RunFacts facts_of(const JudgedRun& run) {
  if (!run.choices) return facts_of_program(run);
  RunFacts facts = facts_of(*run.choices, run.sample.median_parts, run.gpu);
  facts.steps = run.sample.which, facts.rank = run.sample.rank;
  if (run.sample.traced()) add_kernels(facts, run);
  facts.allocator_calls_per_step = std::fmax(run.driver_calls, 0);
  facts.first_loss = run.first_loss, facts.last_loss = run.last_loss;
  facts.diverged = run.has_losses && !std::isfinite(run.last_loss);
  facts.tracing_cost = run.tracing_cost;
  if (run.peak_bytes > 0) facts.peak_bytes = static_cast<int64_t>(run.peak_bytes);
  facts.plan = run.plan;
  if (run.plan) facts.classes = classes_of(*run.plan);
  return facts;
}

// What the comparison of its ranks shows comes first.
RunInsights insights_of(const JudgedRun& run, const prof::RankReport& ranks, const prof::MultiprocessorReport& inside) {
  RunInsights all{facts_of(run), found_in_ranks(run, ranks)};
  const auto add = [&all](std::vector<Insight>&& more) { std::ranges::move(more, std::back_inserter(all.found)); };
  add(run.choices ? found_in_steps(run, all.facts) : trace_insights(look_of_program(run)));
  if (auto late = late_multiprocessor(inside)) all.found.push_back(std::move(*late));
  add(stall_insights(run.trace, run.choices && !run.imported));
  return all;
}

RunInsights run_insights(const prof::RunData& data) {
  const prof::RankReport ranks = prof::rank_report(data);
  const ComparedRun run = compared_run(data, ranks);
  const std::optional<CompiledPlan> plan = run.spec ? plan_before_loading(*run.spec) : std::nullopt;
  RunInsights all = insights_of(judged(data, run, plan), ranks, prof::multiprocessor_report(data.trace));
  all.facts.plan = nullptr;
  predict_savings(all.found, [&] { return prof::step_causes(data); }, data.trace, all.facts);
  return all;
}

std::string line_of(const Insight& insight, const prof::Trace& trace) {
  if (!insight.place || insight.place->span.op >= trace.ops.size()) return {};
  return prof::line_of(trace.ops[insight.place->span.op]);
}

std::string to_json(const std::vector<Insight>& insights, const prof::Trace& trace) {
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"insights", nlohmann::ordered_json::array()}};
  for (const Insight& insight : insights) {
    nlohmann::ordered_json one{{"rule", insight.rule}, {"headline", insight.headline}, {"why", whole_why(insight)},
                               {"meaning", prof::meaning_name(insight.look_at)}};
    if (insight.cost_ns > 0) one["cost_us"] = insight.cost_ns * 1e-3;
    if (insight.rank >= 0) one["rank"] = insight.rank;
    if (const std::string action = action_of(insight); !action.empty()) one["action"] = action;
    if (insight.predicted_us > 0) one["predicted_step_us"] = insight.predicted_us;
    if (insight.saves_us.known()) one["edits"] = insight.edits, one["saves_us"] = {{"us", insight.saves_us.value}, {"half_width", insight.saves_us.half_width}};
    if (insight.at_most_us > 0) one["saves_at_most_us"] = insight.at_most_us;
    if (const std::string relation = relation_text(insight); !relation.empty()) one["relation"] = relation;
    for (const auto& [name, us] : insight.gpu_waits) one["gpu_waits_us"][name] = us;
    if (insight.calls_us > 0) one["calls_us"] = insight.calls_us, one["calls_work_us"] = insight.calls_work_us;
    for (const auto& [key, value] : insight.change) one["change"][key] = value;
    for (const Insight& finding : insight.same_part) one["same_part"].push_back(finding.rule);
    for (const Insight& part : insight.includes) one["includes"].push_back(part.rule);
    if (const std::string line = line_of(insight, trace); !line.empty()) one["line"] = line;
    if (insight.place) {
      const prof::Span& span = insight.place->span;
      one["span"] = {{"name", trace.name(span.name)}, {"start_ns", span.start}, {"duration_ns", static_cast<int64_t>(span.duration)}};
    }
    json["insights"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::app
