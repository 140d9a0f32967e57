// One operation at one size, prepared to be called again and again in one way.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "engine/workloads/lab_spec.h"

namespace ws::lab {

// Inputs are functions of the seed and the index, so every way computes on the same numbers.
struct Inputs {
  std::vector<float> a, b;  // b: second matrix, or y
};
Inputs make_inputs(const LabSpec& spec, int64_t size);

// One output in float64, and how far from it float32 may end.
struct Sample {
  int64_t index = 0;
  double value = 0;
  double magnitude = 0;  // of the value, or of what was added up to it where that is larger
  double rounding = 0;   // what rounding explains in float32; infinite: it can make anything of this output
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual double call() = 0;                    // seconds by the host's clock, synchronised unless it is the pitfall
  virtual CallSplit split() { return {}; }      // one more call, timed by events on the stream
  virtual void settle() {}                      // waits for what was queued
  virtual void cool() = 0;                      // pushes the inputs out of the caches, outside the clock
  virtual double output_at(int64_t index) = 0;  // of the last call
  // Where a call is made by another process: what that one is told about its trace. Empty: nothing again.
  virtual void trace_child(const std::string& /*where*/) {}
  virtual std::string note() const { return {}; }
};

constexpr int64_t kCoolBytes = 128 << 20;  // written between calls to empty the caches

int64_t output_elements(const LabSpec& spec, int64_t size);
// A few outputs in float64 on the CPU, spread over the whole result.
std::vector<Sample> expected_samples(const LabSpec& spec, int64_t size, const Inputs& inputs);

// Host memory that a way needs; device memory is memory_of().
int64_t host_memory_of(const LabSpec& spec, Way way, int64_t size);

// A call that was cancelled returns early with a wrong result.
std::unique_ptr<Workload> make_cpu_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs,
                                            const std::atomic<bool>& cancel);

// Where a recorded first call, made by another process, is to write its trace.
inline constexpr const char* kChildTrace = "WARPSCOPE_LAB_TRACE";

}  // namespace ws::lab
