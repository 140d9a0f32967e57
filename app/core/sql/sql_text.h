// The answer of a query as text: a table for people, CSV, JSON.
#pragma once
#include <string>

#include "app/core/sql/run_database.h"
#include "profiling/base/table.h"

namespace ws::app {

std::string to_text(const SqlTable& table);
std::string to_csv(const SqlTable& table);
std::string to_json(const SqlTable& table);  // {"version", "columns", "rows"}
Table to_table(const SqlTable& table);       // for the window
std::string views_text();                    // the views and their columns

}  // namespace ws::app
