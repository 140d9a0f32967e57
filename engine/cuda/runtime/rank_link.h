// The connection of one rank's executor to the other ranks.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

struct CUstream_st;  // cudaStream_t points to one

namespace ws::cuda {

struct Gradient {
  float* data = nullptr;
  size_t count = 0;
};

class RankLink {
 public:
  virtual ~RankLink() = default;
  virtual int device() const = 0;
  virtual std::string_view name() const = 0;  // of what averages, for users
  // Enqueues on the stream: replaces each element by the sum over the ranks of share · value. `beside_products`: longer
  // matrix products run at the same time and need multiprocessors.
  virtual void average(CUstream_st* stream, double share, std::span<const Gradient> gradients,
                       bool beside_products) = 0;
};

}  // namespace ws::cuda
