// Reads tables of an Nsight Systems export.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "profiling/run_file/sqlite.h"

namespace ws::prof {

// Rows of a table whose columns differ between versions. Missing columns read as 0.
class NsysRows {
 public:
  NsysRows(Database& db, const std::string& table, const std::vector<std::string>& wanted, const char* more = "")
      : query_(db.prepare(sql(db, table, wanted) + more)) {}
  bool next() { return query_.step(); }
  int64_t integer(int column) const { return query_.integer(column); }
  bool null(int column) const { return query_.null(column); }
  std::string text(int column) const { return std::string(query_.text(column)); }
  std::string_view blob(int column) const { return query_.blob(column); }  // valid until next()

 private:
  static std::string sql(Database& db, const std::string& table, const std::vector<std::string>& wanted) {
    const std::vector<std::string> present = db.columns(table);
    std::string list;
    for (const std::string& name : wanted) {
      list += list.empty() ? "" : ", ";
      list += std::ranges::find(present, name) != present.end() ? '"' + name + '"' : "NULL";
    }
    return "SELECT " + list + " FROM " + table;
  }
  Statement query_;
};

}  // namespace ws::prof
