// A program whose time is known exactly: one thread launches kernels, and what it does can be changed and run again.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "profiling/causes/step_causes.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

struct MadeKernel {
  std::string op;
  TimeNs call = 3000, work = 5000;  // the launch call, and the kernel
  TimeNs allocation = 0;            // a call of the allocator before it; 0: none
  int stream = 0;
  TimeNs freed = 0, longer_after = 3000;  // cudaFree before it, and how much longer its launch takes then; 0: none
  std::string kernel;               // empty: as the op
};

struct MadeProgram {
  std::vector<MadeKernel> kernels;
  int steps = 40;
  TimeNs latency = 4000;  // from the start of a call to its kernel, if nothing else holds it up
  TimeNs gap = 800;       // between two kernels of a stream
  TimeNs between = 500;   // the program's own work before each call
  TimeNs after_allocation = -1;  // the same between an allocator's call and the launch; -1: as before each call
  TimeNs data = 0;        // it waits for its data loader at the begin of each step
  bool sync = false;      // it waits for the GPU at the end of each step
  bool sync_each = false;  // and after each kernel
  TimeNs sync_call = 600, wake_up = 1200;
  bool graph = false;     // one launch for all kernels of a step
  TimeNs graph_gap = StepCauses().graph_gap_ns;  // between two kernels of it
  TimeNs longer_if_idle = 0;  // of a launch whose stream has no work when it begins
  double in_a_row = 0.87;     // what a launch takes that follows a launch, of one that follows a call of the allocator or a wait
  TimeNs copy_call = 0, copy = 4000;  // it copies its rows from the host at the begin of each step; 0: it does not
  bool pageable = false;  // these rows lie in pageable memory
  bool overlapped = false;  // they have a stream of their own, and are for a later step
  bool other_thread = false;  // every second kernel is launched by a second thread, while the first one waits for it
  TimeNs clock_error = 0;     // the GPU's clock is early by so much

  RunData run() const;
  double step_us() const;  // of one more step, after the first ones
};

struct MadeProgramRun {
  explicit MadeProgramRun(const MadeProgram& what) : program(what) {
    for (const MadeKernel& kernel : program.kernels)
      made.trace.ops.push_back({kernel.op, "", kernel.op.substr(0, 3), "forward", Meaning::Matrix, 0, 0});
    made.trace.ops.push_back({"next batch", "", "", "data", Meaning::Idle, 0, 0});
    made.trace.ops.push_back({"sync", "", "", "sync", Meaning::Sync, 0, 0});
    for (int step = 0; step < program.steps; ++step) one_step(static_cast<uint32_t>(step + 1));
    length = std::max(now, *std::ranges::max_element(stream_end)) - first;
    made.summary.steps = program.steps;
  }

  Span span(TimeNs start, TimeNs ns, SpanKind kind, Meaning meaning, const std::string& name, OpTag op = kNoOp) {
    Span made_span;
    made_span.start = start, made_span.duration = static_cast<uint64_t>(ns), made_span.kind = static_cast<uint64_t>(kind);
    made_span.meaning = static_cast<uint64_t>(meaning), made_span.name = made.trace.intern(name), made_span.op = op;
    return made_span;
  }
  TrackId thread(int which) { return made.trace.track(TrackKind::Api, "thread " + std::to_string(which) + " calls", "CPU"); }

  TimeNs call(TimeNs ns, SpanKind kind, Meaning meaning, const std::string& name, OpTag op, uint32_t correlation, int on = 1) {
    now += program.between;
    const TimeNs start = now;
    Span made_span = span(start, ns, kind, meaning, name, op);
    made_span.correlation = correlation;
    made.trace.append(thread(on), made_span);
    now += ns;
    return start;
  }

  void one_step(uint32_t step) {
    const TimeNs begin = now;
    now_step = step;
    if (program.data > 0) {
      const auto op = static_cast<OpTag>(program.kernels.size() + 1);
      made.trace.append(made.trace.track(TrackKind::Ranges, "thread 1 ranges", "CPU"), span(now, program.data, SpanKind::Phase, Meaning::Idle, "next batch", op));
      now += program.data;
    }
    if (program.copy_call > 0) copy_rows();
    for (size_t i = 0; i < program.kernels.size(); ++i) one_kernel(i);
    if (program.sync && !program.sync_each) wait();
    Span mark = span(begin, now - begin, SpanKind::Step, Meaning::Other, "step");
    mark.step = step;
    made.trace.append(made.trace.track(TrackKind::Steps, "steps", "CPU"), mark);
  }

