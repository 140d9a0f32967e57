// Averages the gradients of the interpreter's ranks.
#pragma once
#include <span>
#include <vector>

namespace ws::cpu {

class RankAverage {
 public:
  RankAverage();
  virtual ~RankAverage();
  RankAverage(const RankAverage&) = delete;
  RankAverage& operator=(const RankAverage&) = delete;

  template <class Real>
  using Tensors = std::vector<std::span<Real>>;
  // Every rank calls this with tensors of the same sizes. Each element becomes the sum over the ranks of share · value.
  virtual void average(int rank, double share, const Tensors<float>& tensors) = 0;
  virtual void average(int rank, double share, const Tensors<double>& tensors) = 0;
};

}  // namespace ws::cpu
