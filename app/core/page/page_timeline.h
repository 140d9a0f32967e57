// The timeline of a run for a page to share: lanes of spans in chunks that the page unpacks when it shows them, and the
// curves on the same axis. Times count in ns from the begin of the run's data.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/core/page/page_run.h"

namespace ws::app {

struct PageTimeline {
  nlohmann::ordered_json head;      // {"end", "first", "lanes", "curves", names…}; a lane says in which chunk its columns are
  std::vector<std::string> chunks;  // not compressed
};
// Keeps the newest `most_spans` spans; the rest is in the overview of each lane. `first_chunk`: number of its first chunk.
PageTimeline page_timeline(PageRun& run, size_t first_chunk, size_t most_spans);

}  // namespace ws::app
