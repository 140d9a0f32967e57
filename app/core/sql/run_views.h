// The views that SQL sees of recorded runs. resources/docs/sql.md describes them; their names and columns stay.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiling/trace/run_data.h"

namespace ws::app {

using SqlCell = std::variant<std::monostate, int64_t, double, std::string>;  // monostate: not known
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, std::string_view>;  // a view lives as long as its rows

struct SqlColumn {
  std::string name;
  std::string what;  // one line, with the unit
  bool joins = false;  // whole numbers that queries join by: looked up instead of scanned
};

// The rows of one view, of all runs.
class SqlRows {
 public:
  virtual ~SqlRows() = default;
  virtual size_t count() const = 0;
  virtual SqlValue cell(size_t row, size_t column) const = 0;
};

struct SqlRun {
  std::string name;  // "a" for a.wsrun: the first column of each view
  std::string path;
  prof::RunData data;
};
using SqlRuns = std::vector<SqlRun>;

struct SqlView {
  std::string name, what;
  std::vector<SqlColumn> columns;
  std::function<std::unique_ptr<SqlRows>(const SqlRuns&)> rows;  // made when a query first needs them
};
const std::vector<SqlView>& sql_views();

}  // namespace ws::app
