#include "app/core/report/figure_table.h"

#include <algorithm>
#include <cmath>

#include "app/core/report/drawing.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

void choose_decimals(FigureTable& table) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].kind != FigureTable::Kind::Number) continue;
    double most = 0;
    bool whole = true;
    for (const auto& row : table.rows) {
      const double value = std::get<double>(row[c]);
      if (std::isnan(value)) continue;
      most = std::max(most, std::abs(value)), whole &= value == std::floor(value);
    }
    table.columns[c].decimals = whole || most >= 1000 ? 0 : most >= 10 ? 1 : 2;
  }
}

std::string cell_text(const FigureTable& table, size_t row, size_t column) {
  const FigureTable::Cell& cell = table.rows[row][column];
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double value = std::get<double>(cell);
  if (std::isnan(value)) return "–";
  return table.columns[column].kind == FigureTable::Kind::Bytes ? bytes_text(value) : fixed(value, table.columns[column].decimals);
}

std::string to_csv(const FigureTable& table) {
  std::string out;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const auto& column = table.columns[c];
    const std::string name = column.name == "µs a step" ? "cost" : column.name;
    out += (c ? "," : "") + name + (column.unit.empty() ? "" : "_" + column.unit);
  }
  for (const auto& row : table.rows) {
    out += "\n";
    for (size_t c = 0; c < row.size(); ++c) {
      const auto* text = std::get_if<std::string>(&row[c]);
      const double value = text ? 0 : std::get<double>(row[c]);
      out += (c ? "," : "") + (text ? quoted(*text) : std::isnan(value) ? std::string() : formatted("{}", value));
    }
  }
  return out + "\n";
}

std::string to_html(const FigureTable& table) {
  std::string out = "<table class=\"kernels\"><tr>";
  for (const FigureTable::Column& column : table.columns) out += "<th>" + escape_xml(column.name) + "</th>";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const char* tag = table.sum && r + 1 == table.rows.size() ? "th" : "td";
    out += "</tr>\n<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c)
      out += std::string("<") + tag + ">" + escape_xml(cell_text(table, r, c)) + "</" + tag + ">";
  }
  return out + "</tr></table>\n";
}

}  // namespace ws::app
