#include "app/core/report/report_sections.h"

#include <algorithm>

#include "app/core/report/multiprocessor_figure.h"
#include "app/core/report/report_figures.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

std::string whose(const std::vector<ReportRun>& runs, size_t i) {
  return runs.size() > 1 ? letter(runs, i) + ": " : "";
}

ReportFigure figure_of(const std::vector<ReportRun>& runs, size_t i) {
  constexpr double kWidth = 640, kMost = 560;
  const prof::MultiprocessorReport& report = runs[i].inside;
  const double rows = static_cast<double>(report.rows.size());
  const double high = std::min(kMost, step_figure_height(report, report.typical, kWidth, std::clamp(kMost / rows, 2.0, 18.0)));
  const StepMap map = step_map(report, report.typical, kWidth, high);
  return {"inside" + (i == 0 ? std::string() : "-" + std::to_string(i + 1)),
          whose(runs, i) + prof::late_headline(report) + ".",
          "A typical step by multiprocessor and time: " + prof::step_caption(report, report.typical) + ". " +
              whose(runs, i) + prof::caption(report) + ".",
          step_figure(report, map, paper_ink(), kWidth)};
}

bool on_all(const prof::MultiprocessorReport& report) {
  return std::ranges::all_of(report.phases, [&](const auto& phase) { return static_cast<size_t>(phase.multiprocessors) == report.rows.size(); });
}

}  // namespace


std::string parts_note(const prof::MultiprocessorReport& report) {
  return "mean of a step, µs, over " + std::string(on_all(report) ? std::to_string(report.rows.size()) + " multiprocessors" : "the multiprocessors") + " (SMs)";
}

Table parts_table(const prof::MultiprocessorReport& report) {
  std::vector<std::string> columns{"name", "min_us", "median_us", "max_us", "multiprocessors", "slowest"};
  if (on_all(report)) std::erase(columns, "multiprocessors");
  Table table = with_columns(prof::part_table(report), columns);
  for (Table::Column& column : table.columns) column.unit.clear();
  for (Table::Row& row : table.rows) row.cells.back().text = short_name(std::get<std::string>(row.cells.back().value));
  choose_decimals(table);
  return table;
}

std::vector<ReportFigure> multiprocessor_figures(const std::vector<ReportRun>& runs) {
  std::vector<ReportFigure> all;
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i].inside.any()) all.push_back(figure_of(runs, i));
  return all;
}

std::string multiprocessors_html(const std::vector<ReportRun>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].inside.any()) continue;
    const ReportFigure figure = figure_of(runs, i);
    html += "<h2>Inside the kernel" + (runs.size() > 1 ? " of " + letter(runs, i) : std::string()) + "</h2>\n";
    html += "<p><b>" + escape_xml(figure.title) + "</b></p>\n<figure>" + to_svg(figure.drawing) + "<figcaption>" +
            escape_xml(figure.caption) + "</figcaption></figure>\n";
    for (size_t late = 1; late < runs[i].inside.late.size(); ++late)
      html += "<p class=\"note\">" + escape_xml(prof::late_text(runs[i].inside.late[late])) + ".</p>\n";
    html += "<p><b>Parts</b>, " + escape_xml(parts_note(runs[i].inside)) + "</p>\n" + to_html(parts_table(runs[i].inside));
  }
  return html;
}

}  // namespace ws::app
