#include "app/core/page/page_parts.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/source_lines.h"
#include "profiling/recording/record_keys.h"

namespace ws::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostFiles = 40, kMostLines = 20'000;

struct TimedFile {
  std::map<int, int64_t> times;  // ns by line
  int64_t all = 0;
};

std::map<std::string, TimedFile> timed_files(const prof::Trace& trace) {
  std::map<std::string, TimedFile> files;
  for (const prof::KernelRow& row : prof::work_table(trace, -prof::kAlways, prof::kAlways, prof::GroupBy::Line))
    if (const auto place = prof::source_place(row.key)) {
      TimedFile& file = files[place->path];
      file.times[place->line] += row.time.total, file.all += row.time.total;
    }
  return files;
}

int64_t seconds_of(const std::string& date) {
  std::tm parts{};
  return strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) ? static_cast<int64_t>(timegm(&parts)) : 0;
}

prof::SourceFile source_of(const prof::RunSummary& run, const std::string& path) {
  const std::string folder = run.said(prof::kFolderKey);
  for (const std::string& name : {path, folder + "/" + path})
    if (const std::string text = run.said(prof::kSourceKey + name); !text.empty()) return prof::source_of_text(text);
  return prof::read_source(folder, path, seconds_of(run.created));
}

Json file_json(const prof::RunSummary& run, const std::string& path, const TimedFile& timed) {
  prof::SourceFile source = source_of(run, path);
  if (source.lines.size() > kMostLines) source.problem = path + " is too long for a page.", source.lines.clear();
  Json times;
  for (const auto& [line, ns] : timed.times) times[std::to_string(line)] = static_cast<double>(ns) * 1e-3;
  return {{"path", path}, {"lines", source.lines}, {"times", times}, {"changed", source.changed}, {"problem", source.problem}};
}

}  // namespace

Json page_sources(const prof::RunData& run) {
  const auto files = timed_files(run.trace);
  std::vector<std::pair<std::string, TimedFile>> ordered(files.begin(), files.end());
  std::ranges::stable_sort(ordered, std::greater<>{}, [](const auto& file) { return file.second.all; });
  auto list = Json::array();
  for (size_t i = 0; i < std::min(ordered.size(), kMostFiles); ++i) list.push_back(file_json(run.summary, ordered[i].first, ordered[i].second));
  return list;
}

}  // namespace ws::app
