#include "profiling/base/table.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

bool is_left(const Table::Column& column) { return column.kind == Table::Kind::Text; }

std::string number_text(double value, const Table::Column& column) {
  const auto with_sign = [&](double number) {
    return column.sign ? formatted("{:+.{}f}", number, column.decimals) : fixed(number, column.decimals);
  };
  switch (column.kind) {
    case Table::Kind::Count:
      return fixed(value, 0);
    case Table::Kind::Significant:
      return significant(value);
    case Table::Kind::Bytes:
      return bytes_text(value);
    case Table::Kind::Percent:
      return with_sign(100 * value);
    default:
      return with_sign(value);
  }
}

std::string heading(const Table::Column& column) {
  return column.name.empty() || column.unit.empty() ? column.name + column.unit : column.name + " " + column.unit;
}

// The columns that are printed.
std::vector<size_t> printed(const Table& table) {
  std::vector<size_t> shown;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const auto has_value = [c](const Table::Row& row) { return c < row.cells.size() && row.cells[c].known(); };
    const Table::Column& column = table.columns[c];
    if (column.width > 0 && (!column.hidden_if_unknown || std::ranges::any_of(table.rows, has_value))) shown.push_back(c);
  }
  return shown;
}

// A line of the printed table. `text_of(column)` has its cells.
template <class TextOf>
std::string line_of(const Table& table, const std::vector<size_t>& shown, size_t indent, const TextOf& text_of) {
  std::string line(indent, ' ');
  for (size_t i = 0; i < shown.size(); ++i) {
    const Table::Column& column = table.columns[shown[i]];
    if (i > 0) line += is_left(column) && !is_left(table.columns[shown[i - 1]]) ? "  " : " ";
    const std::string text = text_of(shown[i]);
    if (!is_left(column))
      line += formatted("{:>{}}", text, column.width);
    else
      line += i + 1 < shown.size() ? formatted("{:<{}}", text, column.width) : text;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return one_line(line) + '\n';
}

// A number is never quoted: "-1.5" is a value, not a formula.
std::string csv_text(const Table::Cell& cell) {
  if (const auto* words = std::get_if<std::string>(&cell.value)) return csv_cell(*words);
  return cell.known() ? formatted("{}", cell.number()) : std::string();
}

}  // namespace

double Table::Cell::number() const {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value);
  return real ? *real : std::numeric_limits<double>::quiet_NaN();
}

Table with_columns(Table table, const std::vector<std::string>& keys) {
  Table chosen;
  for (const std::string& key : keys) {
    const auto at = std::ranges::find(table.columns, key, &Table::Column::key);
    if (at == table.columns.end()) continue;
    chosen.columns.push_back(*at);
    chosen.rows.resize(table.rows.size());
    for (size_t r = 0; r < table.rows.size(); ++r)
      chosen.rows[r].cells.push_back(std::move(table.rows[r].cells[static_cast<size_t>(at - table.columns.begin())]));
  }
  for (size_t r = 0; r < chosen.rows.size(); ++r) chosen.rows[r].part = table.rows[r].part;
  return chosen;
}

std::string StepUnit::text(double us) const { return ms ? fixed(us / 1000, 2) : fixed(us, 1); }

Table::Cell StepUnit::cell(double us) const {
  Table::Cell cell(us);
  cell.text = text(us);
  return cell;
}

void choose_decimals(Table& table) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    Table::Column& column = table.columns[c];
    if (column.kind != Table::Kind::Number && column.kind != Table::Kind::Time) continue;
    double most = 0;
    bool whole = true;
    for (const Table::Row& row : table.rows) {
      const double value = row.cells[c].number();
      if (std::isnan(value)) continue;
      most = std::max(most, std::abs(value)), whole &= value == std::floor(value);
    }
    column.decimals = whole || most >= 1000 ? 0 : most >= 10 ? 1 : 2;
  }
}

std::string cell_text(const Table& table, size_t row, size_t column) {
  static const Table::Cell kNone;
  const auto& cells = table.rows[row].cells;
  const Table::Cell& cell = column < cells.size() ? cells[column] : kNone;
  if (!cell.text.empty()) return cell.text;
  if (const auto* words = std::get_if<std::string>(&cell.value)) return *words;
  return cell.known() ? number_text(cell.number(), table.columns[column]) : "–";
}

std::string to_text(const Table& table, size_t indent) {
  const std::vector<size_t> shown = printed(table);
  std::string text = line_of(table, shown, indent, [&](size_t c) { return heading(table.columns[c]); });
  for (size_t r = 0; r < table.rows.size(); ++r)
    text += line_of(table, shown, indent, [&](size_t c) {
      const auto& cells = table.rows[r].cells;
      return cell_text(table, r, c) + (c < cells.size() && cells[c].noted ? "*" : "");
    });
  return text;
}

std::string to_csv(const Table& table) {
  std::string out;
  const auto add_line = [&](const auto& text_of) {
    bool first = true;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].key.empty()) continue;
      out += (first ? "" : ",") + text_of(c);
      first = false;
    }
    out += '\n';
  };
  add_line([&](size_t c) { return csv_cell(table.columns[c].key); });
  for (const Table::Row& row : table.rows) add_line([&](size_t c) { return csv_text(row.cells[c]); });
  return out;
}

std::string to_html(const Table& table) {
  std::string out = "<table class=\"kernels\"><tr>";
  for (const Table::Column& column : table.columns) out += "<th>" + escape_xml(column.name) + "</th>";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::string tag = table.rows[r].part == Table::Row::Part::Sum ? "th>" : "td>";
    out += "</tr>\n<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c) out += "<" + tag + escape_xml(cell_text(table, r, c)) + "</" + tag;
  }
  return out + "</tr></table>\n";
}

nlohmann::ordered_json rows_json(const Table& table) {
  auto rows = nlohmann::ordered_json::array();
  for (const Table::Row& row : table.rows) {
    auto& object = rows.emplace_back(nlohmann::ordered_json::object());
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].key.empty()) continue;
      auto& value = object[table.columns[c].key];
      if (const auto* words = std::get_if<std::string>(&row.cells[c].value)) value = *words;
      if (const auto* whole = std::get_if<int64_t>(&row.cells[c].value)) value = *whole;
      if (const auto* real = std::get_if<double>(&row.cells[c].value)) value = *real;
    }
  }
  return rows;
}

}  // namespace ws
