// Drawing cost and ingest: a query must follow pixels, not events.
#include <benchmark/benchmark.h>

#include "profiling/lod.h"

namespace ws::prof {
namespace {

// Steps of 20 kernels, as a small network makes them.
void fill(Trace& trace, TrackId id, int64_t count) {
  Span span;
  TimeNs time = 0;
  for (int64_t i = 0; i < count; ++i) {
    span.start = time;
    span.duration = 1500 + static_cast<uint64_t>(i * 7919 % 1000);
    span.meaning = static_cast<uint8_t>(i % 4);
    span.name = NameId{static_cast<uint32_t>(i % 20)};
    trace.append(id, span);
    time += static_cast<TimeNs>(span.duration) + (i % 20 == 19 ? 5000 : 700);
  }
}

const Trace& big(int64_t count) {
  static Trace trace;
  static int64_t filled = 0;
  if (filled != count) {
    trace = Trace();
    fill(trace, trace.track(TrackKind::Stream, "stream 7", "GPU 0"), count);
    filled = count;
  }
  return trace;
}

void lod_2000_pixels(benchmark::State& state) {
  const Trace& trace = big(state.range(0));
  const TimeNs end = trace.last_time() / state.range(1);
  for (auto _ : state) benchmark::DoNotOptimize(lod(trace.tracks()[0], 0, end, 2000));
  state.counters["spans"] = static_cast<double>(trace.span_count());
}
BENCHMARK(lod_2000_pixels)
    ->ArgNames({"spans", "zoom"})
    ->Args({1'000'000, 1})
    ->Args({100'000'000, 1})
    ->Args({100'000'000, 100})
    ->Args({100'000'000, 100'000})
    ->Unit(benchmark::kMillisecond);

void ingest(benchmark::State& state) {
  for (auto _ : state) {
    Trace trace;
    fill(trace, trace.track(TrackKind::Stream, "stream 7", "GPU 0"), 5'000'000);
    benchmark::DoNotOptimize(trace.span_count());
  }
  state.SetItemsProcessed(state.iterations() * 5'000'000);
}
BENCHMARK(ingest)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ws::prof

BENCHMARK_MAIN();
