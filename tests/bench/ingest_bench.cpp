// How many GPU records a second one core turns into spans.
#include <benchmark/benchmark.h>

#include <string>

#include "profiling/cupti/cupti_parse.h"
#include "tests/profiling/cupti/fake_records.h"

namespace ws::prof {
namespace {

using testing::FakeRecords;

constexpr int kKernels = 4800;  // fill a buffer of 1 MiB

const std::vector<std::string>& names() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 24; ++i)
      made.push_back("_Z" + std::to_string(18 + i / 10) + "fused_kernel_number" + std::to_string(i) + "PfS_i");
    return made;
  }();
  return list;
}

// Eager launches: every kernel is joined by its call. Graph launches: by its node.
void ingest(benchmark::State& state, bool graphs, bool into_trace) {
  const OpTag first = register_ops(std::vector<OpInfo>(24, {"op", "", "fc1", "forward", Meaning::Pointwise}));
  FakeRecords records;
  for (uint32_t i = 0; i < kKernels; ++i) {
    records.kernel(names()[i % 24].c_str(), 1'000'000 + i * 2000, 1'001'500 + i * 2000, graphs ? i / 24 + 1 : i + 1,
                   graphs ? i % 24 + 1 : 0);
  }
  TraceContext context;
  context.expects_ops = true;
  RecordParser parser(context);
  for (uint32_t i = 0; i < 24; ++i) context.join.node_created(i + 1, static_cast<OpTag>(first + i), 0);
  int64_t spans = 0;
  Trace trace;
  for (auto _ : state) {
    context.origin -= 20'000'000;  // the same records, later
    for (uint32_t i = 0; i < kKernels; ++i) {
      if (!graphs)
        context.join.launched(i + 1, {static_cast<OpTag>(first + i % 24), i / 24 + 1});
      else if (i % 24 == 0)
        context.join.graph_launched(i / 24 + 1, i / 24 + 1, 1);
    }
    parser.parse(records.data(), records.size(), FakeRecords::next);
    TraceBatch batch = context.batch.finish();
    spans += static_cast<int64_t>(batch.span_count());
    if (into_trace) append(trace, std::move(batch));
    if (trace.span_count() > 2'000'000) trace = Trace();
    benchmark::DoNotOptimize(batch);
  }
  state.SetItemsProcessed(spans);
}

BENCHMARK_CAPTURE(ingest, eager, false, false);
BENCHMARK_CAPTURE(ingest, graphs, true, false);
BENCHMARK_CAPTURE(ingest, graphs_into_a_trace, true, true);

}  // namespace
}  // namespace ws::prof

BENCHMARK_MAIN();
