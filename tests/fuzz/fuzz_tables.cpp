// What is computed and printed of spans that another process sent: every table of `stats`.
#include "app/core/comparison/comparison_text.h"
#include "app/core/insights/trace_insights.h"
#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/trace/batch_codec.h"
#include "tests/fuzz/fuzz_trace.h"

namespace {

using namespace ws;

void print_tables(const prof::RunData& run) {
  for (const auto by : {prof::GroupBy::Name, prof::GroupBy::Op, prof::GroupBy::Layer, prof::GroupBy::Phase,
                        prof::GroupBy::Shape, prof::GroupBy::Line})
    prof::to_json(prof::run_stats(run, by));
  prof::to_text(prof::run_stats(run));
  const prof::CountedSteps counted = prof::counted_steps(prof::StepsOfRun::of(run).sample());
  const auto modules = prof::module_tree(run.trace, counted);
  prof::to_text(modules, counted), prof::to_json(modules, counted);
  const auto ranks = prof::rank_report(run);
  prof::to_text(ranks), prof::to_json(ranks);
  const auto inside = prof::multiprocessor_report(run.trace);
  prof::to_text(inside), prof::to_json(inside);
  app::late_multiprocessor(inside);
  app::trace_insights(app::look_of(run.trace));
  for (const prof::HostStacks& stacks :
       {prof::host_stacks(run.trace), prof::host_stacks(run.trace, {.gaps_only = true}),
        prof::launch_stacks(run.trace, prof::TimeRange{-prof::kAlways, prof::kAlways})})
    prof::speedscope_json(stacks, "fuzz"), prof::collapsed_text(stacks), prof::host_text(stacks), prof::launch_text(stacks);
  app::to_text(app::compare(app::compared_run(run), app::compared_run(run)));
}

}  // namespace

FUZZ_TARGET(tables) {
  prof::RunData run;
  if (!fuzz::accepts([&] { prof::append(run.trace, prof::decode_batch(bytes)); })) return;
  fuzz::check_trace(run.trace);
  fuzz::accepts([&] { print_tables(run); });  // a run may have nothing that a table needs
}
