#include <limits>

#include "engine/workloads/workload.h"
#include "profiling/base/in_parallel.h"
#include "profiling/base/philox.h"

namespace ws::lab {
namespace {

int64_t rows_of(const LabSpec& s, int64_t n) { return s.m > 0 ? s.m : n; }
int64_t inner_of(const LabSpec& s, int64_t n) { return s.k > 0 ? s.k : n; }

void fill(std::vector<float>& values, int64_t count, uint64_t seed, uint64_t stream) {
  values.resize(static_cast<size_t>(count));
  in_parallel((count + 3) / 4, 1 << 14, [&](int64_t begin, int64_t end) {
    for (auto group = static_cast<size_t>(begin); group < static_cast<size_t>(end); ++group) {
      const data::PhiloxWords words = data::philox_at(seed, stream, group);
      for (size_t i = 4 * group, j = 0; j < 4 && i + j < values.size(); ++j)
        values[i + j] = 2 * data::unit_uniform(words.w[j]) - 1;
    }
  });
}

// Sizes come from outside. An overflow gives the largest number.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}
int64_t plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

bool second_input(const LabSpec& s) { return s.operation == Operation::MatMul || s.operation == Operation::Add; }

}  // namespace

int64_t flops_of(const LabSpec& s, int64_t n) {
  switch (s.operation) {
    case Operation::MatMul:
      return times(2, times(times(rows_of(s, n), inner_of(s, n)), n));
    case Operation::Sine:
      return times(s.depth, n);
    case Operation::Softmax:
      return times(5, n);
    case Operation::Copy:
      return 0;
    default:
      return n;
  }
}

int64_t output_elements(const LabSpec& s, int64_t n) {
  if (s.operation == Operation::MatMul) return times(rows_of(s, n), n);
  return s.operation == Operation::Reduce ? 1 : n;
}

namespace {
int64_t input_elements(const LabSpec& s, int64_t n) {
  if (s.operation == Operation::MatMul) return plus(times(rows_of(s, n), inner_of(s, n)), times(inner_of(s, n), n));
  return second_input(s) ? times(2, n) : n;
}
}  // namespace

int64_t bytes_of(const LabSpec& s, int64_t n) { return times(4, plus(input_elements(s, n), output_elements(s, n))); }

int64_t memory_of(const LabSpec& s, int64_t n) {
  constexpr int64_t kAround = 96 << 20;  // workspaces, events, memory of the driver
  int64_t intermediates = s.operation == Operation::MatMul ? bytes_of(s, n) / 2 : 0;  // fp16 copies
  if (s.operation == Operation::Sine) intermediates = times(4, n);
  return plus(plus(bytes_of(s, n), intermediates), kAround + (s.cold_cache ? kCoolBytes : 0));
}

int64_t host_memory_of(const LabSpec& s, Way way, int64_t n) {
  const bool twice = way == Way::GpuPinned || way == Way::GpuOverlap;  // page-locked copies of all arrays
  return plus(times(twice ? 2 : 1, bytes_of(s, n)), s.cold_cache ? kCoolBytes : 0);
}

Inputs make_inputs(const LabSpec& s, int64_t n) {
  Inputs inputs;
  if (s.operation == Operation::MatMul) {
    fill(inputs.a, rows_of(s, n) * inner_of(s, n), s.seed, 1);
    fill(inputs.b, inner_of(s, n) * n, s.seed, 2);
    return inputs;
  }
  fill(inputs.a, n, s.seed, 1);
  if (second_input(s)) fill(inputs.b, n, s.seed, 2);
  return inputs;
}

}  // namespace ws::lab
