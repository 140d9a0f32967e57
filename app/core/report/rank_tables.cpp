#include "app/core/report/rank_tables.h"

#include <algorithm>
#include <limits>

namespace ws::app {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
using Kind = FigureTable::Kind;

// 0: not known.
double share_of_peak(const prof::CollectiveRow& row) { return row.peak_gb_s > 0 ? row.bus_gb_s / row.peak_gb_s : 0; }

}  // namespace

std::vector<std::string> short_collective_names(const prof::RankReport& report) {
  std::vector<std::string> names;
  for (const prof::CollectiveRow& row : report.collectives) names.push_back(prof::short_collective_name(row.name));
  std::vector<bool> alike(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t j = 0; j < names.size(); ++j)
      alike[i] = alike[i] || (i != j && names[i] == names[j] && report.collectives[i].bytes == report.collectives[j].bytes);
  for (size_t i = 0; i < names.size(); ++i)
    if (alike[i]) names[i] = report.collectives[i].name;
  return names;
}

std::string collectives_note(const prof::RankReport& report) {
  return report.computation ? "wait: for the last rank · exposed: transfer not under computation" : "wait: for the last rank";
}

FigureTable collectives_table(const prof::RankReport& report, bool wide) {
  FigureTable table;
  const std::vector<std::string> names = short_collective_names(report);
  table.columns = {{"name", "", Kind::Text, 0,
                    wide ? "Calls with the same name and size."
                         : "Calls with the same name and size. The CSV file has the names of the kernels."},
                   {"bytes", "B", Kind::Bytes, 0, "Size of one call."},
                   {"count", "", Kind::Number, 0, "Calls of a step."},
                   {"wait", "us", Kind::Number, 1, "Time until the last rank arrives."},
                   {"transfer", "us", Kind::Number, 1, "Time from the last arrival to the end."}};
  if (report.computation) {
    table.columns.push_back({"exposed", "us", Kind::Number, 1, "Part of the transfer that no computation hides."});
    table.columns.push_back({"µs a step", "us", Kind::Number, 1, "Waiting and exposed transfer: what a step loses."});
  }
  const bool peaks = wide && std::ranges::any_of(report.collectives, [](const auto& c) { return share_of_peak(c) > 0; });
  if (peaks)
    table.columns.push_back({"% of peak", "%", Kind::Number, 0,
                             "Bus bandwidth, of what these GPUs reach with such messages when nothing else runs."});
  double bytes = 0, count = 0, wait = 0, transfer = 0, exposed = 0;
  for (size_t i = 0; i < report.collectives.size(); ++i) {
    const prof::CollectiveRow& c = report.collectives[i];
    const double size = c.bytes > 0 ? static_cast<double>(c.bytes) : kUnknown;
    table.rows.push_back({wide ? c.name : names[i], size, c.count, c.wait, c.transfer});
    if (report.computation) table.rows.back().insert(table.rows.back().end(), {c.exposed, c.wait + c.exposed});
    if (peaks) table.rows.back().emplace_back(share_of_peak(c) > 0 ? 100 * share_of_peak(c) : kUnknown);
    bytes += size * c.count, count += c.count, wait += c.wait, transfer += c.transfer, exposed += c.exposed;
  }
  if (table.rows.size() > 1) {
    table.sum = true;
    table.rows.push_back({std::string("all"), bytes, count, wait, transfer});
    if (report.computation) table.rows.back().insert(table.rows.back().end(), {exposed, wait + exposed});
    if (peaks) table.rows.back().emplace_back(kUnknown);
  }
  choose_decimals(table);
  return table;
}

FigureTable ranks_table(const prof::RankReport& report) {
  FigureTable table;
  const bool hosts = std::ranges::any_of(report.ranks, [](const auto& r) { return !r.host.empty(); });
  table.columns = {{"rank", "", Kind::Number, 0, ""}};
  if (hosts) table.columns.push_back({"host", "", Kind::Text, 0, ""});
  struct Column {
    const char *name, *tip;
    double prof::RankRow::*value;
  };
  std::vector<Column> columns{{"step", "Mean from the last collective of a step to that of the next.", &prof::RankRow::step},
                              {"late", "Arrives after the first rank.", &prof::RankRow::late},
                              {"wait", "Waits for the last rank.", &prof::RankRow::wait},
                              {"transfer", "Time from the last arrival to the end.", &prof::RankRow::transfer},
                              {"exposed", "Part of the transfer that no computation hides.", &prof::RankRow::exposed},
                              {"caused", "What a rank waits for this one, while this one is the last.", &prof::RankRow::caused}};
  if (!report.computation) std::erase_if(columns, [](const Column& c) { return c.value == &prof::RankRow::exposed; });
  for (const Column& column : columns) table.columns.push_back({column.name, "us", Kind::Number, 1, column.tip});
  for (const prof::RankRow& r : report.ranks) {
    std::vector<FigureTable::Cell> row{static_cast<double>(r.rank)};
    if (hosts) row.emplace_back(r.host);
    for (const Column& column : columns) row.emplace_back(r.recorded ? r.*column.value : kUnknown);
    table.rows.push_back(std::move(row));
  }
  choose_decimals(table);
  return table;
}

}  // namespace ws::app
