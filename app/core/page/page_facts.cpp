#include "app/core/page/page_parts.h"

#include <algorithm>
#include <filesystem>

#include "app/core/comparison/comparison_text.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "app/core/runs/data_shape.h"
#include "app/core/runs/loss_figure.h"
#include "app/core/runs/spec_line.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/json_input.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(const std::string& text) { return Json::parse(text); }

Json machine_of(const prof::RunSummary& run) {
  const auto object = parse_json_or_null(run.machine);
  return object.is_object() ? Json(object) : Json::object();
}

Json choices_of(const RunSpec* spec) {
  auto list = Json::array();
  if (!spec) return list;
  for (const Field& field : fields())
    if (relevant(*spec, field.key))
      list.push_back({{"group", field.group}, {"label", field.label}, {"value", field_text(*spec, field.key)}});
  return list;
}

Json split_of(const prof::StepSample& sample) {
  auto parts = Json::array();
  if (!sample.traced()) return parts;
  const auto steps = static_cast<double>(sample.median_parts.steps);
  for (const prof::BreakdownPart& part : prof::parts_of(sample.median_parts))
    parts.push_back({{"name", prof::part_name(part.id)}, {"meaning", static_cast<int>(part.id.meaning)}, {"waits", part.id.kind == prof::PartKind::RankWait},
                     {"us", static_cast<double>(part.ns) * 1e-3 / steps}});
  return parts;
}

Json insights_of(const PageRun& run) {
  auto list = Json::array();
  const prof::TimeNs begin = run.data.trace.first_time();
  for (const Insight& insight : run_insights(run.data).found) {
    list.push_back({{"headline", insight.headline}, {"why", whole_why(insight)}, {"meaning", static_cast<int>(insight.look_at)}});
    if (insight.place) list.back()["at"] = {insight.place->span.start - begin, insight.place->span.end() - begin};
  }
  return list;
}

// Rows of `stats --by WHAT --json`. Only what the run names: without layers, all rows would be "(no layer)".
Json rows_by(const PageRun& run, prof::GroupBy by) {
  const Json stats = parsed(prof::to_json(prof::run_stats(run.data, by), prof::to_string(by)));
  return {{"rows", stats.at(std::string("by_") + prof::to_string(by))}, {"cpu", stats.value("cpu_ops", Json::array())}};
}

// One row for each launch shape of a kernel, below the row of the kernel.
Json shapes_of(const PageRun& run) {
  auto list = Json::array();
  const prof::Trace& trace = run.data.trace;
  for (const prof::KernelRow& row : prof::kernel_table(trace, -prof::kAlways, prof::kAlways, prof::GroupBy::Shape))
    list.push_back({{"kernel", trace.name(row.name)}, {"grid", row.detail.grid}, {"block", row.detail.block}, {"count", row.time.count},
                    {"total_us", static_cast<double>(row.time.total) * 1e-3}, {"mean_us", row.time.mean * 1e-3},
                    {"p50_us", static_cast<double>(row.time.median) * 1e-3}, {"p99_us", static_cast<double>(row.time.p99) * 1e-3}});
  return list;
}

bool names_any(const prof::Trace& trace, prof::GroupBy by) {
  return std::ranges::any_of(trace.ops, [by](const prof::OpInfo& op) { return !prof::group_of(op, by).empty(); });
}

Json modules_of(const PageRun& run) {
  const prof::CountedSteps counted = prof::counted_steps(run.report.run.sample);
  return parsed(prof::to_json(prof::module_tree(run.data.trace, counted), counted)).at("modules");
}

Json tables_of(const PageRun& run) {
  Json tables{{"stats", parsed(prof::to_json(prof::run_stats(run.data)))}, {"shapes", shapes_of(run)}};
  for (const auto by : {prof::GroupBy::Op, prof::GroupBy::Line})
    if (names_any(run.data.trace, by)) tables[prof::to_string(by)] = rows_by(run, by);
  tables["modules"] = modules_of(run);
  if (run.report.ranks.any()) tables["ranks"] = parsed(prof::to_json(run.report.ranks));
  return tables;
}

constexpr size_t kRunColours = 8;  // of page.css

Json run_json(const PageRun& run, const std::string& letter) {
  const prof::RunSummary& summary = run.data.summary;
  const LossFigure loss = loss_figure(summary.test_loss, run.data.metrics, &prof::Metric::loss);
  Json json{{"letter", letter},
            {"name", run.report.run.name},
            {"file", std::filesystem::path(run.path).filename().string()},
            {"device", summary.device},
            {"created", summary.created},
            {"status", summary.status},
            {"origin", summary.origin},
            {"notes", summary.notes},
            {"tags", summary.tags},
            {"traced", summary.said("traced")},
            {"machine", machine_of(summary)},
            {"choices", choices_of(run.report.run.choices())},
            {"spec", run.report.run.spec ? spec_line(*run.report.run.spec) : ""},
            {"loss", loss.value},
            {"loss_name", long_name(loss)},
            {"test_accuracy", summary.final_accuracy},
            {"peak_bytes", prof::peak_memory(run.data)},
            {"counted", prof::counted_steps(run.report.run.sample).text},
            {"split", split_of(run.report.run.sample)},
            {"insights", insights_of(run)}};
  json.update(tables_of(run));
  return json;
}

Json differences(const std::vector<ReportRun>& runs) {
  auto list = Json::array();
  for (const ChoiceRow& row : choices_that_differ(runs)) list.push_back({{"key", row.key}, {"values", row.values}});
  return list;
}

// What `diff --json` prints.
Json pairs_of(const std::vector<ReportRun>& runs) {
  auto list = Json::array();
  for (size_t i = 1; i < runs.size(); ++i) {
    const Comparison comparison = compare(runs[0].run, runs[i].run);
    list.push_back({{"b", i}, {"answer", answer_text(comparison, letter(runs, 0), letter(runs, i))}, {"diff", parsed(to_json(comparison))}});
  }
  return list;
}

}  // namespace

Json page_facts(const std::vector<PageRun>& runs) {
  std::vector<ReportRun> reports;
  for (const PageRun& run : runs) reports.push_back(run.report);
  Json facts{{"version", 1}, {"by", std::string("Warpsight ") + version()}, {"headline", headline(reports)},
             {"warnings", unfair(reports)}, {"differs", differences(reports)}, {"pairs", pairs_of(reports)}, {"runs", Json::array()}};
  for (size_t m = 0; m < prof::kMeanings; ++m) facts["meanings"].push_back(prof::meaning_name(static_cast<prof::Meaning>(m)));
  for (size_t i = 0; i < runs.size(); ++i) {
    facts["runs"].push_back(run_json(runs[i], letter(reports, i)));
    facts["runs"][i]["colour"] = (reports[i].letter < 0 ? i : static_cast<size_t>(reports[i].letter)) % kRunColours;
  }
  return facts;
}

}  // namespace ws::app
