// A run whose host launches graphs of many steps long before the GPU gets to them: every time in it is known.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::test {

struct GraphRun {
  int steps_a_graph = 16, graphs_an_epoch = 50;
  prof::TimeNs gemm_ns = 9'000, update_ns = 7'000, gap_ns = 1'000;  // the gap follows each kernel
  prof::TimeNs step_ns() const { return gemm_ns + update_ns + 2 * gap_ns; }
};

namespace graph_run {

inline prof::Span span(prof::Trace& trace, prof::TimeNs start, prof::TimeNs ns, prof::SpanKind kind,
                       prof::Meaning meaning, const char* name, uint32_t step, uint32_t correlation) {
  prof::Span s;
  s.start = start, s.duration = static_cast<uint64_t>(ns), s.kind = static_cast<uint64_t>(kind);
  s.meaning = static_cast<uint64_t>(meaning), s.name = trace.intern(name), s.step = step, s.correlation = correlation;
  return s;
}

}  // namespace graph_run

// The host marks a graph in 33 µs and then waits in one call nearly as long as the GPU works; after each epoch an
// evaluation of 2 ms stands between the steps.
inline void add_graph_run(prof::Trace& trace, const GraphRun& shape, int epochs) {
  using prof::Meaning, prof::SpanKind, prof::TrackKind;
  const auto marks = trace.track(TrackKind::Steps, "steps", "CPU"),
             calls = trace.track(TrackKind::Api, "thread 1 calls", "CPU"),
             stream = trace.track(TrackKind::Stream, "stream 13", "GPU 0");
  prof::TimeNs host = 1'000'000, gpu = 1'050'000;
  uint32_t step = 1, correlation = 1;
  const auto at = [&trace](prof::TimeNs start, prof::TimeNs ns, SpanKind kind, Meaning meaning, const char* name,
                           uint32_t number,
                           uint32_t id) { return graph_run::span(trace, start, ns, kind, meaning, name, number, id); };
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int graph = 0; graph < shape.graphs_an_epoch; ++graph, ++correlation) {
      trace.append(marks, at(host, 32'000, SpanKind::Step, Meaning::Other, "step", step, 0));
      trace.append(calls,
                   at(host, 10'000, SpanKind::GraphLaunch, Meaning::Launch, "cudaGraphLaunch", step, correlation));
      for (int i = 0; i < shape.steps_a_graph; ++i, ++step) {
        auto gemm = at(gpu, shape.gemm_ns, SpanKind::Kernel, Meaning::Matrix, "gemm", step, correlation);
        auto update = at(gemm.end() + shape.gap_ns, shape.update_ns, SpanKind::Kernel, Meaning::Optimizer, "update",
                         step, correlation);
        gemm.flags = update.flags = prof::kInGraph;
        trace.append(stream, gemm), trace.append(stream, update);
        gpu += shape.step_ns();
      }
      host += 33'000;
    }
    trace.append(calls, at(host, gpu - host, SpanKind::Sync, Meaning::Sync, "cudaStreamSynchronize", 0, 0));
    trace.append(stream, at(gpu, 2'000'000, SpanKind::Kernel, Meaning::Matrix, "evaluate", 0, 0));
    gpu += 2'100'000;
    host = gpu - 50'000;
  }
}

}  // namespace ws::test
