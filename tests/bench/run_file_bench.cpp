// Opening a big run file: what a person waits for before the timeline is there.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "profiling/run_file/run_file.h"
#include "profiling/trace/lod.h"

namespace ws::prof {
namespace {

constexpr int64_t kSpans = 10'000'000;

// Steps of 16 kernels and their calls, with the jitter that a GPU's durations have.
Trace made_trace() {
  Trace trace;
  const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  const TrackId steps = trace.track(TrackKind::Steps, "steps", "CPU");
  std::mt19937 random(5);
  TimeNs time = 0;
  std::vector<NameId> names;
  for (int i = 0; i < 16; ++i) names.push_back(trace.intern("kernel " + std::to_string(i)));
  const NameId step_name = trace.intern("step");
  for (int64_t i = 0; trace.span_count() < kSpans; ++i) {
    Span step;
    step.start = time;
    for (uint32_t k = 0; k < 16; ++k) {
      Span span;
      span.start = time;
      span.duration = 1500 + k * 100 + random() % 64;
      span.meaning = k % 4;
      span.name = names[k];
      span.correlation = static_cast<uint32_t>(i + 1);
      span.step = static_cast<uint32_t>(i + 1);
      trace.append(stream, span);
      time = span.end() + 700 + static_cast<TimeNs>(random() % 32);
    }
    step.duration = static_cast<uint64_t>(time - step.start);
    step.kind = static_cast<uint64_t>(SpanKind::Step);
    step.name = step_name;
    step.step = static_cast<uint32_t>(i + 1);
    trace.append(steps, step);
    time += 5000;
  }
  return trace;
}

class BigFile {
 public:
  BigFile() {
    RunFileWriter writer(path, {});
    writer.add(made_trace());
    writer.finish();
  }
  ~BigFile() { std::filesystem::remove(path); }
  std::string path =
      (std::filesystem::temp_directory_path() / ("open-" + std::to_string(getpid()) + ".wsrun")).string();
};

// The list of blocks, the picture of the whole run, and the spans of one screen after zooming in.
void open_run_file(benchmark::State& state) {
  static const BigFile file;
  for (auto _ : state) {
    RunFileReader reader(file.path);
    Trace trace = reader.trace();
    benchmark::DoNotOptimize(lod(trace.tracks()[0], 0, trace.last_time(), 2000));
    reader.fill(trace, trace.last_time() / 2, trace.last_time() / 2 + 10'000'000);
    benchmark::DoNotOptimize(trace);
  }
  state.counters["spans"] = kSpans;
  state.counters["bytes_per_span"] = static_cast<double>(std::filesystem::file_size(file.path)) / kSpans;
}
BENCHMARK(open_run_file)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ws::prof
