#include "app/core/sql/sql_examples.h"

#include <sstream>

#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

constexpr std::string_view kHeading = "### ", kCommand = "$ warpsight sql ", kMore = "> ";

// "### 7. What share …" gives the question behind the number.
std::string question_of(const std::string& heading) {
  const size_t number = heading.find(". ");
  return number == std::string::npos ? std::string() : heading.substr(number + 2);
}

std::string quoted_part(const std::string& command) {
  const size_t begin = command.find('"'), end = command.rfind('"');
  return begin < end ? command.substr(begin + 1, end - begin - 1) : std::string();
}

}  // namespace

std::vector<SqlExample> sql_examples(std::string_view manual) {
  std::vector<SqlExample> all;
  std::string question, command, line;
  const auto close = [&] {
    if (std::string query = quoted_part(command); !query.empty() && !question.empty()) all.push_back({question, std::move(query)});
    if (!command.empty()) question.clear();
    command.clear();
  };
  for (std::istringstream lines{std::string(manual)}; std::getline(lines, line);) {
    if (!command.empty() && line.starts_with(kMore)) {
      command += "\n" + line.substr(kMore.size());
      continue;
    }
    close();
    if (line.starts_with(kHeading)) question = question_of(line);
    if (line.starts_with(kCommand)) command = line;
  }
  close();
  return all;
}

const std::vector<SqlExample>& shipped_sql_examples() {
  static const std::vector<SqlExample> all = sql_examples(prof::whole_text(resources_folder() / "docs" / "sql.md"));
  return all;
}

}  // namespace ws::app
