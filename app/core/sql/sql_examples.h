// The questions of the manual's page about SQL, with their queries: what the window offers to begin with.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ws::app {

struct SqlExample {
  std::string question, query;
};
std::vector<SqlExample> sql_examples(std::string_view manual);  // of the text of sql.md
const std::vector<SqlExample>& shipped_sql_examples();          // empty if the manual was not installed

}  // namespace ws::app
