// Matrices on both sides, and plain loops in double that say what a kernel should have made.
#pragma once
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda::test {

inline bool have_gpu() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  if (!found) cudaGetLastError();
  return found;
}

#define NEED_GPU() \
  if (!::ws::cuda::test::have_gpu()) GTEST_SKIP() << "no GPU here"

inline DType type_of(Precision p) {
  return p == Precision::Bf16 ? DType::Bf16 : p == Precision::Fp16 ? DType::F16 : DType::F32;
}

inline float round_bf16(float v) {
  if (!std::isfinite(v)) return v;
  const auto bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}
inline uint16_t to_half(float v) {
  const _Float16 h = static_cast<_Float16>(v);
  return std::bit_cast<uint16_t>(h);
}
inline float from_half(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
inline float round_to(DType type, float v) {
  return type == DType::Bf16 ? round_bf16(v) : type == DType::F16 ? from_half(to_half(v)) : v;
}

// Host values (as the device holds them, rounded) and the same on the device.
struct Matrix {
  std::vector<float> v;
  Tensor t;
  DeviceBlock<char> memory;

  Matrix() = default;
  Matrix(int64_t rows, int64_t cols, DType type = DType::F32) {
    t = Tensor{nullptr, type, rows, cols};
    v.assign(static_cast<size_t>(rows * cols), 0.f);
    memory = DeviceBlock<char>::device(v.size() * size());
    t.data = memory.data();
    CUDA_CHECK(cudaMemset(t.data, 0xFF, memory.bytes()));  // NaN in every type: an element that nobody writes shows
  }
  size_t size() const { return static_cast<size_t>(size_of(t.type)); }
  float& at(int64_t r, int64_t c) { return v[static_cast<size_t>(r * t.cols + c)]; }
  double at(int64_t r, int64_t c) const { return v[static_cast<size_t>(r * t.cols + c)]; }

  std::vector<char> encoded() const {
    std::vector<char> bytes(v.size() * size());
    for (size_t i = 0; i < v.size(); ++i) {
      const auto word = std::bit_cast<uint32_t>(v[i]);
      const auto number = static_cast<int32_t>(v[i]);
      const uint16_t half = t.type == DType::F16 ? to_half(v[i]) : static_cast<uint16_t>(word >> 16);
      if (size() == 2)
        std::memcpy(&bytes[2 * i], &half, 2);
      else if (t.type == DType::I32)
        std::memcpy(&bytes[4 * i], &number, 4);
      else
        std::memcpy(&bytes[4 * i], &word, 4);
    }
    return bytes;
  }
  void upload() {
    for (float& x : v) x = round_to(t.type, x);
    const auto bytes = encoded();
    CUDA_CHECK(cudaMemcpy(t.data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  std::vector<float> download() const {
    std::vector<char> bytes(v.size() * size());
    CUDA_CHECK(cudaMemcpy(bytes.data(), t.data, bytes.size(), cudaMemcpyDeviceToHost));
    std::vector<float> out(v.size());
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t half = 0;
      int32_t number = 0;
      if (size() == 2)
        std::memcpy(&half, &bytes[2 * i], 2);
      else
        std::memcpy(&number, &bytes[4 * i], 4);
      out[i] = t.type == DType::F16    ? from_half(half)
               : t.type == DType::Bf16 ? std::bit_cast<float>(uint32_t{half} << 16)
               : t.type == DType::I32  ? static_cast<float>(number)
                                       : std::bit_cast<float>(number);
    }
    return out;
  }
};

inline Matrix random_matrix(int64_t rows, int64_t cols, DType type, uint32_t seed, float scale = 1) {
  Matrix m(rows, cols, type);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  for (float& x : m.v) x = normal(random);
  m.upload();
  return m;
}

inline Matrix random_labels(int64_t rows, int64_t classes, uint32_t seed) {
  Matrix m(rows, 1, DType::I32);
  std::mt19937 random(seed);
  for (float& x : m.v) x = static_cast<float>(random() % static_cast<uint32_t>(classes));
  m.upload();
  return m;
}

// ‖got − want‖ ≤ tolerance · ‖want‖, and every element written.
inline void expect_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double error = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_FALSE(std::isnan(got[i]) && !std::isnan(want[i]))
        << what << ": element " << i << " of " << got.size() << " is NaN";
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm) + 1e-7) << what;
}

inline std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

