#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/page/share_page.h"
#include "app/core/report/report.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/whole_file.h"

namespace ws::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string out = "report.html", figures;
  bool interactive = false, sources = false;
};

// A PDF needs fonts and their metrics. The window's program has them; this one does not.
int write_pdf(const ReportArguments& a) {
  namespace fs = std::filesystem;
  const fs::path window = program_file().parent_path() / "warpsight-window";
  if (access(window.c_str(), X_OK) != 0)
    throw Failure(a.out + ": a PDF is written by the window's program, which is not installed beside this one (" +
                  window.string() + "); an .html report needs nothing else.");
  std::vector<std::string> words{window.string(), "--report", a.out, "--"};
  words.insert(words.end(), a.files.begin(), a.files.end());
  Process::Environment settings{{"QT_QPA_PLATFORM", "offscreen"}};
  // Qt would warn about a desktop session that it does not need here.
  if (!std::getenv("QT_LOGGING_RULES")) settings["QT_LOGGING_RULES"] = "default.warning=false";
  Process process(words, Process::Output::Ours, settings);
  const int status = process.wait();
  if (const int signal = process.ended_by(); signal != 0)
    throw Failure(words[0] + " was ended by signal " + std::to_string(signal) + ".");
  return status;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Failure(folder + ": cannot be made: " + error.message());
}

int write_share_page(const ReportArguments& a) {
  check_ending("--out", a.out, "a page to share is written as", {".html", ".htm"});
  if (!a.figures.empty()) throw UsageError("--figures: belongs to a report; leave out --interactive");
  const app::SharePage page = app::share_page(a.files, {.sources = a.sources});
  for (const std::string& problem : page.problems) std::fprintf(stderr, "warpsight: %s\n", printable(problem).c_str());
  prof::write_whole(a.out, page.html);
  say_written(a.files.size() == 1 ? "page of 1 run" : "page of " + std::to_string(a.files.size()) + " runs", a.out);
  return kDone;
}

int report(const ReportArguments& a) {
  if (a.interactive) return write_share_page(a);
  if (a.sources) throw UsageError("--sources: belongs to --interactive");
  check_ending("--out", a.out, "a report is written as", {".html", ".htm", ".pdf"});
  if (!a.figures.empty()) make_folder(a.figures);
  std::vector<ws::app::ReportRun> runs;
  const bool pdf = a.out.ends_with(".pdf");
  if (!pdf || !a.figures.empty())
    for (const std::string& file : a.files) {
      runs.push_back(ws::app::report_run_of_file(file));
      if (!pdf) say_problems(file, runs.back().problems);  // the window's program says them itself
    }
  if (!pdf)
    prof::write_whole(a.out, ws::app::report_html(runs));
  else if (const int failed = write_pdf(a); failed != kDone)
    return failed;
  say_written(a.files.size() == 1 ? "report of 1 run" : "report of " + std::to_string(a.files.size()) + " runs", a.out);
  if (a.figures.empty()) return kDone;
  for (const auto& figure : ws::app::figures(runs)) {
    const std::string path = a.figures + "/" + figure.name + ".svg";
    prof::write_whole(path, to_svg(figure.drawing) + "\n");
    say_written("figure", path);
  }
  return kDone;
}

}  // namespace

Run add_report(CLI::App& program) {
  auto a = std::make_shared<ReportArguments>();
  CLI::App& command = *program.add_subcommand("report", "compare runs in one HTML page");
  add_limit(command);
  command.add_option("RUNS", a->files, "run files, or other programs' traces; the first is the baseline")
      ->required()
      ->expected(1, 8);
  command.add_option("--out", a->out, "file to write: .html, or .pdf if the window is installed")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--figures", a->figures, "also write each figure as SVG into this folder")->type_name("FOLDER");
  command.add_flag("--interactive", a->interactive,
                   "one HTML file to explore in a browser, without network: timelines, tables, comparison, ranks");
  command.add_flag("--sources", a->sources, "with --interactive: show the source of the lines that take time; whoever gets the page can read it");
  command.footer("Examples:\n  warpsight report a.wsrun b.wsrun --out report.html\n"
                 "  warpsight report --interactive a.wsrun b.wsrun --out page.html");
  return [a] { return report(*a); };
}

}  // namespace ws::cli
