// One operation at one size, prepared to be called again and again in one way.
#pragma once
#include <memory>
#include <vector>

#include "engine/lab/lab.h"

namespace ws::lab {

// Inputs are functions of the seed and the index, so every way computes on the same numbers.
struct Inputs {
  std::vector<float> a, b;  // b: second matrix, or y
};
Inputs make_inputs(const LabSpec& spec, int64_t size);

struct Sample {
  int64_t index = 0;
  double value = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual CallTime call() = 0;
  virtual void cool() = 0;                  // pushes the inputs out of the caches, outside the clock
  virtual std::vector<float> output() = 0;  // of the last call
  virtual std::string note() const { return {}; }
};

constexpr int64_t kCoolBytes = 128 << 20;  // written between calls to empty the caches

int64_t output_elements(const LabSpec& spec, int64_t size);
// A few outputs in float64 on the CPU, spread over the whole result.
std::vector<Sample> expected_samples(const LabSpec& spec, int64_t size, const Inputs& inputs);

std::unique_ptr<Workload> make_cpu_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs);
// Throws Failure when the machine cannot; defined where CUDA is built in.
std::unique_ptr<Workload> make_cuda_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs);
Ceilings measure_cuda_ceilings();

}  // namespace ws::lab
