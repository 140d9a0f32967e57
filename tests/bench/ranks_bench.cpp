// How long the comparison of ranks takes: of a run file block by block, and of very many ranks in memory.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>

#include "profiling/run_file/stored_spans.h"
#include "tests/profiling/analysis/made_ranks.h"

namespace ws::prof {
namespace {

// 8 ranks with 10 million spans in all.
class RanksFile {
 public:
  RanksFile() {
    MadeRanks made;
    made.steps = 12'000, made.kernels = 100;
    const Trace trace = made.joined();
    spans = static_cast<int64_t>(trace.span_count());
    RunFileWriter writer(path, {});
    writer.add(trace);
    writer.finish();
  }
  ~RanksFile() { std::filesystem::remove(path); }
  int64_t spans = 0;
  std::string path =
      (std::filesystem::temp_directory_path() / ("ranks-" + std::to_string(getpid()) + ".wsrun")).string();
};

void compare_ranks_of_file(benchmark::State& state) {
  static const RanksFile file;
  for (auto _ : state) benchmark::DoNotOptimize(StoredSpans(file.path).ranks().straggler.rank);
  state.counters["spans"] = static_cast<double>(file.spans);
}
BENCHMARK(compare_ranks_of_file)->Unit(benchmark::kMillisecond);

void compare_1024_ranks(benchmark::State& state) {
  MadeRanks made;
  made.ranks = 1024, made.steps = 200;
  const Trace trace = made.joined();
  for (auto _ : state) benchmark::DoNotOptimize(rank_report(trace).straggler.rank);
  state.counters["spans"] = static_cast<double>(trace.span_count());
}
BENCHMARK(compare_1024_ranks)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ws::prof
