#include <nlohmann/json.hpp>

#include "profiling/analysis/multiprocessors.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::prof {
namespace {

std::string counted(size_t count, const char* what) {
  return count_text(static_cast<double>(count)) + " " + what + (count == 1 ? "" : "s");
}

double us_between(TimeNs begin, TimeNs end) { return static_cast<double>(end - begin) * 1e-3; }

nlohmann::json late_json(const MultiprocessorReport& report) {
  nlohmann::json late = nlohmann::json::array();
  for (const LateMultiprocessor& one : report.late)
    late.push_back({{"name", one.name},
                    {"part", one.phase},
                    {"late_us", one.late_us},
                    {"share", one.share},
                    {"cost_us", one.cost_us},
                    {"text", late_text(one)}});
  return late;
}

nlohmann::json step_json(const MultiprocessorReport& report, size_t at) {
  const InnerStep& step = report.steps[at];
  nlohmann::json bars = nlohmann::json::array(), late = bars;
  for (const InnerBar& bar : report.bars_of(at))
    bars.push_back({{"name", row_name(report, bar.row)},
                    {"lane", report.rows[bar.row].lanes[bar.lane]},
                    {"part", report.phases[bar.part].name},
                    {"begin_us", us_between(step.begin, bar.begin)},
                    {"end_us", us_between(step.begin, bar.end)}});
  for (const LateEnd& one : step.late) late.push_back(late_text(report, one));
  return {{"step", step.number},   {"kernel", step.kernel}, {"begin_ns", step.begin},
          {"length_us", step.us()}, {"late", late},          {"parts", bars}};
}

}  // namespace

std::string row_name(const MultiprocessorReport& report, size_t row) {
  const bool one_gpu = report.rows.front().gpu == report.rows.back().gpu;
  return (one_gpu ? "" : report.rows[row].gpu + " ") + report.rows[row].name;
}

std::string late_text(const LateMultiprocessor& late) {
  return late.name + " ends " + late.phase + " " + fixed(late.late_us, 2) + " µs later than the median in " +
         percent(late.share, 0) + " of the steps: costs " + fixed(late.cost_us, 2) + " µs per step";
}

std::string late_text(const MultiprocessorReport& report, const LateEnd& late) {
  return row_name(report, late.row) + " ends " + report.phases[late.part].name + " " +
         fixed(us_between(late.usual, late.end), 2) + " µs later than the median";
}

double waits_us(const MultiprocessorReport& report) {
  double sum = 0;
  for (const InnerPhase& phase : report.phases)
    if (phase.meaning == Meaning::Sync) sum += phase.median;
  return sum;
}

std::string late_headline(const MultiprocessorReport& report) {
  if (!report.late.empty()) return late_text(report.late[0]);
  constexpr double kWorthNaming = 0.05;
  const double share = report.step_us > 0 ? waits_us(report) / report.step_us : 0;
  if (share < kWorthNaming) return "No multiprocessor is regularly late";
  return "A multiprocessor waits " + percent(share, 0) + " of a step for others. None is regularly late";
}

std::string caption(const MultiprocessorReport& report) {
  return counted(report.rows.size(), "multiprocessor") + " · " + counted(report.steps.size(), "step") + " · " +
         time_text(report.step_us) + " per step inside the kernel, without launches";
}

std::string step_caption(const MultiprocessorReport& report, size_t at) {
  const InnerStep& step = report.steps[at];
  std::string text = step.number < 0 ? "launch" : "step " + count_text(static_cast<double>(step.number));
  if (!step.kernel.empty()) text += " of " + step.kernel;
  return text + " · " + time_text(step.us());
}

std::string bar_text(const MultiprocessorReport& report, const InnerBar& bar) {
  const InnerStep& step = report.steps[bar.step];
  return row_name(report, bar.row) + ": " + report.phases[bar.part].name + " takes " +
         fixed(us_between(bar.begin, bar.end), 2) + " µs, from " + fixed(us_between(step.begin, bar.begin), 2) +
         " to " + fixed(us_between(step.begin, bar.end), 2) + " µs of the step";
}

Table part_table(const MultiprocessorReport& report) {
  using Kind = Table::Kind;
  Table table{{{"min_us", "min", "µs", Kind::Number, 3, 10, "Mean of the fastest multiprocessor."},
               {"median_us", "median", "µs", Kind::Number, 3, 10, "Median of the multiprocessors."},
               {"max_us", "max", "µs", Kind::Number, 3, 10, "Mean of the slowest multiprocessor."},
               {"multiprocessors", "SMs", "", Kind::Count, 0, 8, "Multiprocessors that have this part."},
               {"slowest", "slowest SM", "", Kind::Text, 0, 20, "The multiprocessor that takes the longest."},
               {"name", "part", "", Kind::Text, 0, 1, "An op of the plan, a wait, or a range that the program named."}}, {}};
  for (const InnerPhase& phase : report.phases)
    table.rows.push_back({{phase.least, phase.median, phase.most, phase.multiprocessors, phase.slowest, phase.name}});
  return table;
}

std::string to_text(const MultiprocessorReport& report) {
  if (!report.any())
    return "No kernel of this run records its parts. Train on a GPU with the launch persistent (exec.launch=persistent), or "
           "mark the parts of your own kernel with kernel_ranges.cuh.\n";
  std::string text;
  for (const LateMultiprocessor& late : report.late) text += late_text(late) + "\n";
  if (report.late.empty()) text = late_headline(report) + ".\n";
  text += "\n" + caption(report) + "\n\n" + to_text(part_table(report));
  text += "\nA typical step: " + step_caption(report, report.typical) + "\n";
  for (const LateEnd& late : report.steps[report.typical].late) text += late_text(report, late) + "\n";
  return text;
}

std::string to_json(const MultiprocessorReport& report) {
  nlohmann::json json{{"version", kJsonVersion},
                      {"multiprocessors", report.rows.size()},
                      {"steps", report.steps.size()},
                      {"step_us", report.step_us},
                      {"parts", nlohmann::json(rows_json(part_table(report)))},
                      {"late", late_json(report)}};
  if (report.any()) json["typical_step"] = step_json(report, report.typical);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
