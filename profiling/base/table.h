// A table of typed cells. `stats`, `diff`, reports, CSV and JSON files and the pages of the window show the same tables,
// each in its own way.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ws {

struct Table {
  // Time: µs. Percent: a share of 1. Significant: three digits.
  enum class Kind : uint8_t { Text, Count, Number, Significant, Time, Bytes, Percent };
  struct Column {
    std::string key;         // in CSV and JSON files: "mean_us"; empty: not in them
    std::string name, unit;  // of the heading: "mean", "µs"
    Kind kind = Kind::Number;
    int decimals = 1;  // of Number, Time and Percent
    size_t width = 0;  // in printed text, in letters; 0: the column is not printed
    std::string tip;
    bool sign = false;                // "+0.4"
    bool hidden_if_unknown = false;   // omitted from printed text if no row has a value
  };
  struct Cell {
    std::variant<std::monostate, std::string, int64_t, double> value;  // monostate: not known
    std::string text;  // shown instead of the value, which still sorts
    std::string tip;
    int swatch = -1;     // the meaning whose colour stands before the text
    double bar = -1;     // length of a bar in this colour before the number, as a share of the longest; below 0: none
    bool noted = false;  // printed text marks it with a star

    Cell() = default;
    Cell(std::string words) : value(std::move(words)) {}
    Cell(const char* words) : value(std::string(words)) {}
    Cell(double number) {
      if (std::isfinite(number)) value = number;
    }
    Cell(std::integral auto number) : value(static_cast<int64_t>(number)) {}
    bool known() const { return value.index() != 0; }
    double number() const;  // NaN without one
  };
  struct Row {
    std::vector<Cell> cells;
    enum class Part : uint8_t { Body, Heading, Sum } part = Part::Body;  // Heading: one cell over all columns. Sum: stays last
  };

  std::vector<Column> columns;
  std::vector<Row> rows;
};

// The unit of times beside a step: ms from 10 ms on. A cell keeps its µs, and shows them in this unit.
struct StepUnit {
  explicit StepUnit(double step_us) : ms(step_us >= 1000) {}
  const char* name() const { return ms ? "ms" : "µs"; }
  std::string text(double us) const;  // "8.66", "343.5"
  Table::Cell cell(double us) const;
  bool ms;
};

void choose_decimals(Table& table);  // numbers of one column get the same ones; large ones need none
std::string cell_text(const Table& table, size_t row, size_t column);  // "–" if not known

// Text columns stand on the left, two spaces after numbers; the last one is as wide as its texts. `indent`: spaces before
// each line.
std::string to_text(const Table& table, size_t indent = 0);
std::string to_csv(const Table& table);                  // numbers are not rounded
std::string to_html(const Table& table);
// Only these columns, in this order.
Table with_columns(Table table, const std::vector<std::string>& keys);
nlohmann::ordered_json rows_json(const Table& table);    // an object a row, null if not known

}  // namespace ws
