// Drawing cost and ingest: a query must follow pixels, not events.
#include <benchmark/benchmark.h>

#include "profiling/trace/lod.h"

namespace ws::prof {
namespace {

uint64_t next(uint64_t& random) { return (random = random * 6364136223846793005u + 1442695040888963407u) >> 33; }

// Steps of 20 kernels, as a small network makes them. Uneven: kernels of 0.5 to 500 µs, and pauses of up to 10 s.
void fill(Trace& trace, TrackId id, int64_t count, bool uneven) {
  uint64_t random = 1;
  Span span;
  TimeNs time = 0;
  for (int64_t i = 0; i < count; ++i) {
    span.start = time;
    span.duration = uneven ? uint64_t{500} << (next(random) % 11) : 1500 + static_cast<uint64_t>(i * 7919 % 1000);
    span.meaning = static_cast<uint8_t>(i % 4);
    span.name = NameId{static_cast<uint32_t>(i % 20)};
    trace.append(id, span);
    time += static_cast<TimeNs>(span.duration) + (i % 20 == 19 ? 5000 : 700);
    if (uneven && i % 20 == 19) time += TimeNs{10} << (next(random) % 31);
  }
}

const Trace& big(int64_t count, bool uneven) {
  static Trace trace;
  static std::pair filled{int64_t{0}, false};
  if (filled != std::pair{count, uneven}) {
    trace = Trace();
    fill(trace, trace.track(TrackKind::Stream, "stream 7", "GPU 0"), count, uneven);
    filled = {count, uneven};
  }
  return trace;
}

void lod_2000_pixels(benchmark::State& state) {
  const Trace& trace = big(state.range(0), state.range(2) != 0);
  const TimeNs end = trace.last_time() / state.range(1);
  for (auto _ : state) benchmark::DoNotOptimize(lod(trace.tracks()[0], 0, end, 2000));
  state.counters["spans"] = static_cast<double>(trace.span_count());
}
BENCHMARK(lod_2000_pixels)
    ->ArgNames({"spans", "zoom", "uneven"})
    ->Args({1'000'000, 1, 0})
    ->Args({100'000'000, 1, 0})
    ->Args({100'000'000, 100, 0})
    ->Args({100'000'000, 100'000, 0})
    ->Args({100'000'000, 1, 1})
    ->Args({100'000'000, 100, 1})
    ->Args({100'000'000, 100'000, 1})
    ->Unit(benchmark::kMillisecond);

void ingest(benchmark::State& state) {
  for (auto _ : state) {
    Trace trace;
    fill(trace, trace.track(TrackKind::Stream, "stream 7", "GPU 0"), 5'000'000, false);
    benchmark::DoNotOptimize(trace.span_count());
  }
  state.SetItemsProcessed(state.iterations() * 5'000'000);
}
BENCHMARK(ingest)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ws::prof

BENCHMARK_MAIN();
