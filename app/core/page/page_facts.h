// What a page to share shows beside timelines: conclusion, choices, tables, comparison, ranks. The numbers come from
// `stats --json` and `diff --json`.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "app/core/page/page_run.h"

namespace ws::app {

nlohmann::ordered_json page_facts(const std::vector<PageRun>& runs);  // "runs" has an object for each run

}  // namespace ws::app
