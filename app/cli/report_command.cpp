#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/report/report.h"
#include "profiling/whole_file.h"

namespace ws::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string out = "report.html", figures;
};

int report(const ReportArguments& a) {
  if (a.out.ends_with(".pdf"))
    throw UsageError("report: " + a.out + ": this program writes HTML; the window's Compare tab exports PDF.");
  std::vector<ws::app::ReportRun> runs;
  for (const std::string& file : a.files) runs.push_back(ws::app::report_run_of_file(file));
  prof::write_whole(a.out, ws::app::report_html(runs));
  std::printf("%s\n", a.out.c_str());
  if (a.figures.empty()) return kDone;
  for (const auto& figure : ws::app::figures(runs)) {
    const std::string path = a.figures + "/" + figure.name + ".svg";
    prof::write_whole(path, figure.svg + "\n");
    std::printf("%s\n", path.c_str());
  }
  return kDone;
}

}  // namespace

Run add_report(CLI::App& program) {
  auto a = std::make_shared<ReportArguments>();
  CLI::App& command = *program.add_subcommand("report", "lay runs side by side in one page that opens anywhere");
  command.add_option("runs", a->files, "run files, or other programs' traces; the first is the baseline")
      ->required()
      ->expected(1, 8);
  command.add_option("--out", a->out, "the HTML file to write");
  command.add_option("--figures", a->figures, "also write each figure as SVG into this folder");
  return [a] { return report(*a); };
}

}  // namespace ws::cli
