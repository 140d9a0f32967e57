// The connection of one rank's executor to the other ranks.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

struct CUstream_st;  // cudaStream_t points to one
struct CUevent_st;   // and cudaEvent_t to one

namespace ws::cuda {

struct Gradient {
  float* data = nullptr;
  size_t count = 0;
};

// What runs on the GPU at the same time as an average.
enum class Beside {
  Nothing,
  Updates,   // of other weights: they need most multiprocessors for about as long
  Products,  // longer matrix products: they need nearly all multiprocessors
  Average,   // a longer average; only where takes_two()
};

class RankLink {
 public:
  virtual ~RankLink() = default;
  virtual int device() const = 0;
  virtual std::string_view name() const = 0;  // of what averages, for users
  // True if a short average may run on another stream beside a long one.
  virtual bool takes_two() const { return false; }
  // Enqueues on the stream: replaces each element by the sum over the ranks of share · value.
  // `begun`, if not null, is recorded when an average beside an average has its multiprocessors.
  virtual void average_beside(CUstream_st* stream, double share, std::span<const Gradient> gradients, Beside beside,
                              CUevent_st* begun) = 0;
  void average(CUstream_st* stream, double share, std::span<const Gradient> gradients) {
    average_beside(stream, share, gradients, Beside::Nothing, nullptr);
  }
};

}  // namespace ws::cuda
