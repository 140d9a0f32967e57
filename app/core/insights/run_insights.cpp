#include "app/core/insights/run_insights.h"

#include <nlohmann/json.hpp>

#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/trace_insights.h"
#include "profiling/base/failure.h"
#include "profiling/base/version.h"

namespace ws::app {

namespace {

void predict(std::vector<Insight>& insights, const prof::RunData& run) try {
  if (any_edits(insights)) predict_savings(insights, prof::step_causes(run), run.trace, 0);
} catch (const Failure&) {  // it has nothing that could be replayed
}

}  // namespace

std::vector<Insight> run_insights(const prof::RunData& run) {
  std::vector<Insight> all = rank_insights(prof::rank_report(run));
  for (Insight& more : trace_insights(look_of(run.trace))) all.push_back(std::move(more));
  if (auto late = late_multiprocessor(prof::multiprocessor_report(run.trace))) all.push_back(std::move(*late));
  for (Insight& more : stall_insights(run.trace, !run.summary.spec.empty())) all.push_back(std::move(more));
  predict(all, run);
  return all;
}

std::string to_json(const std::vector<Insight>& insights, const prof::Trace& trace) {
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"insights", nlohmann::ordered_json::array()}};
  for (const Insight& insight : insights) {
    nlohmann::ordered_json one{{"rule", insight.rule}, {"headline", insight.headline}, {"why", insight.why},
                               {"meaning", prof::meaning_name(insight.look_at)}};
    if (insight.cost_ns > 0) one["cost_us"] = insight.cost_ns * 1e-3;
    if (insight.predicted_us > 0) one["predicted_step_us"] = insight.predicted_us;
    if (insight.saves_us.known()) one["edits"] = insight.edits, one["saves_us"] = {{"us", insight.saves_us.value}, {"half_width", insight.saves_us.half_width}};
    for (const auto& [key, value] : insight.change) one["change"][key] = value;
    if (insight.place) {
      const prof::Span& span = insight.place->span;
      one["span"] = {{"name", trace.name(span.name)}, {"start_ns", span.start}, {"duration_ns", static_cast<int64_t>(span.duration)}};
    }
    json["insights"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::app
