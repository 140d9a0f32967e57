#include "app/core/sql/sql_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

std::string plain(const SqlCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) return std::to_string(*number);
  if (const auto* real = std::get_if<double>(&cell)) return formatted("{}", *real);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

bool is_number(const SqlCell& cell) { return std::holds_alternative<int64_t>(cell) || std::holds_alternative<double>(cell); }

struct AsCell {
  Table::Cell operator()(std::monostate) const { return {}; }
  Table::Cell operator()(int64_t value) const { return value; }
  Table::Cell operator()(double value) const { return value; }
  Table::Cell operator()(const std::string& value) const { return one_line(value); }
};

size_t letters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, letters(text)), ' ');
  return right ? space + text : text + space;
}

}  // namespace

std::string to_text(const SqlTable& table) {
  std::vector<std::vector<std::string>> cells{table.columns};
  for (const auto& row : table.rows) {
    auto& line = cells.emplace_back();
    for (const SqlCell& cell : row) line.push_back(one_line(plain(cell)));
  }
  std::string text;
  std::vector<size_t> widths(table.columns.size());
  for (const auto& line : cells)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], letters(line[i]));
  for (size_t r = 0; r < cells.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool last = i + 1 == widths.size(), right = !table.rows.empty() && is_number(table.rows[r > 0 ? r - 1 : 0][i]);
      text += (i ? "  " : "") + (last && !right ? cells[r][i] : padded(cells[r][i], widths[i], right));
    }
    text += '\n';
  }
  return text;
}

std::string to_csv(const SqlTable& table) {
  std::string text;
  const auto add = [&text](const auto& cells, const auto& text_of) {
    for (size_t i = 0; i < cells.size(); ++i) text += (i ? "," : "") + text_of(cells[i]);
    text += "\n";
  };
  add(table.columns, csv_cell);
  for (const auto& row : table.rows)
    add(row, [](const SqlCell& cell) {
      if (const auto* real = std::get_if<double>(&cell)) return nlohmann::json(*real).dump();
      return is_number(cell) ? plain(cell) : csv_cell(plain(cell));
    });
  return text;
}

std::string to_json(const SqlTable& table) {
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"columns", table.columns}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& row : table.rows) {
    auto cells = nlohmann::ordered_json::array();
    for (const SqlCell& cell : row)
      std::visit([&cells](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) cells.push_back(nullptr);
        else cells.push_back(value);
      }, cell);
    json["rows"].push_back(std::move(cells));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

Table to_table(const SqlTable& table) {
  Table shown;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    Table::Column column{.key = table.columns[c], .name = one_line(table.columns[c]), .kind = Table::Kind::Count};
    for (const auto& row : table.rows) {
      if (std::holds_alternative<double>(row[c]) && column.kind == Table::Kind::Count) column.kind = Table::Kind::Number, column.decimals = 3;
      if (std::holds_alternative<std::string>(row[c])) column.kind = Table::Kind::Text;
    }
    shown.columns.push_back(std::move(column));
  }
  for (const auto& row : table.rows) {
    Table::Row& line = shown.rows.emplace_back();
    for (size_t c = 0; c < row.size(); ++c) {
      const bool text = shown.columns[c].kind == Table::Kind::Text;
      line.cells.push_back(text && is_number(row[c]) ? Table::Cell(plain(row[c])) : std::visit(AsCell{}, row[c]));
    }
  }
  choose_decimals(shown);
  return shown;
}

std::string views_text() {
  std::string text;
  for (const SqlView& view : sql_views()) {
    text += view.name + ": " + view.what + "\n";
    for (const SqlColumn& column : view.columns) text += formatted("  {:<14} {}\n", column.name, column.what);
    text += "\n";
  }
  return text;
}

}  // namespace ws::app