// Everything a launch needs beside its operands.
struct Bench {
  DeviceBlock<char> scratch_memory = DeviceBlock<char>::device(kScratchBytes);
  DeviceBlock<StepClock> clock = DeviceBlock<StepClock>::device(1);
  DeviceBlock<float> lr = DeviceBlock<float>::device(16), metrics = DeviceBlock<float>::device(48);
  Queue queue;
  Bench() {
    CUDA_CHECK(cudaMemset(scratch_memory.data(), 0, kScratchBytes));
    CUDA_CHECK(cudaMemset(clock.data(), 0, sizeof(StepClock)));
    const std::vector<float> rates(16, 0.1f);
    CUDA_CHECK(cudaMemcpy(lr.data(), rates.data(), 64, cudaMemcpyHostToDevice));
  }
  template <class Rate>
  void set_rates(Rate rate) {
    std::vector<float> rates;
    for (int64_t row = 0; row < 16; ++row) rates.push_back(rate(row));
    CUDA_CHECK(cudaMemcpy(lr.data(), rates.data(), 64, cudaMemcpyHostToDevice));
  }
  Scratch scratch() const { return {scratch_memory.data()}; }
  StepAt at(int64_t offset = 0) const { return {clock.data(), offset, lr.data(), metrics.data(), 16}; }
  std::vector<float> metrics_row(int64_t row = 0) const {
    std::vector<float> out(3);
    CUDA_CHECK(cudaMemcpy(out.data(), metrics.data() + 3 * row, 12, cudaMemcpyDeviceToHost));
    return out;
  }
};

// ---- what should come out ----
inline std::vector<double> multiply(const Matrix& a, bool ta, const Matrix& b, bool tb) {
  const int64_t m = ta ? a.t.cols : a.t.rows, k = ta ? a.t.rows : a.t.cols, n = tb ? b.t.rows : b.t.cols;
  std::vector<double> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l) {
      const double x = ta ? a.at(l, i) : a.at(i, l);
      for (int64_t j = 0; j < n; ++j) c[static_cast<size_t>(i * n + j)] += x * (tb ? b.at(j, l) : b.at(l, j));
    }
  return c;
}

inline double bent(Activation kind, double z) {
  switch (kind) {
    case Activation::Relu:
      return std::max(z, 0.0);
    case Activation::Sigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::Tanh:
      return std::tanh(z);
    case Activation::Gelu:
      return 0.5 * z * (1 + std::tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)));
    default:
      return z;
  }
}

// f'(z) by differences where it is smooth: needs no formula of its own.
inline double slope_at(Activation kind, double z) {
  if (kind == Activation::Relu) return z > 0 ? 1 : 0;
  const double h = 1e-5;
  return (bent(kind, z + h) - bent(kind, z - h)) / (2 * h);
}

inline std::vector<double> column_sums(const Matrix& m) {
  std::vector<double> sums(static_cast<size_t>(m.t.cols));
  for (int64_t r = 0; r < m.t.rows; ++r)
    for (int64_t c = 0; c < m.t.cols; ++c) sums[static_cast<size_t>(c)] += m.at(r, c);
  return sums;
}

struct LossRows {
  std::vector<double> dz, p;
  double loss = 0, correct = 0;
};

inline LossRows cross_entropy_rows(const std::vector<double>& z, const Matrix& labels, int64_t cols, double scale = 1,
                                   double smoothing = 0) {
  LossRows out;
  const int64_t rows = labels.t.rows;
  out.dz.resize(z.size());
  out.p.resize(z.size());
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = z.data() + r * cols;
    const double top = *std::max_element(row, row + cols);
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(row[c] - top);
    const auto label = static_cast<int64_t>(labels.at(r, 0));
    const auto target = [&](int64_t c) { return (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(cols); };
    for (int64_t c = 0; c < cols; ++c) out.loss += target(c) * (std::log(sum) + top - row[c]);
    out.correct += std::max_element(row, row + cols) - row == label;
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(r * cols + c);
      out.p[i] = std::exp(row[c] - top) / sum;
      out.dz[i] = (out.p[i] - target(c)) * scale / static_cast<double>(rows);
    }
  }
  return out;
}

inline LossRows squared_error_rows(const std::vector<double>& z, const Matrix& y) {
  LossRows out;
  out.dz.resize(z.size());
  for (size_t i = 0; i < z.size(); ++i) {
    const double d = z[i] - y.v[i];
    out.loss += d * d / static_cast<double>(y.t.cols);
    out.dz[i] = 2 * d / static_cast<double>(y.t.elements());
  }
  return out;
}

// a·wᵀ, a (n, out) as plain numbers, w (in, out).
inline std::vector<double> multiply_rows(const std::vector<double>& a, const Matrix& w) {
  const auto in = static_cast<size_t>(w.t.rows), out = static_cast<size_t>(w.t.cols), rows = a.size() / out;
  std::vector<double> c(rows * in);
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < in; ++i)
      for (size_t o = 0; o < out; ++o) c[r * in + i] += a[r * out + o] * w.v[i * out + o];
  return c;
}

// f'(z) from what an activation keeps: its result, for gelu its argument.
inline double slope_from_saved(Activation kind, double saved) {
  switch (kind) {
    case Activation::Relu:
      return saved > 0 ? 1 : 0;
    case Activation::Sigmoid:
      return saved * (1 - saved);
    case Activation::Tanh:
      return 1 - saved * saved;
    default:
      return slope_at(kind, saved);
  }
}

}  // namespace ws::cuda::test
