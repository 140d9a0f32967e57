// Commands for recorded runs: convert, diff, stats.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/cli/remote_watch.h"
#include "app/core/comparison/comparison_text.h"
#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/run_insights.h"
#include "app/core/insights/trace_insights.h"
#include "app/core/runs/newest_trace.h"
#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/budget.h"
#include "profiling/base/text.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/stalls.h"
#include "profiling/causes/what_if.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::cli {
namespace {

// Several files are the ranks of one program.
prof::RunData read(const std::vector<std::string>& paths) {
  prof::RunData run = prof::import_ranks(paths);
  say_problems(paths[0], run.problems);
  return run;
}

app::ComparedRun compared(const std::string& path) {
  const prof::RunData run = app::newest_data(path);
  say_problems(path, run.problems);
  return app::compared_run(run, app::all_ranks(path, run));
}

struct TwoFiles {
  std::string a, b, by;
  std::string fail_above;  // a percentage; empty: none
  bool json = false;
};

struct StatsArguments {
  std::vector<std::string> files;
  std::string by = "name", kernel;
  std::vector<std::string> columns = prof::kUsualColumns;
  bool json = false, instructions = false;
};

std::string all_columns() {
  std::string names;
  for (const std::string_view name : prof::row_columns()) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

// "all" stands for all columns.
std::vector<std::string> columns_of(const std::vector<std::string>& asked) {
  const auto known = prof::row_columns();
  if (asked == std::vector<std::string>{"all"}) return {known.begin(), known.end()};
  for (const std::string& name : asked)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("--columns: choose of " + all_columns() + ", or all; not " + name);
  return asked;
}

// On a narrow terminal, the kernel names in the last column are more useful than the columns before them.
std::vector<std::string> fitting(std::vector<std::string> columns) {
  constexpr size_t kFixed = 33, kColumn = 11, kLast = 23, kName = 30;
  const auto space = [&] {
    return kFixed + kName + (columns.size() > 3 ? kLast : 0) + kColumn * std::min<size_t>(columns.size(), 3);
  };
  while (!columns.empty() && space() > terminal_width().value_or(10'000)) columns.pop_back();
  return columns;
}

// Returns which run the numbers are from, and how it was traced: "mnist · NVIDIA H200 · 2026-11-21T05:40:34Z · stopped".
std::string heading(const prof::RunSummary& s) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : " · ") + part;
  };
  add(s.name);
  add(s.device);
  add(s.created);
  if (s.status != "finished") add(s.status);
  const auto traced = s.extra.find("traced");
  if (traced != s.extra.end()) text += "\n" + wrapped(traced->second, 0, 0);
  return text.empty() ? text : text + "\n\n";
}

const std::map<std::string, prof::GroupBy> kDiffGroups{
    {"op", prof::GroupBy::Op}, {"layer", prof::GroupBy::Layer}, {"block", prof::GroupBy::Block}, {"module", prof::GroupBy::Layer},
    {"line", prof::GroupBy::Line}};

// How the step time decides the exit code: only a difference whose whole interval lies above the limit fails.
// A step of another program, or of other work, is judged all the same: a person must know.
std::string judged_what(const app::Comparison& c) {
  const app::ComparedMeasure& step = c.of(app::MeasureKind::StepTime);
  std::string text = formatted("Judged: {}, A {:.1f} {}, B {:.1f} {}.", step.a.name, step.a.value.value, step.a.unit, step.b.value.value, step.b.unit);
  if (!c.programs.empty()) return text + " A and B are different programs, " + c.programs + ".";
  if (c.speed == app::Speed::OtherWork || c.speed == app::Speed::OtherBatch) return text + " A and B do different work in a step.";
  const auto shared = std::ranges::count_if(c.kernels, [](const prof::KernelDelta& k) { return k.a_count > 0 && k.b_count > 0; });
  const bool unknown = !c.choices_known && !c.kernels.empty();
  if (unknown && 2 * static_cast<size_t>(shared) < c.kernels.size())
    text += formatted(" Only {} of {} names of {} are in both: A and B may be different programs.", shared, c.kernels.size(), c.gpu ? "kernels" : "ops");
  return text;
}

int judged(const app::Comparison& comparison, const std::string& fail_above) {
  if (fail_above.empty()) return kDone;
  const double percent = percent_of("--fail-above", fail_above);
  const app::ComparedMeasure& step = comparison.of(app::MeasureKind::StepTime);
  const app::StepVerdict judged = app::judge_step(step.a, step.b, percent / 100);
  std::fprintf(stderr, "%s\n", judged_what(comparison).c_str());
  const bool above = judged.verdict == GateVerdict::Slower, below = judged.high <= judged.limit;
  if (!above && !below) std::fprintf(stderr, "Cannot tell if B is slower by more than %g %%: the noise of the two runs is too large.\n", percent);
  if (above) std::fprintf(stderr, "B is slower by more than %g %%.\n", percent);
  return above ? kFailed : below ? kDone : kCannotTell;
}

int diff(const TwoFiles& files) {
  app::Comparison comparison = app::compare(compared(files.a), compared(files.b));
  const int code = judged(comparison, files.fail_above);
  if (files.json) {
    std::printf("%s\n", app::to_json(comparison).c_str());
    return code;
  }
  for (auto [name, file] : {std::pair{&comparison.a_name, &files.a}, {&comparison.b_name, &files.b}})
    if (*name != *file) *name = *file + (name->empty() ? "" : " · " + *name);
  print_table(files.by.empty() ? app::to_text(comparison) : app::to_text(comparison, kDiffGroups.at(files.by)));
  return code;
}

const std::map<std::string, prof::GroupBy> kGroups{{"name", prof::GroupBy::Name},
                                                   {"op", prof::GroupBy::Op},
                                                   {"layer", prof::GroupBy::Layer},
                                                   {"phase", prof::GroupBy::Phase},
                                                   {"shape", prof::GroupBy::Shape},
                                                   {"line", prof::GroupBy::Line}};

std::string indented(const std::string& paragraph) { return "  " + wrapped(paragraph, 2, 2) + "\n"; }

// Prints the advice that the window shows as cards.
std::string causes_text(const prof::RunData& run) {
  std::string text;
  const app::RunInsights all = app::run_insights(run);
  const app::ProvedPredictions proved = app::proved_predictions(app::programs_like(run.summary));
  bool small = false;
  for (const app::Insight& insight : all.found) {
    if (insight.changes_little && !small) text += std::string("\n") + app::kTooSmall + ":\n";
    small = insight.changes_little;
    text += "\n" + wrapped(insight.headline, 0, 0) + "\n" + indented(app::whole_why(insight));
    std::string change;
    for (const auto& [key, value] : insight.change) change += " --set " + key + "=" + value;
    if (!change.empty()) text += indented("Try:" + change);
    if (const std::string place = app::line_of(insight, run.trace); !place.empty() && (insight.headline + app::whole_why(insight)).find(place) == std::string::npos)
      text += indented("Seen at " + place + ".");
    if (insight.saves_us.known()) text += indented("Predicted by: whatif \"" + insight.edits + "\", " + prof::interval_text(insight.saves_us) + " a step");
    if (const std::string checked = app::checked_text(insight, proved); !checked.empty()) text += indented(checked);
  }
  if (text.empty()) return "\nNothing stands out.\n";
  const std::string note = app::predictions_note(all.found, proved).text;
  return note.empty() ? text : text + "\n" + wrapped(note, 0, 0) + "\n";
}

prof::CountedSteps counted_steps(const prof::RunData& run) { return prof::counted_steps(prof::StepsOfRun::of(run).sample()); }

// Prints a recorded program: its modules as a tree, or what the host did. Returns false if `by` is neither.
bool print_program(const prof::RunData& run, const StatsArguments& a) {
  if (a.by == "module") {
    const prof::CountedSteps counted = counted_steps(run);
    const auto tree = prof::module_tree(run.trace, counted);
    a.json ? void(std::printf("%s\n", prof::to_json(tree, counted).c_str()))
           : print_table(heading(run.summary) + prof::to_text(tree, counted));
    return true;
  }
  if (a.by == "cause") {
    a.json ? void(std::printf("%s\n", app::to_json(app::run_insights(run).found, run.trace).c_str())) : print_table(heading(run.summary) + causes_text(run));
    return true;
  }
  if (a.by == "critical") {
    const prof::CriticalReport report = prof::critical_report(prof::step_causes(run), run.trace);
    a.json ? void(std::printf("%s\n", prof::to_json(report).c_str())) : print_table(heading(run.summary) + prof::to_text(report));
    return true;
  }
  if (a.by == "stall") {
    const prof::StallReport report = prof::stall_report(run, a.kernel, a.instructions);
    a.json ? void(std::printf("%s\n", prof::to_json(report).c_str())) : print_table(heading(run.summary) + prof::to_text(report));
    return true;
  }
  if (a.by != "host" && a.by != "gaps" && a.by != "stack") return false;
  const prof::CountedSteps counted = counted_steps(run);
  const prof::HostStacks stacks = a.by == "stack" ? prof::launch_stacks(run.trace, counted.stretches)
                                                  : prof::host_stacks(run.trace, {.gaps_only = a.by == "gaps", .ranges = counted.stretches});
  a.json ? void(std::printf("%s\n", prof::speedscope_json(stacks, run.summary.name).c_str()))
         : print_table(heading(run.summary) + (a.by == "stack" ? prof::launch_text(stacks, counted.text) : prof::host_text(stacks, counted.text)));
  if (a.json || a.by == "stack") return true;
  if (const std::string few = prof::few_samples_text(run.trace, counted.stretches); !few.empty()) std::printf("\n%s.\n", with_capital(few).c_str());
  return true;
}

// Rebuilds the options as they are on the command line.
std::vector<std::string> options_of(const StatsArguments& a) {
  std::vector<std::string> options{"--by", a.by};
  if (!a.kernel.empty()) options.insert(options.end(), {"--kernel", a.kernel});
  if (a.instructions) options.push_back("--instructions");
  std::string columns;
  for (const std::string& name : a.columns) columns += (columns.empty() ? "" : ",") + name;
  options.insert(options.end(), {"--columns", columns});
  if (a.json) options.push_back("--json");
  return options;
}

// A run file of any size is read block by block. `of_run` makes the report of another file, `of_file` the report of a run file.
template <class OfRun, class OfFile>
int print_compared(const StatsArguments& a, OfRun of_run, OfFile of_file) {
  const bool stored = a.files.size() == 1 && a.files[0].ends_with(".wsrun");
  const auto [summary, report] = [&] {
    if (stored) {
      prof::StoredSpans spans(a.files[0]);
      return std::pair(prof::read_run_summary(a.files[0]), of_file(spans));
    }
    const prof::RunData run = read(a.files);
    return std::pair(run.summary, of_run(run));
  }();
  if (a.json) {
    std::printf("%s\n", prof::to_json(report).c_str());
    return kDone;
  }
  print_table(heading(summary) + prof::to_text(report));
  return kDone;
}

int rank_stats(const StatsArguments& a) {
  return print_compared(
      a, [](const prof::RunData& run) { return prof::rank_report(run); },
      [](prof::StoredSpans& spans) { return spans.ranks(); });
}

int multiprocessor_stats(const StatsArguments& a) {
  return print_compared(
      a, [](const prof::RunData& run) { return prof::multiprocessor_report(run.trace); },
      [](prof::StoredSpans& spans) { return spans.multiprocessors(); });
}

// A program that only ran Python: all figures of its steps and kernels would be zero.
bool only_host(const prof::TraceStats& stats) {
  return stats.steps == 0 && stats.by_name.empty() && stats.cpu_ops.empty() && stats.api_calls == 0 && stats.activity.untraced == 0;
}

int stats(const StatsArguments& a) {
  const auto by = kGroups.find(a.by);
  const bool program = a.by == "module" || a.by == "host" || a.by == "gaps" || a.by == "stack" || a.by == "cause" || a.by == "critical" || a.by == "stall";
  if (by == kGroups.end() && !program && a.by != "rank" && a.by != "multiprocessor")
    throw UsageError(
        "--by: choose name, op, layer, phase, shape, line, stall, stack, rank, multiprocessor, module, host, gaps, cause or critical, not " + a.by);
  if (!a.kernel.empty() && a.by != "stall") throw UsageError("--kernel: needs --by stall");
  if (a.instructions && a.kernel.empty()) throw UsageError("--instructions: needs --kernel");
  const auto columns = columns_of(a.columns);
  if (app::is_remote(a.files[0])) {
    if (a.files.size() > 1) throw UsageError("FILE: name only one run of another machine");
    return print_from_there(a.files[0], "stats", options_of(a));
  }
  if (a.by == "rank") return rank_stats(a);
  if (a.by == "multiprocessor") return multiprocessor_stats(a);
  const prof::RunData run = read(a.files);
  if (print_program(run, a)) return kDone;
  prof::TraceStats stats = prof::run_stats(run, by->second);
  if (!a.json && only_host(stats) && prof::has_samples(run.trace)) {
    print_table(heading(run.summary) + prof::host_text(prof::host_stacks(run.trace)));
    return kDone;
  }
  if (!a.json && terminal_width())  // the end of a name fits only without its namespaces
    for (prof::KernelRow& row : stats.by_name) row.key = prof::plain_kernel_name(row.key);
  if (a.json) {
    std::printf("%s\n", prof::to_json(stats, a.by).c_str());
    return kDone;
  }
  print_table(heading(run.summary) +
              prof::to_text(stats, a.columns == prof::kUsualColumns ? fitting(columns) : columns));
  return kDone;
}

}  // namespace

