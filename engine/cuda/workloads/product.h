// A matrix product at its best: the own kernels and what cuBLASLt offers are tried on the operands themselves, and the
// fastest stays.
#pragma once
#include <memory>
#include <string>

#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda::lab {

class FastestProduct {
 public:
  // Writes c. Without `trial` the library's own first choice is taken: what a first call would do.
  FastestProduct(const Product& product, bool trial);
  ~FastestProduct();
  // Gives back what all products share (100 MB of the device); none may be left. The next one makes it anew.
  static void release_shared();
  void launch(cudaStream_t stream) const;
  std::string describe() const;  // "cuBLASLt, offer 3 of 8"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ws::cuda::lab
