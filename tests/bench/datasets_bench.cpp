// How long a person waits for data: the images in the box, a long line, a CSV file.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "datasets/dataset.h"
#include "profiling/base/philox.h"

namespace {
using ws::data::DataSpec;

// 60,000 training and 10,000 test images; must stay under half a second.
void mnist(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ws::data::load({.name = "mnist"}));
  state.SetItemsProcessed(state.iterations() * 70'000);
}
BENCHMARK(mnist)->Unit(benchmark::kMillisecond)->UseRealTime();

void line(benchmark::State& state) {
  const DataSpec spec{.name = "line", .points = state.range(0)};
  for (auto _ : state) benchmark::DoNotOptimize(ws::data::load(spec));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(line)->Arg(1'000'000)->Arg(5'000'000)->Arg(20'000'000)->Unit(benchmark::kMillisecond)->UseRealTime();

// A file of its own for the time of the benchmark: 50,000 rows of eleven columns.
class CsvFile {
 public:
  CsvFile() {
    char name[] = "/tmp/warpsight-bench-XXXXXX";
    const int descriptor = mkstemp(name);
    path_ = name;
    FILE* file = fdopen(descriptor, "w");
    for (int c = 0; c < 10; ++c) std::fprintf(file, "f%d,", c);
    std::fputs("kind\n", file);
    for (uint64_t r = 0; r < 50'000; ++r) write_row(file, r);
    std::fclose(file);
  }
  ~CsvFile() { std::remove(path_.c_str()); }
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static void write_row(FILE* file, uint64_t row) {
    for (uint64_t c = 0; c < 10; ++c) std::fprintf(file, "%.5f,", ws::data::uniform_at(1, c, row));
    std::fprintf(file, "%c\n", "abc"[row % 3]);
  }
  std::string path_;
};

void csv(benchmark::State& state) {
  const CsvFile file;
  const DataSpec spec{.name = "csv", .path = file.path(), .label_column = "kind"};
  for (auto _ : state) benchmark::DoNotOptimize(ws::data::load(spec));
  state.SetItemsProcessed(state.iterations() * 50'000);
}
BENCHMARK(csv)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