  void copy_rows() {
    waited = false;
    const TimeNs called = call(program.copy_call, SpanKind::Api, Meaning::Copy, "cudaMemcpyAsync", 1, ++number);
    TimeNs& end = stream_end[program.overlapped ? 3 : 0];
    const TimeNs start = std::max(called + program.latency, end + program.gap);
    Span copy = span(start - program.clock_error, program.copy, SpanKind::Copy, Meaning::Copy, "HtoD", 1);
    copy.correlation = number, copy.step = now_step;
    Detail detail;
    detail.bytes = 50'000, detail.copy_kind = program.pageable ? "pageable → device" : "pinned → device";
    copy.detail = made.trace.intern(detail);
    made.trace.append(made.trace.track(TrackKind::Stream, program.overlapped ? "stream 10" : "stream 7", "GPU 0"), copy);
    end = start + program.copy;
  }

  void one_kernel(size_t i) {
    const MadeKernel& kernel = program.kernels[i];
    const auto op = static_cast<OpTag>(i + 1);
    const int on = program.other_thread && i % 2 == 1 ? 2 : 1;
    if (kernel.allocation > 0) call(kernel.allocation, SpanKind::Alloc, Meaning::Allocation, "cudaMalloc", op, 0, on);
    if (kernel.freed > 0) call(kernel.freed, SpanKind::Free, Meaning::Allocation, "cudaFree", op, 0, on);
    if (kernel.allocation > 0 && program.after_allocation >= 0) now += program.after_allocation - program.between;
    const bool after_call = kernel.freed == 0 && (kernel.allocation > 0 || waited);
    const auto taken = static_cast<TimeNs>(after_call ? std::llround(static_cast<double>(kernel.call) / program.in_a_row) : kernel.call);
    waited = false;
    const TimeNs longer = (kernel.freed > 0 ? kernel.longer_after : 0) + (stream_end[static_cast<size_t>(kernel.stream)] <= now + program.between ? program.longer_if_idle : 0);
    if (!program.graph || i == 0) launched = call(taken + longer, program.graph ? SpanKind::GraphLaunch : SpanKind::Api, Meaning::Launch, program.graph ? "cudaGraphLaunch" : "cudaLaunchKernel", op, ++number, on);
    TimeNs& end = stream_end[static_cast<size_t>(kernel.stream)];
    const TimeNs start = std::max(launched + program.latency, end + (program.graph && i > 0 ? program.graph_gap : program.gap));
    Span made_span = span(start - program.clock_error, kernel.work, SpanKind::Kernel, Meaning::Matrix, "kernel_" + (kernel.kernel.empty() ? kernel.op : kernel.kernel), op);
    made_span.correlation = number, made_span.step = now_step, made_span.flags = program.graph ? kInGraph : 0;
    made.trace.append(made.trace.track(TrackKind::Stream, "stream " + std::to_string(7 + kernel.stream), "GPU 0"), made_span);
    end = start + kernel.work;
    if (program.sync_each) wait();
  }

  void wait() {
    now += program.between;
    const TimeNs end = std::max(now + program.sync_call, *std::ranges::max_element(stream_end) + program.wake_up);
    Span made_span = span(now, end - now, SpanKind::Sync, Meaning::Sync, "cudaStreamSynchronize", static_cast<OpTag>(program.kernels.size() + 2));
    made.trace.append(thread(1), made_span);
    now = end, waited = true;
  }

  MadeProgram program;
  RunData made;
  TimeNs first = 1'000'000, now = first, launched = 0, length = 0;
  std::vector<TimeNs> stream_end = std::vector<TimeNs>(4, 0);
  uint32_t number = 0, now_step = 0;
  bool waited = false;  // right before
};

inline RunData MadeProgram::run() const { return std::move(MadeProgramRun(*this).made); }
inline double MadeProgram::step_us() const {
  MadeProgram longer = *this;
  longer.steps *= 2;
  return static_cast<double>(MadeProgramRun(longer).length - MadeProgramRun(*this).length) * 1e-3 / steps;
}

inline MadeProgram small_network() {
  return {.kernels = {{"fc1", 3000, 9800}, {"fc2", 3000, 4600}, {"loss", 3000, 4200}, {"dW2", 3000, 4400}, {"dX", 3000, 4200}, {"dW1", 3000, 8500}, {"sgd", 3000, 3100}}};
}

}  // namespace ws::prof
