// One operation at one size, prepared to be called repeatedly in one way.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "engine/workloads/lab_spec.h"

namespace ws::lab {

// Inputs are functions of the seed and the index, so every way computes with the same numbers.
struct Inputs {
  std::vector<float> a, b;  // b: second matrix or second term
};
Inputs make_inputs(const LabSpec& spec, int64_t size);

// One expected output in float64, and the float32 error allowed for it.
struct Sample {
  int64_t index = 0;
  double value = 0;
  double magnitude = 0;  // size of the value, or of the terms that were added up if that is larger
  double rounding = 0;   // error that float32 rounding explains
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual double call() = 0;                    // seconds on the host clock; synchronises, except for GpuUnsynced
  virtual CallSplit split() { return {}; }      // makes one more call, timed by events on the stream
  virtual void settle() {}                      // waits for queued work
  virtual void cool() = 0;                      // evicts the inputs from the caches, outside the measured time
  virtual double output_at(int64_t index) = 0;  // an output of the last call
  // Where the process of a workload that calls in another process writes its trace. Empty: no trace.
  virtual void trace_child(const std::string& /*where*/) {}
  virtual std::string note() const { return {}; }
};

constexpr int64_t kCoolBytes = 128 << 20;  // bytes written between calls to evict the caches

int64_t output_elements(const LabSpec& spec, int64_t size);
// Computes some outputs in float64 on the CPU, spread over the whole result.
std::vector<Sample> expected_samples(const LabSpec& spec, int64_t size, const Inputs& inputs);

// Returns the host memory that a way needs, in bytes. For device memory see memory_of().
int64_t host_memory_of(const LabSpec& spec, Way way, int64_t size);

// A cancelled call returns early with a wrong result.
std::unique_ptr<Workload> make_cpu_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs,
                                            const std::atomic<bool>& cancel);

// Environment variable from which the process of a recorded first call reads where to write its trace.
inline constexpr const char* kChildTrace = "WARPSIGHT_LAB_TRACE";

}  // namespace ws::lab
