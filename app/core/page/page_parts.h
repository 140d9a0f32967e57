// The parts of a page to share: its runs, what it shows beside timelines, the timelines, and sources.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/core/report/report.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

struct PageRun {
  std::string path;
  prof::RunData data;
  ReportRun report;
};

// Conclusion, choices, tables, comparison, ranks. The numbers come from `stats --json` and `diff --json`.
nlohmann::ordered_json page_facts(const std::vector<PageRun>& runs);  // "runs" has an object for each run

// Source files of the lines that take time, for a page whose maker agrees to show them: a list of {"path", "lines",
// "times" by line in µs, "changed", "problem"}; the file with most time first.
nlohmann::ordered_json page_sources(const prof::RunData& run);

// Lanes of spans in chunks that the page unpacks when it shows them, and the curves on the same axis. Times count in ns from
// the begin of the run's data.
struct PageTimeline {
  nlohmann::ordered_json head;      // {"end", "first", "lanes", "curves", names…}; a lane says in which chunk its columns are
  std::vector<std::string> chunks;  // not compressed
};
// Keeps the newest `most_spans` spans; the rest is in the overview of each lane. `first_chunk`: number of its first chunk.
PageTimeline page_timeline(PageRun& run, size_t first_chunk, size_t most_spans);

}  // namespace ws::app
