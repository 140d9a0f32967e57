// What is wrong with the outputs of a program that was killed, or whose calls failed; empty: nothing.
#pragma once
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "profiling/run_file/run_file.h"

namespace ws::app {

// Hidden ones were only begun; the next to write them removes them.
inline bool is_run(const std::filesystem::path& path) {
  return path.extension() == ".wsrun" && path.filename().string()[0] != '.';
}

// Opens, whole, with the steps of one run. A file that is not there is nothing wrong.
inline std::string why_run_is_damaged(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  try {
    prof::RunFileReader reader(path);
    prof::Trace trace = reader.trace();
    reader.fill(trace);
    int64_t step = 0;
    for (const prof::Metric& metric : reader.metrics())
      if (metric.step != step++) return path + ": rows of two runs";
    if (!reader.problems().empty()) return path + ": " + reader.problems().front();
  } catch (const std::exception& problem) {
    return path + ": " + problem.what();
  }
  return {};
}

// Remembers the files that it saw: one that was there must stay.
class SeenFiles {
 public:
  std::string why_lost(const std::string& path) {
    if (std::filesystem::exists(path)) {
      seen_.insert(path);
      return std::string();
    }
    return seen_.contains(path) ? path + ": was there and is gone" : std::string();
  }

 private:
  std::set<std::string> seen_;
};

// metrics.csv: one row a step, in order. A torn last line is no row.
inline std::string why_table_is_damaged(const std::string& path) {
  std::ifstream table(path);
  std::string line;
  std::getline(table, line);
  for (int64_t step = 0; std::getline(table, line) && !table.eof(); ++step)
    if (std::strtoll(line.c_str(), nullptr, 10) != step) return path + ": rows of two runs";
  return {};
}

inline size_t rows_of_results(const std::string& path) {
  std::ifstream in(path);
  size_t rows = 0;
  for (std::string line; std::getline(in, line);) rows += nlohmann::json::accept(line);
  return rows;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace ws::app
