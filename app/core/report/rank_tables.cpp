#include "app/core/report/report_sections.h"

#include <algorithm>
#include <limits>

namespace ws::app {
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
  return report.computation ? "means of all ranks · waits: of the ranks that wait · exposed: transfer not under computation" : "means of all ranks · waits: of the ranks that wait";
}

StepUnit unit_of(const prof::RankReport& report) { return StepUnit(report.median_step_us > 0 ? report.median_step_us : report.step_us); }

namespace {

// Units stand in the title of the table, and numbers of a column have as many digits.
void tidy(Table& table, const StepUnit& unit) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    Table::Column& column = table.columns[c];
    for (Table::Row& row : table.rows)
      if (unit.ms && column.key.ends_with("_us") && row.cells[c].known()) row.cells[c] = unit.cell(row.cells[c].number());
    column.unit.clear();
    if (column.kind == Table::Kind::Significant) column.kind = Table::Kind::Number;
  }
  choose_decimals(table);
}

void add_sums(Table& table, const prof::RankReport& report) {
  Table::Row all{{"all"}, Table::Row::Part::Sum};
  for (size_t c = 1; c < table.columns.size(); ++c) {
    double sum = 0;
    const bool bytes = table.columns[c].key == "bytes", percent = table.columns[c].key == "peak_percent";
    for (size_t r = 0; r < table.rows.size(); ++r) sum += table.rows[r].cells[c].number() * (bytes ? report.collectives[r].count : 1);
    all.cells.emplace_back(percent ? std::numeric_limits<double>::quiet_NaN() : sum);
  }
  table.rows.push_back(std::move(all));
}

}  // namespace

Table collectives_table(const prof::RankReport& report, bool wide) {
  std::vector<std::string> keys{"name", "bytes", "count", "wait_us", "transfer_us"};
  if (report.computation) keys.emplace_back("exposed_us");
  if (report.computation && wide) keys.emplace_back("cost_us");  // their sum
  if (wide && std::ranges::any_of(report.collectives, [](const auto& c) { return c.bus_gb_s > 0 && c.peak_gb_s > 0; }))
    keys.push_back("peak_percent");
  Table table = with_columns(prof::collective_table(report), keys);
  if (!wide) {
    const std::vector<std::string> names = short_collective_names(report);
    for (size_t r = 0; r < names.size(); ++r) table.rows[r].cells[0].text = names[r];
    table.columns[0].tip += " The CSV file has the names of the kernels.";
  }
  if (table.rows.size() > 1) add_sums(table, report);
  tidy(table, unit_of(report));
  return table;
}

Table ranks_table(const prof::RankReport& report, bool wide) {
  std::vector<std::string> keys{"rank"};
  if (std::ranges::any_of(report.ranks, [](const auto& r) { return !r.host.empty(); })) keys.push_back("host");
  keys.emplace_back("late_us");  // the headline and the histogram are about it
  if (wide) keys.emplace_back("step_us");
  if (report.median_step_us > 0) keys.emplace_back("computes_us");
  keys.insert(keys.end(), {"wait_us", "transfer_us"});
  if (report.computation) keys.push_back("exposed_us");
  keys.push_back("caused_us");
  Table table = with_columns(prof::rank_table(report), keys);
  tidy(table, unit_of(report));
  return table;
}

}  // namespace ws::app
