// A recording of tens of millions of spans: nothing may be lost, memory stays bounded, and the file has all of it.
// recording_size [SPANS] [RESULT.json]
// Feeds batches as a collector makes them through the recorder (steps are looked for, the run file is written), as fast
// as it takes them; then reads the file back and compares counts and sums. Fails when anything is missing.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

#include "profiling/base/clock.h"
#include "tests/support/recorded_here.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::prof {
namespace {

constexpr int kKernels = 9;  // a step: that many kernels, as many launches, two allocator calls
constexpr int kSpansOfStep = 2 * kKernels + 2;
constexpr int kStepsOfBatch = 1000;
constexpr long kMostMiB = 512;

double seconds_of(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

long status_mib(const char* key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::atol(line.c_str() + std::string(key).size()) / 1024;
  return 0;
}

// What goes in, counted by the one who feeds it.
class Program {
 public:
  explicit Program(int64_t steps) : steps_(steps) {}

  TraceBatch next() {
    if (step_ >= steps_) {
      over_ = true;
      return {};
    }
    BatchBuilder& b = builder_;
    auto& stream = b.row(TrackKind::Stream, "stream 7", "GPU 0");
    auto& calls = b.row(TrackKind::Api, "thread 1", "CPU");
    const uint8_t source = b.memory_source("cudaMalloc");
    StepAllocations counted;
    for (int i = 0; i < kStepsOfBatch && step_ < steps_; ++i, ++step_) {
      now_ += 4000;
      const auto address = static_cast<uint64_t>(0x7000'0000 + step_ % 512 * 4096);
      put(calls, SpanKind::Alloc, "cudaMalloc", now_ - 900, 400);
      b.memory({now_ - 700, address, 4096, 0, kNoOp, MemoryAction::Allocate, source});
      for (int k = 0; k < kKernels; ++k) {
        put(calls, SpanKind::Api, "cudaLaunchKernel", now_ - 400, 350);
        put(stream, SpanKind::Kernel, kNames[k], now_, 1500 + jitter() % 64);
        now_ += 1600;
      }
      put(calls, SpanKind::Free, "cudaFree", now_ - 1200, 300);
      b.memory({now_ - 1000, address, 4096, 0, kNoOp, MemoryAction::Free, source});
      ++counted.allocations, ++counted.frees;
    }
    b.counter("memory used", "B", {now_, static_cast<double>(step_)});
    b.allocations(counted);
    return b.finish();
  }
  bool over() const { return over_; }
  int64_t steps() const { return steps_; }
  uint64_t spans = 0, nanoseconds = 0;

 private:
  void put(BatchBuilder::Row& row, SpanKind kind, const char* name, TimeNs start, uint64_t ns) {
    Span span;
    span.start = start, span.duration = ns, span.kind = static_cast<uint64_t>(kind);
    span.name = builder_.id(builder_.name(name));
    span.correlation = static_cast<uint32_t>(spans);
    row.spans.push_back(span);
    ++spans, nanoseconds += ns;
  }
  uint64_t jitter() { state_ = state_ * 6364136223846793005u + 1442695040888963407u; return state_ >> 33; }

  static constexpr const char* kNames[kKernels] = {"gemm z1", "relu", "gemm z2", "softmax", "xent",
                                                   "dW2",     "dh1",  "dW1",     "sgd"};
  BatchBuilder builder_;
  const int64_t steps_;
  int64_t step_ = 0;
  TimeNs now_ = 1'000'000;
  uint64_t state_ = 1;
  std::atomic<bool> over_{false};
};

struct Read {
  uint64_t spans = 0, nanoseconds = 0, steps = 0, unread = 0, events = 0;
};

Read read_back(const std::string& path) {
  Read read;
  StoredSpans file(path);
  for (size_t t = 0; t < file.trace().tracks().size(); ++t)
    file.each(t, -kAlways / 2, kAlways / 2, [&](const Span& span) {
      const bool step = span.span_kind() == SpanKind::Step;
      read.steps += step, read.spans += !step;
      if (!step) read.nanoseconds += span.duration;
      return true;
    });
  read.unread = file.unread();
  RunFileReader reader(path);
  read.events = reader.trace().memory_count();
  return read;
}

int check(const char* what, uint64_t wanted, uint64_t found) {
  if (wanted == found) return 0;
  std::printf("%s: %llu, not %llu\n", what, static_cast<unsigned long long>(found),
              static_cast<unsigned long long>(wanted));
  return 1;
}

int measure(int64_t spans, const char* result) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("size-" + std::to_string(getpid()) + ".wsrun")).string();
  Program program(spans / kSpansOfStep);
  const long before = status_mib("VmRSS:");
  const int64_t begin = steady_ns();
  double looked_s = 0;
  RunSummary summary;
  {
    test::RecordedHere recorder(path, "made", {.level = TraceLevel::Steps}, "", [&] { return program.next(); });
    while (!program.over()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    looked_s = seconds_of(steady_ns() - begin);
    recorder.finish();
  }
  const double all_s = seconds_of(steady_ns() - begin);
  const long grown = status_mib("VmHWM:") - before;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  summary = read_run_summary(path);
  const Read read = read_back(path);
  std::filesystem::remove(path);
  const auto fed = static_cast<double>(program.spans);
  std::printf("%.0f spans in %.1f s (%.2f M/s), ended after %.1f s; %ld MiB more memory; %.2f bytes a span\n", fed,
              looked_s, fed / looked_s * 1e-6, all_s, grown, bytes / fed);
  int wrong = check("spans", program.spans, read.spans) + check("their time", program.nanoseconds, read.nanoseconds) +
              check("spans that cannot be read", 0, read.unread) +
              check("steps", static_cast<uint64_t>(program.steps()), read.steps) +
              check("memory events", 2 * static_cast<uint64_t>(program.steps()), read.events);
  if (std::abs(summary.allocator_calls_per_step - 2) > 0.01)
    ++wrong, std::printf("%.3f allocator calls a step, not 2\n", summary.allocator_calls_per_step);
  if (grown > kMostMiB) ++wrong, std::printf("more than %ld MiB\n", kMostMiB);
  if (result)
    std::ofstream(result) << "{\n \"spans\": " << program.spans << ",\n \"seconds\": " << looked_s
                          << ",\n \"spans_per_s\": " << fed / looked_s << ",\n \"seconds_to_the_end\": " << all_s
                          << ",\n \"more_memory_mib\": " << grown << ",\n \"bytes_per_span\": " << bytes / fed
                          << ",\n \"steps_found\": " << read.steps << ",\n \"lost\": " << program.spans - read.spans
                          << "\n}\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ws::prof

int main(int argc, char** argv) {
  const double spans = argc > 1 ? std::atof(argv[1]) : 30e6;
  return ws::prof::measure(static_cast<int64_t>(spans), argc > 2 ? argv[2] : nullptr);
}
