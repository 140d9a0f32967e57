#include "tests/support/synthetic_trace.h"

#include <random>

namespace ws::test {
namespace {

using prof::Meaning;
using prof::Span;
using prof::SpanKind;
using prof::TimeNs;
using prof::TrackKind;

struct SyntheticOp {
  const char *name, *detail, *layer, *phase, *kernel;
  Meaning meaning;
  TimeNs ns;
  uint64_t bytes;
};

constexpr SyntheticOp kFused[] = {
    {"fc1", "gemm h1 = relu(x·W1 + b1)", "fc1", "forward", "void cutlass::Kernel<sm90_gemm_relu_bias>(Params)",
     Meaning::Matrix, 4700, 32768},
    {"fc2", "gemm z2 = h1·W2 + b2", "fc2", "forward", "void cutlass::Kernel<sm90_gemm_bias>(Params)", Meaning::Matrix,
     3100, 2560},
    {"loss", "softmax cross-entropy", "", "loss", "ws::softmax_cross_entropy(float const*)", Meaning::Loss, 2300, 2560},
    {"dW2", "gemm dW2 = h1ᵀ·dz2", "fc2", "backward", "void cutlass::Kernel<sm90_gemm_bgrad>(Params)", Meaning::Matrix,
     3000, 5120},
    {"dX", "gemm dz1 = dz2·W2ᵀ, drelu", "fc2", "backward", "void cutlass::Kernel<sm90_gemm_drelu>(Params)",
     Meaning::Matrix, 2900, 32768},
    {"dW1", "gemm dW1 = xᵀ·dz1", "fc1", "backward", "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize64x64x32_bgrada",
     Meaning::Matrix, 4410, 401408},
    {"sgd", "update W1 b1 W2 b2", "", "update", "ws::update_all(float*, float const*)", Meaning::Optimizer, 2500,
     407080}};

constexpr SyntheticOp kNaive[] = {
    {"gemm z1", "gemm z1 = x·W1", "fc1", "forward", "ampere_sgemm_64x64_nn", Meaning::Matrix, 5200, 32768},
    {"broadcast b1", "c1 = broadcast b1", "fc1", "forward", "ws::broadcast_bias(float*)", Meaning::Pointwise, 2100,
     32768},
    {"add s1", "s1 = z1 + c1", "fc1", "forward", "ws::add(float*)", Meaning::Pointwise, 2100, 32768},
    {"relu h1", "h1 = relu(s1)", "fc1", "forward", "ws::activate(float*)", Meaning::Pointwise, 2000, 32768},
    {"gemm z2", "gemm z2 = h1·W2", "fc2", "forward", "ampere_sgemm_32x32_nn", Meaning::Matrix, 3600, 2560},
    {"add s2", "s2 = z2 + b2", "fc2", "forward", "ws::add(float*)", Meaning::Pointwise, 2000, 2560},
    {"softmax p", "p = softmax(s2)", "", "loss", "ws::softmax(float*)", Meaning::Loss, 2300, 2560},
    {"xent", "cross-entropy of p", "", "loss", "ws::cross_entropy(float*)", Meaning::Loss, 2200, 256},
    {"dz2", "dz2 = p − y", "", "backward", "ws::softmax_grad(float*)", Meaning::Loss, 2200, 2560},
    {"gemm dW2", "gemm dW2 = h1ᵀ·dz2", "fc2", "backward", "ampere_sgemm_32x32_tn", Meaning::Matrix, 3700, 5120},
    {"gemm dh1", "gemm dh1 = dz2·W2ᵀ", "fc2", "backward", "ampere_sgemm_32x32_nt", Meaning::Matrix, 3400, 32768},
    {"relu grad", "dz1 = relu'(s1)·dh1", "fc1", "backward", "ws::activate_grad(float*)", Meaning::Pointwise, 2200,
     32768},
    {"gemm dW1", "gemm dW1 = xᵀ·dz1", "fc1", "backward", "ampere_sgemm_64x64_tn", Meaning::Matrix, 5600, 401408},
    {"sgd W1", "W1 ← W1 − η·dW1", "", "update", "ws::update(float*)", Meaning::Optimizer, 2400, 0},
    {"sgd W2", "W2 ← W2 − η·dW2", "", "update", "ws::update(float*)", Meaning::Optimizer, 1900, 0}};

// Where everything of one run goes, and the clock that walks through it.
struct Writer {
  prof::Trace& trace;
  std::mt19937 rng{7};
  TimeNs now = 0;
  uint32_t correlation = 1, step = 0;
  prof::TrackId steps, phases, stream, copies, calls, inner;
  prof::TrackId sm, dram, used, reserved;
  prof::OpTag first_op = 1;
  double bytes_used = 400e3;

