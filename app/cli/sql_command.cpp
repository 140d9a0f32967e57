#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/core/sql/sql_text.h"
#include "profiling/base/safe_text.h"

namespace ws::cli {
namespace {

struct SqlArguments {
  std::vector<std::string> words;
  std::string format = "table";
  double seconds = 60;
  bool views = false;
};

bool is_query(const std::string& word) { return word.find_first_of(" \n\t") != std::string::npos; }

// The query is the last word, or the first one: both orders are natural.
std::pair<std::vector<std::string>, std::string> files_and_query(std::vector<std::string> words) {
  if (words.size() < 2) throw UsageError("Name run files and one query, in quotes: warpsight sql a.wsrun \"select * from runs\"");
  if (!is_query(words.back()) && is_query(words.front())) std::rotate(words.begin(), words.begin() + 1, words.end());
  const std::string query = words.back();
  words.pop_back();
  return {words, query};
}

int answer(const SqlArguments& a) {
  if (a.views) {
    std::fputs(app::views_text().c_str(), stdout);
    return kDone;
  }
  const auto [files, query] = files_and_query(a.words);
  app::RunDatabase database(files);
  for (const std::string& problem : database.problems()) std::fprintf(stderr, "warpsight: %s\n", printable(problem).c_str());
  app::SqlBounds bounds;
  bounds.time = std::chrono::milliseconds(static_cast<int64_t>(a.seconds * 1000));
  const app::SqlTable table = database.query(query, bounds);
  const std::string text = a.format == "json" ? app::to_json(table) + "\n" : a.format == "csv" ? app::to_csv(table) : app::to_text(table);
  std::fputs(text.c_str(), stdout);
  return kDone;
}

}  // namespace

Run add_sql(CLI::App& program) {
  auto a = std::make_shared<SqlArguments>();
  CLI::App& command = *program.add_subcommand("sql", "answer SQL about recorded runs");
  add_limit(command);
  command.add_option("FILES QUERY", a->words, "run files or other programs' traces, then one SELECT in quotes");
  command.add_option("--format", a->format, "table, csv or json")->check(CLI::IsMember({"table", "csv", "json"}))->capture_default_str();
  command.add_flag_callback("--json", [a] { a->format = "json"; }, "the same as --format json");
  command.add_option("--seconds", a->seconds, "stop a query that takes longer")->check(CLI::Range(0.1, 86'400.0))->capture_default_str();
  command.add_flag("--views", a->views, "list the views and their columns");
  command.footer("Example:\n  warpsight sql a.wsrun \"select name, count(*), sum(duration_ns)/1e3 as us from kernels group by name order by us desc limit 5\"");
  return [a] { return answer(*a); };
}

}  // namespace ws::cli
