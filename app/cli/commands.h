// The subcommands of warpsight. Each one adds itself to the program and runs if it was chosen.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/plan/run_spec.h"
#include "profiling/collectors/collector.h"

namespace ws::cli {

// Exit codes.
constexpr int kDone = 0, kFailed = 1, kUsage = 2, kCannotTell = 3;

// An error in the command line itself: exit code 2.
class UsageError : public Failure {
 public:
  using Failure::Failure;
};

using Run = std::function<int()>;

Run add_train(CLI::App& program);
Run add_plan(CLI::App& program);
Run add_list(CLI::App& program);
Run add_experiment(CLI::App& program);
Run add_kernel(CLI::App& program);
Run add_exercise(CLI::App& program);
Run add_lab(CLI::App& program);
Run add_report(CLI::App& program);
Run add_convert(CLI::App& program);
Run add_diff(CLI::App& program);
Run add_stats(CLI::App& program);
Run add_what_if(CLI::App& program);
Run add_check(CLI::App& program);
Run add_gate(CLI::App& program);
Run add_prove(CLI::App& program);
Run add_sql(CLI::App& program);
Run add_record(CLI::App& program);
Run add_torch(CLI::App& program);
Run add_attach(CLI::App& program);
Run add_install(CLI::App& program);
Run add_serve(CLI::App& program);
Run add_follow(CLI::App& program);
Run add_job(CLI::App& program);

double percent_of(const std::string& option, const std::string& text);  // reads "2%" or "2"; throws UsageError
void add_limit(CLI::App& command);  // --limit, for commands that read files

// What --json prints, with the version of its schema. The same object without it is also part of files.
nlohmann::json versioned(nlohmann::json object);

// Throws UsageError if a file to write has none of the endings: a wrong one is most often another file, which would be
// lost. A device or a pipe takes anything. `written_as`: "points are written as".
void check_ending(const std::string& option, const std::string& file, const std::string& written_as,
                  const std::vector<std::string>& endings);
void check_run_name(const std::string& file);  // the same for --run

prof::TraceLevel trace_level(const std::string& name);  // parses --trace; throws UsageError

// PRESET|FILE and --set, which several commands share.
struct SpecArguments {
  std::string source;
  std::vector<std::string> overrides;  // "exec.allocator=caching"
  std::vector<std::string> kernels;    // "fc1=my.cu"

  void add_to(CLI::App& command, bool source_required = true);
  RunSpec spec() const;   // with the overrides, adapted to this machine
  RunSpec asked() const;  // with the overrides, for any machine
  RunSpec named() const;  // without the overrides
  void override_in(RunSpec& spec) const;
};

// Adapts the GPU choices of a preset to this machine. Prints what was replaced to stderr.
RunSpec fit(RunSpec spec);

}  // namespace ws::cli
