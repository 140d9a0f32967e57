// Runs of many ranks, made of numbers that are known: as a report, and as a trace.
#pragma once
#include <cmath>
#include <memory>

#include "app/workspace/run.h"
#include "profiling/analysis/ranks.h"

namespace ws::test {

// Between 0 and 1, the same each time.
inline double noise(size_t a, size_t b) {
  const double x = std::sin(static_cast<double>(a) * 12.9898 + static_cast<double>(b) * 78.233) * 43758.5453;
  return x - std::floor(x);
}

// Rank 5 comes 3 ms late in every 10th step. The other ranks are within 40 µs.
inline prof::RankReport made_report(size_t ranks = 8, size_t steps = 100, size_t ranks_a_host = 4) {
  prof::RankReport report;
  report.clock_error_us = 14, report.step_us = 2430, report.wait_us = 300, report.exposed_us = 267;
  for (size_t r = 0; r < ranks; ++r) {
    prof::RankRow row;
    row.rank = static_cast<int>(r), row.host = "node-" + std::to_string(r / ranks_a_host + 1);
    row.step = 2430, row.late = r == 5 ? 312 : 10 + static_cast<double>(r % 7), row.wait = r == 5 ? 4 : 301.5;
    row.transfer = 428, row.exposed = 267, row.caused = r == 5 ? 296 : 0.5, row.collectives = 5 * steps;
    report.ranks.push_back(row);
  }
  for (size_t s = 0; s < steps; ++s)
    report.steps.push_back(static_cast<int64_t>(s) + 1),
        report.step_begins.push_back(static_cast<prof::TimeNs>(s) * 2'430'000);
  for (size_t r = 0; r < ranks; ++r)
    for (size_t s = 0; s < steps; ++s)
      report.lateness.push_back(
          r == 5 && report.steps[s] % 10 == 0 ? 3000.0F : static_cast<float>(40 * noise(r, s) * noise(s, r)));
  report.collectives = {{"bucket 0", 25 << 20, 1, 276, 158, 57, 290},
                        {"bucket 1", 25 << 20, 1, 8, 158, 98, 290},
                        {"bucket 2", 9'017'753, 1, 6, 66, 66, 238},
                        {"mean of loss", 4, 1, 5, 22, 22, 0.0004},
                        {"gather stats", 2048, 1, 5, 24, 24, 0.12}};
  report.straggler = {5, 3000, static_cast<int64_t>(steps / 10), 10, 300, 0.12};
  return report;
}

// Steps of 1 ms on each rank: computation, then an all-reduce that begins when the rank arrives and ends for all at
// once. `late_us` is how late rank 1 comes in every 5th step.
inline std::unique_ptr<app::Run> made_rank_run(int ranks = 4, int steps = 60, double late_us = 200) {
  using prof::SpanKind, prof::TrackKind, prof::Meaning, prof::TimeNs;
  auto run = std::make_unique<app::Run>();
  run->id = "ranks", run->title = "torchrun ddp.py", run->device = "NVIDIA H200", run->slot = 0;
  run->summary = Summary{}, run->origin = app::RunOrigin::Imported;
  const auto add = [&](int rank, TrackKind track, const char* row, SpanKind kind, Meaning meaning,
                       const std::string& name, int step, TimeNs begin, TimeNs end) {
    prof::Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin), span.kind = static_cast<uint64_t>(kind);
    span.meaning = static_cast<uint64_t>(meaning), span.name = run->trace.intern(name);
    span.step = static_cast<uint32_t>(step) + 1;
    run->trace.append(run->trace.track(track, row, "GPU " + std::to_string(rank), 0, rank), span);
  };
  for (int step = 0; step < steps; ++step)
    for (int rank = 0; rank < ranks; ++rank) {
      const TimeNs begin = step * 1'000'000LL, late = rank == 1 && step % 5 == 4 ? std::llround(late_us * 1000) : 0;
      const TimeNs arrival = begin + 500'000 + late + 1000 * rank;
      const TimeNs last = begin + 500'000 + (step % 5 == 4 ? std::llround(late_us * 1000) : 0) + 1000 * ranks;
      add(rank, TrackKind::Steps, "steps", SpanKind::Step, Meaning::Other, "step", step, begin, begin + 990'000);
      add(rank, TrackKind::Stream, "stream 7", SpanKind::Kernel, Meaning::Matrix, "gemm", step, begin + 10'000 + late,
          arrival - 1000);
      add(rank, TrackKind::Stream, "stream 13", SpanKind::Kernel, Meaning::Communication,
          "ncclDevKernel_AllReduce_Sum_f32_RING_LL", step, arrival, last + 100'000);
    }
  return run;
}

}  // namespace ws::test
