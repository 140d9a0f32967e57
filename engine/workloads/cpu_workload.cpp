// The operations on the CPU: plain loops on one thread, and a library or vectorised loops on all cores.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/cpu/cpu_ops.h"
#include "engine/workloads/workload.h"
#include "profiling/base/clock.h"
#include "profiling/base/in_parallel.h"

namespace ws::lab {
namespace {

using Clock = std::chrono::steady_clock;

class CpuWorkload final : public Workload {
 public:
  CpuWorkload(const LabSpec& spec, bool library, int64_t size, const Inputs& inputs, const std::atomic<bool>& cancel)
      : spec_(spec),
        library_(library),
        n_(size),
        in_(inputs),
        cancel_(cancel),
        out_(static_cast<size_t>(output_elements(spec, size))) {}

  double call() override {
    const auto begin = Clock::now();
    run();
    return prof::seconds_since(begin);
  }
  void cool() override {
    cooling_.resize(kCoolBytes);
    std::fill(cooling_.begin(), cooling_.end(), ++shade_);
  }
  double output_at(int64_t index) override { return static_cast<double>(at(index)); }

 private:
  void run() {
    switch (spec_.operation) {
      case Operation::MatMul:
        return library_ ? product_by_library() : product_by_loops();
      case Operation::Reduce:
        return reduce();
      case Operation::Softmax:
        return spread(1024, [this](int64_t b, int64_t e) { softmax(b, e); });
      case Operation::Add:
        return spread(1, [this](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) at(i) = x(i) + in_.b[static_cast<size_t>(i)];
        });
      case Operation::Copy:
        return spread(
            1, [this](int64_t b, int64_t e) { std::copy(in_.a.begin() + b, in_.a.begin() + e, out_.begin() + b); });
      case Operation::Sine:
        return spread(1, [this](int64_t b, int64_t e) { nested_sine(b, e); });
    }
  }

  float& at(int64_t i) { return out_[static_cast<size_t>(i)]; }
  float x(int64_t i) const { return in_.a[static_cast<size_t>(i)]; }

  template <class Work>
  void spread(int64_t unit, const Work& work) {
    const int64_t units = (n_ + unit - 1) / unit;
    const auto by_unit = [&](int64_t b, int64_t e) { work(b * unit, std::min(e * unit, n_)); };
    if (library_)
      in_parallel(units, std::max<int64_t>(1, 16384 / unit), by_unit);
    else
      by_unit(0, units);
  }

  int64_t rows() const { return spec_.m > 0 ? spec_.m : n_; }
  int64_t inner() const { return spec_.k > 0 ? spec_.k : n_; }

  void product_by_library() {
    cpu::multiply<float>({const_cast<float*>(in_.a.data()), rows(), inner()}, false,
                         {const_cast<float*>(in_.b.data()), inner(), n_}, false, {out_.data(), rows(), n_});
  }

  void product_by_loops() {
    for (int64_t i = 0; i < rows() && !cancel_; ++i)
      for (int64_t j = 0; j < n_; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < inner(); ++k) sum += x(i * inner() + k) * in_.b[static_cast<size_t>(k * n_ + j)];
        at(i * n_ + j) = sum;
      }
  }

  void reduce() {
    std::vector<double> partial((static_cast<size_t>(n_) + 65535) / 65536);
    const auto work = [&](int64_t b, int64_t e) {
      for (int64_t c = b; c < e; ++c) {
        float sums[16] = {};  // sixteen running sums: the loop vectorises and rounding stays small
        const int64_t end = std::min((c + 1) * 65536, n_);
        for (int64_t i = c * 65536; i < end; ++i) sums[i % 16] += x(i);
        for (float s : sums) partial[static_cast<size_t>(c)] += static_cast<double>(s);
      }
    };
    if (library_)
      in_parallel(static_cast<int64_t>(partial.size()), 4, work);
    else
      work(0, static_cast<int64_t>(partial.size()));
    double sum = 0;
    for (double p : partial) sum += p;
    at(0) = static_cast<float>(sum);
  }

  void softmax(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += 1024) {
      const int64_t last = std::min(first + 1024, end);
      cpu::softmax<float>({const_cast<float*>(in_.a.data()) + first, 1, last - first},
                          {out_.data() + first, 1, last - first});
    }
  }

  // One strip at a time, so that the levels in between stay in the cache.
  void nested_sine(int64_t begin, int64_t end) {
    constexpr int64_t kStrip = 512;
    for (int64_t first = begin; first < end; first += kStrip) {
      const int64_t last = std::min(first + kStrip, end);
      for (int64_t i = first; i < last; ++i) at(i) = std::sin(x(i));
      for (int level = 1; level < spec_.depth; ++level)
        for (int64_t i = first; i < last; ++i) at(i) = std::sin(at(i));
    }
  }

  LabSpec spec_;
  bool library_;
  int64_t n_;
  const Inputs& in_;
  const std::atomic<bool>& cancel_;
  std::vector<float> out_;
  std::vector<char> cooling_;
  char shade_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_cpu_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs,
                                            const std::atomic<bool>& cancel) {
  return std::make_unique<CpuWorkload>(spec, way == Way::CpuLibrary, size, inputs, cancel);
}

}  // namespace ws::lab
