#include "app/core/report/report_sections.h"

#include <algorithm>

#include "app/core/report/rank_figures.h"
#include "app/core/report/report_figures.h"
#include "profiling/base/safe_text.h"

namespace ws::app {
namespace {

constexpr double kFigureWidth = 640;

std::vector<ReportFigure> rank_figures_of(const std::vector<ReportRun>& runs, size_t i) {
  constexpr double kMapFrame = 44, kMapRow = 18, kMostMap = 420, kArrivals = 280, kBandwidth = 220, kSteps = 130;
  const prof::RankReport& report = runs[i].ranks;
  if (!report.any()) return {};
  const std::string suffix = i == 0 ? "" : "-" + std::to_string(i + 1);
  const std::string whose = runs.size() > 1 ? letter(runs, i) + ": " : "", of = whose + rank_caption(report) + ".";
  const double high = std::min(kMostMap, kMapFrame + kMapRow * static_cast<double>(report.ranks.size()));
  const FigureInk ink = paper_ink();
  std::vector<ReportFigure> all{
      {"lateness" + suffix, whose + rank_headline(report), "Lateness after the first rank, by rank and step. " + of,
       lateness_figure(report, kFigureWidth, high, ink)},
      {"arrivals" + suffix, whose + "Arrival by rank",
       "Steps by their lateness after the first rank, on a log axis. " + of,
       arrivals_figure(report, kFigureWidth, kArrivals, ink)}};
  if (has_step_of_ranks(report))
    all.push_back({"rank-steps" + suffix, whose + "The median step of each rank", "What each rank does in the median step. " + of, rank_steps_figure(report, kFigureWidth, kSteps, ink)});
  if (has_bandwidth(report))
    all.push_back({"bandwidth" + suffix, whose + "Bandwidth",
                   "Bus GB/s of each collective against its message size. " + of,
                   bandwidth_figure(report, kFigureWidth, kBandwidth, ink)});
  return all;
}

}  // namespace

std::vector<ReportFigure> rank_figures(const std::vector<ReportRun>& runs) {
  std::vector<ReportFigure> all;
  for (size_t i = 0; i < runs.size(); ++i)
    for (ReportFigure& figure : rank_figures_of(runs, i)) all.push_back(std::move(figure));
  return all;
}

std::string ranks_html(const std::vector<ReportRun>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].ranks.any()) continue;
    html += runs.size() > 1 ? "<h2>Ranks of " + letter(runs, i) + "</h2>\n" : "<h2>Ranks</h2>\n";
    for (const ReportFigure& f : rank_figures_of(runs, i))
      html += "<p><b>" + escape_xml(f.title) + "</b></p>\n<figure>" + to_svg(f.drawing) + "<figcaption>" +
              escape_xml(f.caption) + "</figcaption></figure>\n";
    const std::string unit = unit_of(runs[i].ranks).name();
    html += "<p><b>Collectives</b>, " + unit + "</p>\n" + to_html(collectives_table(runs[i].ranks, true)) +
            "<p class=\"note\">" + escape_xml(collectives_note(runs[i].ranks)) + "</p>\n<p><b>Ranks</b>, " + unit + "</p>\n" +
            to_html(ranks_table(runs[i].ranks, false));
    for (const auto& lines : {prof::more_cost_texts(runs[i].ranks), runs[i].ranks.notes})
      for (const std::string& line : lines) html += "<p class=\"note\">" + escape_xml(line) + "</p>\n";
  }
  return html;
}

}  // namespace ws::app