  explicit Writer(prof::Trace& t, int64_t first)
      : trace(t),
        now(t.last_time() > 0 ? t.last_time() + 500 : 100'000),
        correlation(static_cast<uint32_t>(first * 64 + 1)),
        steps(t.track(TrackKind::Steps, "steps", "CPU")),
        phases(t.track(TrackKind::Phases, "phases", "CPU")),
        stream(t.track(TrackKind::Stream, "stream 7", "GPU 0")),
        copies(t.track(TrackKind::Copies, "memcpy", "GPU 0")),
        calls(t.track(TrackKind::Api, "thread 1 calls", "CPU")),
        inner(t.track(TrackKind::Inner, "block 0", "GPU 0")),
        sm(t.counter("SM active", "%")),
        dram(t.counter("DRAM read", "%", prof::CounterKind::Dram)),
        used(t.counter("memory used", "B", prof::CounterKind::MemoryUsed)),
        reserved(t.counter("memory reserved", "B", prof::CounterKind::MemoryReserved)) {}

  TimeNs jitter(TimeNs ns) { return ns + static_cast<TimeNs>(rng() % static_cast<unsigned>(ns / 8 + 1)); }

  Span make(TimeNs start, TimeNs ns, SpanKind kind, Meaning meaning, std::string_view name, prof::OpTag op = 0) {
    Span span;
    span.start = start, span.duration = static_cast<uint64_t>(ns), span.kind = static_cast<uint64_t>(kind);
    span.meaning = static_cast<uint64_t>(meaning), span.name = trace.intern(name), span.op = op, span.step = step;
    return span;
  }

  prof::DetailId launch(const SyntheticOp& op) {
    prof::Detail detail;
    detail.grid[0] = static_cast<int>(op.bytes / 4096 + 1), detail.grid[1] = detail.grid[2] = 1;
    detail.block[0] = op.meaning == Meaning::Matrix ? 128 : 256, detail.block[1] = detail.block[2] = 1;
    detail.registers = op.meaning == Meaning::Matrix ? 168 : 24;
    detail.dynamic_shared = op.meaning == Meaning::Matrix ? 65536 : 0;
    return trace.intern(detail);
  }

  prof::DetailId sized(uint64_t bytes, const char* kind) {
    prof::Detail detail;
    detail.bytes = bytes, detail.copy_kind = kind;
    return trace.intern(detail);
  }

  void call(TimeNs ns, SpanKind kind, Meaning meaning, std::string_view name, prof::OpTag op = 0, uint32_t corr = 0,
            prof::DetailId detail = {}) {
    Span span = make(now, jitter(ns), kind, meaning, name, op);
    span.correlation = corr, span.detail = detail;
    trace.append(calls, span);
    now = span.end() + 150;
  }

  void memory(TimeNs time, double value, double held) {
    trace.append_counter(used, {time, value});
    trace.append_counter(reserved, {time, held});
  }
};

void register_ops(prof::Trace& trace, std::span<const SyntheticOp> ops) {
  if (trace.ops.size() > 1) return;
  for (const SyntheticOp& op : ops)
    trace.ops.push_back({op.name, op.detail, op.layer, op.phase, op.meaning, static_cast<int64_t>(op.bytes) * 64,
                         static_cast<int64_t>(op.bytes)});
}

void add_phases(Writer& w, std::span<const SyntheticOp> ops, std::span<const TimeNs> starts, TimeNs end) {
  for (size_t i = 0; i < ops.size();) {
    size_t next = i;
    while (next < ops.size() && std::string_view(ops[next].phase) == ops[i].phase) ++next;
    const TimeNs stop = next < ops.size() ? starts[next] : end;
    w.trace.append(w.phases, w.make(starts[i], stop - starts[i] - 60, SpanKind::Phase, Meaning::Other, ops[i].phase));
    i = next;
  }
}

void graph_step(Writer& w) {
  const TimeNs begin = w.now;
  const uint32_t correlation = ++w.correlation;
  w.now += 1600;
  w.call(3000, SpanKind::GraphLaunch, Meaning::Launch, "cudaGraphLaunch", 0, correlation);
  TimeNs gpu = begin + 400;
  std::vector<TimeNs> starts;
  for (size_t i = 0; i < std::size(kFused); ++i) {
    Span span = w.make(gpu, w.jitter(kFused[i].ns), SpanKind::Kernel, kFused[i].meaning, kFused[i].kernel,
                       static_cast<prof::OpTag>(i + 1));
    span.correlation = correlation, span.flags = prof::kInGraph, span.detail = w.launch(kFused[i]);
    w.trace.append(w.stream, span);
    w.trace.append_counter(w.sm, {span.start, 60.0 + static_cast<double>(w.rng() % 30)});
    w.trace.append_counter(w.dram, {span.start, 20.0 + static_cast<double>(w.rng() % 50)});
    w.memory(span.start, 420e3 + static_cast<double>(i < 4 ? i : 7 - i) * 60e3, 0.64 * 1048576);
    starts.push_back(gpu);
    gpu = span.end() + 480;
  }
  w.trace.append(w.steps, w.make(begin, gpu - begin - 100, SpanKind::Step, Meaning::Other, "step"));
  add_phases(w, kFused, starts, gpu - 100);
  w.now = gpu;
}

void eager_step(Writer& w) {
  const TimeNs begin = w.now;
  std::vector<TimeNs> starts;
  uint32_t correlation = ++w.correlation;
  const TimeNs copy_at = w.now + 2500;
  w.call(5200, SpanKind::Api, Meaning::Copy, "cudaMemcpyAsync", 0, correlation, w.sized(200704, "pageable → device"));
  Span copy = w.make(copy_at, 9600, SpanKind::Copy, Meaning::Copy, "Memcpy HtoD (Pageable -> Device)");
  copy.correlation = correlation, copy.detail = w.sized(200704, "pageable → device");
  w.trace.append(w.copies, copy);
  w.now = copy.end();
  for (size_t i = 0; i < std::size(kNaive); ++i) {
    const SyntheticOp& op = kNaive[i];
    const auto tag = static_cast<prof::OpTag>(i + 1);
    starts.push_back(w.now);
    if (op.bytes > 0) {
      w.call(6500, SpanKind::Alloc, Meaning::Allocation, "cudaMalloc", tag, 0, w.sized(op.bytes, ""));
      w.trace.append_memory(
          {w.now, 0x7f0000000000ULL + i * 0x100000, op.bytes, w.step, tag, prof::MemoryAction::Allocate, 0});
      w.bytes_used += static_cast<double>(op.bytes);
    }
    correlation = ++w.correlation;
    w.call(2600, SpanKind::Api, Meaning::Launch, "cudaLaunchKernel", tag, correlation);
    Span span = w.make(w.now - 400, w.jitter(op.ns), SpanKind::Kernel, op.meaning, op.kernel, tag);
    span.correlation = correlation, span.detail = w.launch(op);
    w.trace.append(w.stream, span);
    w.trace.append_counter(w.sm, {span.start, 30.0 + static_cast<double>(w.rng() % 25)});
    w.trace.append_counter(w.sm, {span.end(), 0});
    w.trace.append_counter(w.dram, {span.start, static_cast<double>(w.rng() % 40)});
    w.trace.append_counter(w.dram, {span.end(), 0});
    w.call(op.ns + 800, SpanKind::Sync, Meaning::Sync, "cudaDeviceSynchronize", tag);
    if (i % 3 == 2) {
      const auto freed = static_cast<prof::OpTag>(i);
      w.call(4800, SpanKind::Free, Meaning::Allocation, "cudaFree", freed);
      w.trace.append_memory({w.now, 0x7f0000000000ULL + (i - 1) * 0x100000, kNaive[i - 1].bytes, w.step, freed,
                             prof::MemoryAction::Free, 0});
      w.bytes_used -= static_cast<double>(kNaive[i - 1].bytes);
    }
    w.memory(w.now, w.bytes_used, w.bytes_used);
  }
  for (size_t i = 0; i < std::size(kNaive); ++i)
    if (kNaive[i].bytes > 0 && (i + 1) % 3 != 2) {
      w.trace.append_memory(
          {w.now, 0x7f0000000000ULL + i * 0x100000, kNaive[i].bytes, w.step, 0, prof::MemoryAction::Free, 0});
      w.bytes_used -= static_cast<double>(kNaive[i].bytes);
      w.call(4600, SpanKind::Free, Meaning::Allocation, "cudaFree");
    }
  w.memory(w.now, w.bytes_used = 400e3, 400e3);
  w.trace.append(w.steps, w.make(begin, w.now - begin - 100, SpanKind::Step, Meaning::Other, "step"));
  add_phases(w, kNaive, starts, w.now);
}

void persistent_step(Writer& w) {
  const TimeNs begin = w.now;
  for (size_t i = 0; i < std::size(kFused); ++i) {
    const Span span = w.make(w.now, w.jitter(kFused[i].ns / 2), SpanKind::Inner, kFused[i].meaning, kFused[i].name,
                             static_cast<prof::OpTag>(i + 1));
    w.trace.append(w.inner, span);
    w.now = span.end() + 90;
  }
  w.trace.append(w.steps, w.make(begin, w.now - begin - 50, SpanKind::Step, Meaning::Other, "step"));
}

}  // namespace

void add_steps(prof::Trace& trace, StepStyle style, int64_t first, int64_t steps) {
  if (style == StepStyle::EagerDirect)
    register_ops(trace, kNaive);
  else
    register_ops(trace, kFused);
  if (trace.memory_sources.empty()) trace.memory_sources.push_back("cudaMalloc");
  Writer writer(trace, first);
  const TimeNs begin = writer.now;
  for (int64_t i = 0; i < steps; ++i) {
    writer.step = static_cast<uint32_t>(first + i + 1);
    if (style == StepStyle::GraphArena) graph_step(writer);
    if (style == StepStyle::EagerDirect) eager_step(writer);
    if (style == StepStyle::Persistent) persistent_step(writer);
  }
  if (style == StepStyle::Persistent)
    trace.append(writer.stream, writer.make(begin, writer.now - begin, SpanKind::Kernel, Meaning::Matrix,
                                            "ws::persistent_steps(Program)"));
}

void add_many_spans(prof::Trace& trace, size_t spans, size_t budget) {
  const auto stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  const auto calls = trace.track(TrackKind::Api, "thread 1 calls", "CPU");
  const auto steps = trace.track(TrackKind::Steps, "steps", "CPU");
  std::mt19937 rng(3);
  TimeNs now = 1000;
  std::vector<prof::NameId> names;
  for (const SyntheticOp& op : kNaive) names.push_back(trace.intern(op.kernel));
  for (size_t i = 0; i < spans; ++i) {
    const SyntheticOp& op = kNaive[i % std::size(kNaive)];
    Span span;
    span.start = now, span.duration = static_cast<uint64_t>(op.ns) + rng() % 700,
    span.kind = static_cast<uint64_t>(SpanKind::Kernel);
    span.meaning = static_cast<uint64_t>(op.meaning), span.name = names[i % names.size()],
    span.step = static_cast<uint32_t>(i / 40 + 1);
    if (i % 2) {
      span.kind = static_cast<uint64_t>(i % 10 == 1 ? SpanKind::Alloc : SpanKind::Api);
      span.meaning = static_cast<uint64_t>(i % 10 == 1 ? Meaning::Allocation : Meaning::Launch);
    }
    trace.append(i % 2 ? calls : stream, span);
    if (i % 40 == 39) {
      Span step = span;
      step.kind = static_cast<uint64_t>(SpanKind::Step), step.start = now - 60'000, step.duration = 62'000;
      trace.append(steps, step);
    }
    now += static_cast<TimeNs>(span.duration) / 2 + rng() % 900;
    if (budget && i % 1'000'000 == 0) trace.evict(budget);
  }
}

}  // namespace ws::test
