#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "app/cli/commands.h"
#include "app/core/report/report.h"
#include "profiling/base/whole_file.h"

namespace ws::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string out = "report.html", figures;
};

// Ends with the child's exit code; its sentences go where ours go.
int run_and_wait(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ); error != 0)
    throw Failure(words[0] + " cannot be started: " + std::strerror(error) + ".");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) throw Failure(words[0] + " was ended by signal " + std::to_string(WTERMSIG(status)) + ".");
  return WEXITSTATUS(status);
}

// Pages need letters and their widths, which the window's program has and this one does without.
int write_pdf(const ReportArguments& a) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path window = fs::read_symlink("/proc/self/exe", none).parent_path() / "warpscope";
  if (access(window.c_str(), X_OK) != 0)
    throw Failure(a.out + ": a PDF is written by the window's program, which is not installed beside this one (" +
                  window.string() + "); an .html report needs nothing else.");
  setenv("QT_QPA_PLATFORM", "offscreen", 1);
  setenv("QT_LOGGING_RULES", "default.warning=false", 0);  // what Qt says of a session it does not need
  std::vector<std::string> words{window.string(), "--report", a.out, "--"};
  words.insert(words.end(), a.files.begin(), a.files.end());
  return run_and_wait(std::move(words));
}

int report(const ReportArguments& a) {
  std::vector<ws::app::ReportRun> runs;
  const bool pdf = a.out.ends_with(".pdf");
  if (!pdf || !a.figures.empty())
    for (const std::string& file : a.files) runs.push_back(ws::app::report_run_of_file(file));
  if (!pdf)
    prof::write_whole(a.out, ws::app::report_html(runs));
  else if (const int failed = write_pdf(a); failed != kDone)
    return failed;
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
  command.add_option("RUNS", a->files, "run files, or other programs' traces; the first is the baseline")
      ->required()
      ->expected(1, 8);
  command.add_option("--out", a->out, "what to write: .html, or .pdf where the window is installed too")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--figures", a->figures, "also write each figure as SVG into this folder")->type_name("FOLDER");
  command.footer("Example:\n  warpscope-cli report a.wsrun b.wsrun --out report.html");
  return [a] { return report(*a); };
}

}  // namespace ws::cli
