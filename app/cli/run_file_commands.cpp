// What works on recorded runs: convert, diff, stats.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/compare/mismatches.h"
#include "profiling/analysis/compare.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/nsys_tables.h"

namespace ws::cli {
namespace {

// What an importer left out is said, but is no failure.
prof::RunData read(const std::string& path) {
  prof::RunData run = prof::import_run(path);
  for (const std::string& problem : run.problems) std::fprintf(stderr, "%s: %s\n", path.c_str(), problem.c_str());
  return run;
}

struct TwoFiles {
  std::string a, b;
  bool json = false;
};

// With what makes it unfair, which takes the choices of both.
prof::Comparison compare_files(const prof::RunData& a, const prof::RunData& b) {
  prof::Comparison result = prof::compare(a, b);
  const auto a_spec = app::spec_of(a.summary), b_spec = app::spec_of(b.summary);
  const auto compared = [](const prof::RunData& run, const std::optional<RunSpec>& spec, bool traced, bool work) {
    return app::ComparedRun{spec ? &*spec : nullptr, run.summary.device, run.summary.steps,
                            app::traced_as(traced, work), run.summary.origin != "run"};
  };
  const auto unfair = app::mismatches(compared(a, a_spec, result.a_traced, result.a_work),
                                      compared(b, b_spec, result.b_traced, result.b_work));
  result.warnings.insert(result.warnings.begin(), unfair.begin(), unfair.end());
  return result;
}

}  // namespace

Run add_convert(CLI::App& program) {
  auto files = std::make_shared<TwoFiles>();
  CLI::App& command = *program.add_subcommand(
      "convert", "between run files, Chrome/Perfetto JSON, Nsight Systems SQLite, CSV, TensorBoard");
  command.add_option("from", files->a, "file to read")->required();
  command.add_option("to", files->b, "file to write; its ending says the format")->required();
  std::string reports = "CSV files named after a report of nsys stats hold that one, as run_cuda_api_sum.csv:";
  for (const std::string_view report : prof::nsys_reports()) reports.append(" ").append(report);
  command.footer(reports);
  return [files] {
    prof::convert(files->a, files->b);
    return kDone;
  };
}

Run add_diff(CLI::App& program) {
  auto files = std::make_shared<TwoFiles>();
  CLI::App& command = *program.add_subcommand("diff", "what makes the steps of two runs differ");
  command.add_option("a", files->a, "the baseline")->required();
  command.add_option("b", files->b, "the run to compare with it")->required();
  command.add_flag("--json", files->json, "print one JSON object");
  return [files] {
    const prof::Comparison comparison = compare_files(read(files->a), read(files->b));
    std::printf("%s\n", (files->json ? prof::to_json(comparison) : prof::to_text(comparison)).c_str());
    return kDone;
  };
}

Run add_stats(CLI::App& program) {
  auto files = std::make_shared<TwoFiles>();
  CLI::App& command = *program.add_subcommand("stats", "kernels, copies and calls of a recorded run");
  command.add_option("file", files->a, "a run file or another tool's trace")->required();
  command.add_flag("--json", files->json, "print one JSON object");
  return [files] {
    const prof::RunData run = read(files->a);
    prof::TraceStats stats = prof::trace_stats(run.trace);
    stats.steps =
        std::max(stats.steps, static_cast<uint64_t>(run.summary.steps));  // a graph launch marks several as one
    const std::string text =
        files->json ? prof::to_json(stats) : prof::to_text(stats) + prof::allocator_text(run.trace, run.allocations);
    std::printf("%s\n", text.c_str());
    return kDone;
  };
}

}  // namespace ws::cli
