// A trace as a small network makes it: steps of named kernels with calls, copies, details and memory events.
#pragma once
#include <algorithm>
#include <random>
#include <string>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct MadeTrace {
  explicit MadeTrace(int step_count, int kernels_per_step = 20) {
    trace.ops.push_back({"fc1", "gemm fc1", "fc1", "forward", Meaning::Matrix, 1'000'000, 50'000});
    trace.ops.push_back({"relu1", "relu fc1", "fc1", "forward", Meaning::Pointwise, 10'000, 80'000});
    const NameId launch = trace.intern("cudaLaunchKernel");
    const NameId copy_name = trace.intern("Memcpy HtoD (Pageable -> Device)");
    Detail copy_detail;
    copy_detail.bytes = 4096;
    copy_detail.copy_kind = "pageable → device";
    const DetailId copy_id = trace.intern(copy_detail);
    trace.memory_sources = {"cudaMalloc"};
    for (int step = 0; step < step_count; ++step) {
      const TimeNs begin = time;
      add_copy(copy_name, copy_id, step);
      for (int k = 0; k < kernels_per_step; ++k) add_kernel(launch, k, step);
      Span whole;
      whole.start = begin;
      whole.duration = static_cast<uint64_t>(time - begin);
      whole.kind = static_cast<uint8_t>(SpanKind::Step);
      whole.name = trace.intern("step");
      whole.step = static_cast<uint32_t>(step + 1);
      trace.append(steps, whole);
      trace.append_counter(counter, {begin, 1e6 + step});
      trace.append_memory({begin, 0x7f0000000000u + static_cast<uint64_t>(step % 8) * 512, 512,
                           static_cast<uint32_t>(step + 1), 1,
                           step % 16 < 8 ? MemoryAction::Allocate : MemoryAction::Free, 0});
      time += 4000;
    }
  }

  void add_copy(NameId name, DetailId detail, int step) {
    Span copy;
    copy.start = time;
    copy.duration = 1500 + random() % 60;
    copy.kind = static_cast<uint8_t>(SpanKind::Copy);
    copy.meaning = static_cast<uint8_t>(Meaning::Copy);
    copy.name = name;
    copy.detail = detail;
    copy.correlation = ++correlation;
    copy.step = static_cast<uint32_t>(step + 1);
    trace.append(stream, copy);
    time = copy.end() + 300;
  }

  void add_kernel(NameId launch, int k, int step) {
    Detail detail;
    detail.grid[0] = k + 1, detail.grid[1] = detail.grid[2] = 1;
    detail.block[0] = 128, detail.block[1] = detail.block[2] = 1;
    detail.registers = 32;
    Span kernel;
    kernel.kind = static_cast<uint8_t>(SpanKind::Kernel);
    kernel.meaning = static_cast<uint8_t>(k % 4);
    kernel.start = time + 500;
    kernel.duration = 2000 + static_cast<uint64_t>(k) * 137 + random() % 160;
    kernel.name = trace.intern("kernel_" + std::to_string(k));
    kernel.detail = trace.intern(detail);
    kernel.op = static_cast<OpTag>(1 + k % 2);
    kernel.correlation = ++correlation;
    kernel.step = static_cast<uint32_t>(step + 1);
    Span call = kernel;
    call.start = time;
    call.duration = 400;
    call.kind = static_cast<uint8_t>(SpanKind::Api);
    call.meaning = static_cast<uint8_t>(Meaning::Launch);
    call.name = launch;
    call.detail = {};
    trace.append(api, call);
    trace.append(stream, kernel);
    time = kernel.end() + 200 + static_cast<TimeNs>(random() % 100);
  }

  Trace trace;
  TrackId steps = trace.track(TrackKind::Steps, "steps", "");
  TrackId api = trace.track(TrackKind::Api, "CUDA API", "CPU");
  TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  TrackId counter = trace.counter("memory used", "B", CounterKind::MemoryUsed);
  TimeNs time = 1'000'000;
  uint32_t correlation = 0;
  std::mt19937 random{11};
};

inline bool same(const Span& a, const Span& b) {
  return a.start == b.start && a.duration == b.duration && a.kind == b.kind && a.meaning == b.meaning &&
         a.flags == b.flags && a.op == b.op && a.correlation == b.correlation && a.step == b.step;
}

inline std::vector<Span> spans_of(const Track& track) {
  std::vector<Span> spans;
  for (const SpanBlock& block : track.blocks) spans.insert(spans.end(), block.spans.begin(), block.spans.end());
  return spans;
}

inline std::vector<Span> sorted_spans(const Trace& trace, SpanKind kind) {
  std::vector<Span> spans;
  for (const Track& track : trace.tracks())
    for (const Span& span : spans_of(track))
      if (span.span_kind() == kind) spans.push_back(span);
  std::ranges::sort(spans, {}, &Span::start);
  return spans;
}

}  // namespace ws::prof
