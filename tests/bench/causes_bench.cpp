// How long a graph of causes, its replay and all sensitivities take. A million spans: 1 s for graph and replay, 5 s for all
// sensitivities on two cores; twice the spans at most 2.5 times as long.
#include <benchmark/benchmark.h>

#include "profiling/causes/what_if.h"
#include "tests/profiling/causes/made_program.h"

namespace ws::prof {
namespace {

RunData long_run(int64_t spans) {
  MadeProgram program = small_network();
  program.sync = true;
  program.steps = static_cast<int>(spans / static_cast<int64_t>(2 * program.kernels.size() + 2));
  return program.run();
}

StepCauses all_steps(const RunData& run) {
  StepCauses causes;
  causes.graph = cause_graph(run.trace, {run.trace.first_time(), run.trace.last_time() + 1});
  causes.step_us = {static_cast<double>(causes.graph.window.length()) * 1e-3, 0};
  return causes;
}

void graph_and_replay(benchmark::State& state) {
  const RunData run = long_run(state.range(0));
  for (auto _ : state) {
    const CauseGraph graph = cause_graph(run.trace, {run.trace.first_time(), run.trace.last_time() + 1});
    benchmark::DoNotOptimize(replay(graph, measured_timing(graph)).back());
  }
  state.counters["spans"] = static_cast<double>(run.trace.span_count());
}
BENCHMARK(graph_and_replay)->Arg(1'000'000)->Arg(2'000'000)->Unit(benchmark::kMillisecond)->Iterations(3);

void sensitivities(benchmark::State& state) {
  const RunData run = long_run(state.range(0));
  const StepCauses causes = all_steps(run);
  for (auto _ : state) benchmark::DoNotOptimize(what_if(causes, run.trace, {}).rows.size());
  state.counters["spans"] = static_cast<double>(run.trace.span_count());
}
BENCHMARK(sensitivities)->Arg(1'000'000)->Arg(2'000'000)->Unit(benchmark::kMillisecond)->Iterations(2);

}  // namespace
}  // namespace ws::prof
