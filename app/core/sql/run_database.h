// Answers SQL about recorded runs. A query can only read the views: it reaches no file, and its time, memory and rows are
// bounded.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "app/core/sql/run_views.h"

namespace ws::app {

struct SqlBounds {
  std::chrono::milliseconds time{60'000};
  size_t rows = 1'000'000;
  int64_t bytes = int64_t{2} << 30;  // in SQLite, and of the answer
  std::shared_ptr<const std::atomic<bool>> cancelled = nullptr;  // true: the query stops
};

struct SqlTable {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlCell>> rows;
};

std::vector<std::string> sql_run_names(const std::vector<std::string>& wanted);  // the same names, each once: "a", "a-2"

class RunDatabase {
 public:
  // Reads the runs; throws Failure. `names`: the first column of each view, by file; none: the names of the files.
  explicit RunDatabase(const std::vector<std::string>& paths, const std::vector<std::string>& names = {});
  explicit RunDatabase(SqlRuns runs);
  ~RunDatabase();
  SqlTable query(const std::string& sql, const SqlBounds& bounds = {});  // one SELECT; throws Failure with a sentence
  std::vector<std::string> problems() const;                            // parts of the files that could not be read

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ws::app
