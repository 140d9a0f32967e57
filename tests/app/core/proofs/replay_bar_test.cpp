// Replay of unchanged recordings: how far a replayed step is from the measured one, over recordings of all kinds that this
// machine can make or that ship. Prints a row for each; WARPSIGHT_RECORDINGS names a folder with more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "app/core/runs/recorded_once.h"
#include "profiling/base/failure.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/causes/what_if.h"
#include "profiling/formats/convert.h"
#include "profiling/formats/join_ranks.h"
#include "tests/profiling/analysis/made_ranks.h"
#include "tests/profiling/causes/made_program.h"
#include "tests/support/synthetic_trace.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

struct Replayed {
  std::string name;
  size_t nodes = 0;
  double steps = 0, step_us = 0, error = 0, whole_error = 0;  // of the median step, and of all steps together
  double unexplained_us = 0;
  std::string span;  // what it cannot explain
};

class ReplayBar : public testing::Test {
 protected:
  void add(const std::string& name, const prof::RunData& run) {
    const prof::StepCauses causes = prof::step_causes(run);
    const prof::WhatIf result = prof::what_if(causes, run.trace, {}, 0);
    const prof::ReplayRate rate(causes.graph, causes.cuts);
    const auto measured = static_cast<double>(rate.measured_ns());
    const double all = static_cast<double>(rate.replayed_ns(prof::replay(causes.graph, prof::measured_timing(causes.graph))));
    rows_.push_back({name, causes.graph.nodes.size(), causes.steps, result.measured_us.value, result.replay_error, measured > 0 ? std::abs(all / measured - 1) : 0,
                     result.unexplained_us, result.least_explained});
    for (const std::string& warning : result.warnings) rows_.back().span += (rows_.back().span.empty() ? "" : "; ") + warning;
  }
  void add_file(const fs::path& file) { add(file.stem().string(), prof::import_ranks({file.string()})); }
  // The same run as another tool's trace.
  void add_export(const fs::path& file) {
    const std::string path = (folder_.path() / (file.stem().string() + ".json")).string();
    prof::export_run(prof::import_ranks({file.string()}), path);
    add(file.stem().string() + ", as Chrome JSON", prof::import_run(path));
  }
  void add_training(const std::string& preset, const std::vector<std::pair<const char*, const char*>>& choices) {
    RunSpec spec = load_spec(preset);
    set_field(spec, "exec.device", "cpu");
    std::string name = preset + " on the CPU";
    for (const auto& [key, value] : choices) set_field(spec, key, value), name += std::string(", ") + value;
    add(name, recorded_training(spec, data::load(spec.data), 0.15));
  }
  void add_made(const std::string& name, const std::function<void(prof::MadeProgram&)>& change) {
    prof::MadeProgram program = prof::small_network();
    change(program);
    add("made: " + name, program.run());
  }

  void print() const {
    std::printf("%-44s %8s %6s %12s %9s %9s %12s  %s\n", "recording", "nodes", "steps", "step µs", "median %", "all %", "unexplained", "what is not explained");
    for (const Replayed& row : rows_)
      std::printf("%-44s %8zu %6.0f %11.2f %9.3f %9.3f %12.2f  %s\n", row.name.c_str(), row.nodes, row.steps, row.step_us, 100 * row.error, 100 * row.whole_error, row.unexplained_us, row.span.c_str());
  }
  double sorted_error(double share) const {
    std::vector<double> errors;
    for (const Replayed& row : rows_) errors.push_back(std::max(row.error, row.whole_error));
    return percentile(errors, share);
  }

  TemporaryFolder folder_;
  std::vector<Replayed> rows_;
};

TEST_F(ReplayBar, FortyRecordingsHaveTheirTime) {
  for (const auto& entry : fs::directory_iterator(WARPSIGHT_SOURCE_DIR "/resources/recorded"))
    if (entry.path().extension() == ".wsrun") add_file(entry.path()), add_export(entry.path());
  add("PyTorch's profiler", prof::import_run(WARPSIGHT_SOURCE_DIR "/tests/profiling/formats/data/torch_steps.json.gz"));
  if (const char* more = std::getenv("WARPSIGHT_RECORDINGS"))
    for (const auto& entry : fs::directory_iterator(more)) add_file(entry.path());

  for (const char* allocator : {"direct", "caching", "arena"})
    for (const char* sync : {"every-op", "every-step", "on-read"}) add_training("mnist-naive", {{"exec.allocator", allocator}, {"exec.sync", sync}});
  for (const char* preset : {"iris", "spirals", "regression", "mnist", "mnist-conv", "shapes-residual"}) add_training(preset, {});
  add_training("iris", {{"exec.gpus", "2"}});

  add_made("host ahead", [](auto&) {});
  add_made("wait at each step", [](auto& p) { p.sync = true; });
  add_made("one graph", [](auto& p) { p.graph = true; });
  add_made("one graph, wait at each step", [](auto& p) { p.graph = p.sync = true; });
  add_made("slow launches", [](auto& p) { for (auto& kernel : p.kernels) kernel.call = 20'000; });
  add_made("allocations", [](auto& p) { for (auto& kernel : p.kernels) kernel.allocation = 12'000; });
  add_made("data loader", [](auto& p) { p.data = 300'000; });
  add_made("data loader, wait at each step", [](auto& p) {
    p.data = 300'000;
    p.sync = true;
  });
  add_made("two threads", [](auto& p) { p.other_thread = true; });
  add_made("two streams", [](auto& p) {
    p.kernels[0].stream = p.kernels[2].stream = 1;
    p.sync = true;
  });
  for (const auto& [name, style] : {std::pair("graph and arena", test::StepStyle::GraphArena), {"eager and direct", test::StepStyle::EagerDirect}, {"persistent", test::StepStyle::Persistent}}) {
    prof::RunData run;
    test::add_steps(run.trace, style, 0, 60);
    add(std::string("made: ") + name, run);
  }
  for (const int ranks : {2, 8}) {
    prof::MadeRanks made;
    made.ranks = ranks, made.steps = 30, made.late_rank = 1, made.usually_late = 400'000;
    prof::RunData run;
    run.trace = made.joined();
    add("made: " + std::to_string(ranks) + " ranks, one late", run);
  }

  print();
  EXPECT_GE(rows_.size(), 40u);
  EXPECT_LE(sorted_error(0.5), 0.002);
  for (const Replayed& row : rows_) EXPECT_LE(std::max(row.error, row.whole_error), 0.01) << row.name << ": " << row.span;
}

}  // namespace
}  // namespace ws::app