void add_limit(CLI::App& command) {
  command
      .add_option_function<double>(
          "--limit", [](double gib) { set_memory_limit(static_cast<int64_t>(gib * (1 << 30))); },
          "most memory to use for reading a file or a data set (default: half of the free memory)")
      ->type_name("GIB")
      ->check(CLI::Range(0.1, 1e5));
}

Run add_convert(CLI::App& program) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App& command = *program.add_subcommand(
      "convert", "convert other tools' traces to run files, and run files to Chrome/Perfetto JSON");
  add_limit(command);
  command
      .add_option("FILES", *files,
                  "the file to read, then the file to write; its ending chooses the format. Several files to read, "
                  "of the ranks or hosts of one program, or a folder of them, become one run")
      ->required()
      ->expected(2, prof::kMostRanks + 1);
  const std::string formats =
      "Reads .wsrun, .json and .json.gz (Chrome, Perfetto, PyTorch), .sqlite (Nsight Systems), .csv (TensorBoard "
      "scalars), .perfetto-trace and .pickle (PyTorch memory snapshots). Writes .wsrun, .json and .json.gz, and stacks as "
      ".speedscope.json or .collapsed.";
  command.footer(wrapped(formats, 0, 0) +
                 "\n\nExamples:\n  warpsight convert a.wsrun a.json.gz\n"
                 "  warpsight convert rank0.json rank1.json both.wsrun");
  return [files] {
    const std::vector<std::string> from(files->begin(), files->end() - 1);
    say_problems(from[0], prof::convert(from, files->back()));
    const std::string& to = files->back();
    const bool stacks = to.ends_with(".collapsed") || to.ends_with(".speedscope.json");
    const char* const what = to.ends_with(".wsrun") ? "run" : stacks ? "stacks" : "trace";
    say_written(what, to);
    return kDone;
  };
}

