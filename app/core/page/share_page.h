// One HTML file in which a person explores runs without this program: timelines, curves, tables, comparison, ranks. It
// needs no network, and its browser runs our script only.
#pragma once
#include <string>
#include <vector>

namespace ws::app {

inline constexpr size_t kPageSpans = 1'000'000;  // of all runs of a page; of longer runs the newest

struct SharePage {
  std::string html;
  std::vector<std::string> problems;  // parts of the files that could not be read
};
struct PageOptions {
  size_t most_spans = kPageSpans;
  std::vector<int> letters;  // numbers of the letters that the runs have elsewhere; empty: by their places here
  bool sources = false;  // with the source of the lines that take time: whoever gets the page can read it
};
// Run files, or traces that can be imported; the first one is the baseline. Throws Failure.
SharePage share_page(const std::vector<std::string>& paths, const PageOptions& options = {});

}  // namespace ws::app
