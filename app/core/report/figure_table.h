// A table of figures, for the window, reports and CSV files. No Qt.
#pragma once
#include <string>
#include <variant>
#include <vector>

namespace ws::app {

struct FigureTable {
  enum class Kind { Text, Number, Bytes };
  struct Column {
    std::string name, unit;  // unit: only in a CSV file
    Kind kind = Kind::Number;
    int decimals = 1;
    std::string tip;
  };
  using Cell = std::variant<double, std::string>;  // NaN: not known
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  bool sum = false;  // the last row is a sum
};

void choose_decimals(FigureTable& table);  // numbers of one column have the same ones; large ones need none
std::string cell_text(const FigureTable& table, size_t row, size_t column);  // "–" if not known
std::string to_csv(const FigureTable& table);                                // with unrounded numbers
std::string to_html(const FigureTable& table);

}  // namespace ws::app