Run add_diff(CLI::App& program) {
  auto files = std::make_shared<TwoFiles>();
  CLI::App& command = *program.add_subcommand("diff", "explain why the steps of two runs differ");
  add_limit(command);
  command.add_option("A", files->a, "the baseline: a run file or another tool's trace")->required();
  command.add_option("B", files->b, "the run to compare with it")->required();
  command.add_option("--by", files->by, "only where the kernels differ: by op, layer, block of layers, module of a recorded program, or line")
      ->check(CLI::IsMember({"op", "layer", "module", "line"}));
  command.add_option("--fail-above", files->fail_above, "exit code 1 if a step of B takes longer by more than this, beyond noise; 3 if the noise is too large to tell")
      ->type_name("PERCENT");
  command.add_flag("--json", files->json, "print one JSON object");
  command.footer("Examples:\n  warpsight diff a.wsrun b.wsrun\n  warpsight diff --by line before.wsrun after.wsrun");
  return [files] { return diff(*files); };
}

Run add_stats(CLI::App& program) {
  auto arguments = std::make_shared<StatsArguments>();
  CLI::App& command = *program.add_subcommand("stats", "steps, kernels, calls and memory of a recorded run");
  add_limit(command);
  command
      .add_option("FILE", arguments->files,
                  "a run file or another tool's trace; ssh://host:a.wsrun for one there; several files, of the "
                  "ranks or hosts of one program, or a folder of them, are shown as one run")
      ->required()
      ->expected(1, prof::kMostRanks);
  command
      .add_option(
          "--by", arguments->by,
          "one row per name, op, layer, phase, shape (name, grid and block), line, stall (where kernels wait and for what, after --xray), rank or multiprocessor (which one is late); for a "
          "recorded program also: "
          "module (a tree), stack (time by the stack that launched it), host (CPU stacks), gaps (CPU stacks while the GPU was idle), cause (advice: what costs time, and "
          "where), critical (the chain of causes that decides the step time, and the slack of everything else)")
      ->type_name("WHAT")
      ->capture_default_str();
  command.add_option("--kernel", arguments->kernel, "with --by stall: also the lines of the kernel whose name has this part")->type_name("NAME");
  command.add_flag("--instructions", arguments->instructions, "with --kernel: also its machine instructions, as nvdisasm of the CUDA toolkit names them");
  command
      .add_option("--columns", arguments->columns,
                  "columns of the kernel table, separated by commas: " + all_columns() + "; or all")
      ->type_name("LIST")
      ->delimiter(',')
      ->default_str("mean,p50,p99,occupancy");
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.footer(
      "Examples:\n  warpsight stats a.wsrun\n  warpsight stats a.wsrun --by op --columns "
      "min,mean,sigma,p999\n  warpsight stats rank0.json rank1.json --by rank");
  return [arguments] { return stats(*arguments); };
}

}  // namespace ws::cli
