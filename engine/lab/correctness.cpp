#include "engine/lab/correctness.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiling/base/text.h"

namespace ws::lab {
namespace {

constexpr double kHalfUnit = 0x1p-24;   // half a unit in the last place of a float
constexpr double kElevenBits = 4e-3;    // two inputs rounded to eleven bits differ by 2e-3 together; allows twice that
constexpr double kLeastHalf = 0x1p-24;  // smaller numbers are rounded to this one or to zero
constexpr int64_t kSoftmaxRow = 1024;

// Computes outputs in float64.
class Exact {
 public:
  Exact(const LabSpec& spec, int64_t size, const Inputs& inputs) : spec_(spec), n_(size), in_(inputs) {}

  Sample at(int64_t i) const {
    switch (spec_.operation) {
      case Operation::MatMul:
        return product(i);
      case Operation::Add:
        return made(i, a(i) + b(i), 4);
      case Operation::Copy:
        return made(i, a(i), 0);
      case Operation::Reduce:
        return sum(i);
      case Operation::Softmax:
        return softmax(i);
      case Operation::Sine:
        return nested_sine(i);
    }
    return {};
  }

 private:
  double a(int64_t i) const { return static_cast<double>(in_.a[static_cast<size_t>(i)]); }
  double b(int64_t i) const { return static_cast<double>(in_.b[static_cast<size_t>(i)]); }

  // `of`: sum of the squared terms. A sum that happens to be near zero has no smaller error, so its terms set the
  // scale.
  static Sample made(int64_t i, double value, double units, double of = 0) {
    const double magnitude = std::max(std::abs(value), std::sqrt(of));
    return {i, value, magnitude, units * kHalfUnit * magnitude};
  }

  Sample product(int64_t i) const {
    const int64_t k = spec_.k > 0 ? spec_.k : n_, row = i / n_, column = i % n_;
    double value = 0, squares = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double term = a(row * k + j) * b(j * n_ + column);
      value += term, squares += term * term;
    }
    return made(i, value, 16 + 8 * std::sqrt(static_cast<double>(k)), squares);
  }

  Sample sum(int64_t i) const {
    double value = 0, squares = 0;
    for (int64_t j = 0; j < n_; ++j) value += a(j), squares += a(j) * a(j);
    return made(i, value, 128 + std::sqrt(static_cast<double>(n_)) / 8, squares);
  }

  Sample softmax(int64_t i) const {
    const int64_t first = i / kSoftmaxRow * kSoftmaxRow, last = std::min(first + kSoftmaxRow, n_);
    double all = 0;
    for (int64_t j = first; j < last; ++j) all += std::exp(a(j));
    return made(i, std::exp(a(i)) / all, 128);
  }

  // The error of a level passes on, and each level adds its own: eight half units in any library.
  Sample nested_sine(int64_t i) const {
    double value = a(i), error = 0;
    for (int level = 0; level < spec_.depth; ++level) {
      value = std::sin(value);
      error = std::min(error, 2.0) + 8 * kHalfUnit * std::abs(value) + static_cast<double>(std::numeric_limits<float>::min());
    }
    return {i, value, std::abs(value), 4 * error};
  }

  const LabSpec& spec_;
  int64_t n_;
  const Inputs& in_;
};

bool half_precision(const LabSpec& spec, Way way) {
  return spec.operation == Operation::MatMul && (way == Way::GpuTf32 || way == Way::GpuFp16);
}

// The same as in the check of a person's kernel.
double own_share(const LabSpec& spec) { return spec.operation == Operation::MatMul ? 1e-4 : 2e-5; }

// A person may add all numbers one after the other.
double own_rounding(const LabSpec& spec, const Sample& sample) { return (spec.operation == Operation::Reduce ? 8 : 1) * sample.rounding; }

std::string wrong_text(const LabSpec& spec, Way way, const Sample& sample, double scale, double got) {
  const char* precision = !half_precision(spec, way) ? "float32" : way == Way::GpuTf32 ? "tf32" : "fp16";
  return std::string(kWrong) +
         formatted(" output {} is {:.7g} where float64 gives {:.7g}; rounding in {} explains {:.1e} of that.",
                   sample.index, got, sample.value, precision, tolerance(spec, way, sample, scale));
}

}  // namespace

std::vector<Sample> expected_samples(const LabSpec& spec, int64_t size, const Inputs& inputs) {
  const Exact exact(spec, size, inputs);
  const int64_t outputs = output_elements(spec, size), count = std::min<int64_t>(outputs, 97);
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    const double share = count == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(count - 1);
    samples.push_back(exact.at(static_cast<int64_t>(share * static_cast<double>(outputs - 1))));
  }
  return samples;
}

double tolerance(const LabSpec& spec, Way way, const Sample& sample, double scale) {
  if (is_own(way)) return std::max(own_rounding(spec, sample), own_share(spec) * scale);
  if (!half_precision(spec, way)) return sample.rounding;
  return sample.rounding + kElevenBits * sample.magnitude + (way == Way::GpuFp16 ? kLeastHalf : 0);
}

void check_point(const LabSpec& spec, Workload& work, const std::vector<Sample>& expected, LabPoint& point) {
  double scale = 1e-30, worst = 0, most = 1;
  for (const Sample& s : expected) scale = std::max(scale, s.magnitude);
  std::string wrong;
  for (const Sample& s : expected) {
    const double got = work.output_at(s.index), allowed = tolerance(spec, point.way, s, scale);
    if (got == s.value) continue;
    const double off = std::isfinite(got) ? std::abs(got - s.value) : std::numeric_limits<double>::max();
    worst = std::max(worst, std::isfinite(got) ? off / scale : 1.0);
    if (const double times = off / std::max(allowed, 1e-300); times > most)
      most = times, wrong = wrong_text(spec, point.way, s, scale, got);
  }
  point.error = worst;
  if (wrong.empty()) return;
  point.ok = false;
  point.note = wrong;
}

}  // namespace ws::lab
