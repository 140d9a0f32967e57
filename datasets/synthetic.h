// Synthetic points. Each is a function of (seed, index), so the result does not depend on machine, order or count.
#pragma once
#include "datasets/dataset.h"
#include "profiling/base/philox.h"

namespace ws::data {

struct LinePoint {
  float x, y;
};

// A random stream of its own: independent of weights and splits with the same seed.
constexpr uint64_t kPointStream = 0x706f696e74;

// Returns point `i` of y = slope * x + intercept + noise * N(0,1), x uniform in [-1, 1). Also callable on the GPU.
WARPSIGHT_HD LinePoint line_point(uint64_t seed, uint64_t i, float slope, float intercept, float noise) {
  const PhiloxWords words = philox_at(seed, kPointStream, i);
  const float x = exact::mul_add(2.0f, unit_uniform(words.w[0]), -1.0f);
  const float on_line = exact::mul_add(slope, x, intercept);
  return {x, exact::mul_add(noise, standard_normal(words.w[1], words.w[2]).first, on_line)};
}

Dataset make_line(const DataSpec& spec);
Dataset make_blobs(const DataSpec& spec);
Dataset make_spirals(const DataSpec& spec);
Dataset make_circles(const DataSpec& spec);
Dataset make_xor(const DataSpec& spec);

}  // namespace ws::data
