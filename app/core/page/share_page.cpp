#include "app/core/page/share_page.h"

#include "app/core/page/page_parts.h"
#include "profiling/base/digest.h"
#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"
#include "profiling/base/paths.h"
#include "profiling/base/whole_file.h"
#include "profiling/formats/join_ranks.h"

namespace ws::app {
namespace {

// In the order in which the page needs them.
constexpr const char* kScripts[] = {"data.js", "view.js", "tables.js", "timeline.js", "curves.js", "compare.js", "page.js"};

std::string asset(const std::string& name) {
  const std::string path = (resources_folder() / "page" / name).string();
  std::string text = prof::whole_text(path);
  if (text.empty()) throw Failure(path + " cannot be read: it belongs to this program. Install Warpsight again.");
  return text;
}

std::string script_text() {
  std::string text = "'use strict';\n";
  for (const char* name : kScripts) text += asset(name);
  return text;
}

std::string hash_of(const std::string& text) { return "'sha256-" + base64(sha256(text)) + "'"; }

// A browser does not run it: it is no script by its type.
std::string data_block(const std::string& id, const std::string& bytes) {
  return "<script type=\"application/octet-stream\" id=\"" + id + "\">" + base64(gzipped(bytes)) + "</script>\n";
}

PageRun read_run(const std::string& path) {
  PageRun run{path, prof::import_ranks({path}), {}};
  run.report = report_run_of(run.data, path);
  return run;
}

std::string filled(std::string text, const std::string& mark, const std::string& value) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) throw Failure("page.html has no " + mark + ": it belongs to another version. Install Warpsight again.");
  return text.replace(at, mark.size(), value);
}

}  // namespace

SharePage share_page(const std::vector<std::string>& paths, const PageOptions& options) {
  SharePage page;
  std::vector<PageRun> runs;
  for (const std::string& path : paths) {
    runs.push_back(read_run(path));
    if (runs.size() <= options.letters.size()) runs.back().report.letter = options.letters[runs.size() - 1];
    for (const std::string& problem : runs.back().data.problems) page.problems.push_back(path + ": " + problem);
  }
  nlohmann::ordered_json head = page_facts(runs);
  std::vector<std::string> chunks;
  for (size_t i = 0; i < runs.size(); ++i) {
    PageTimeline timeline = page_timeline(runs[i], chunks.size(), options.most_spans / runs.size());
    if (options.sources) head["runs"][i]["sources"] = page_sources(runs[i].data);
    head["runs"][i]["timeline"] = std::move(timeline.head);
    for (std::string& chunk : timeline.chunks) chunks.push_back(std::move(chunk));
  }
  const std::string style = asset("page.css"), script = script_text();
  std::string html = filled(asset("page.html"), "@STYLE_HASH@", hash_of(style));
  html = filled(std::move(html), "@SCRIPT_HASH@", hash_of(script));
  html = filled(std::move(html), "@STYLE@", style);
  html = filled(std::move(html), "@HEAD@", data_block("head", head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  html = filled(std::move(html), "@SCRIPT@", script);
  std::string blocks;
  for (size_t i = 0; i < chunks.size(); ++i) blocks += data_block("chunk" + std::to_string(i), chunks[i]);
  page.html = filled(std::move(html), "@CHUNKS@", blocks);
  return page;
}

}  // namespace ws::app
