// The fastest way to compute one matrix product: it tries our own kernels and cuBLASLt's algorithms on the operands.
#pragma once
#include <memory>
#include <string>

#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda::lab {

class FastestProduct {
 public:
  // Writes c. Without `trial` it takes cuBLASLt's first choice, as a first call would.
  FastestProduct(const Product& product, bool trial);
  ~FastestProduct();
  // Frees what all products share (100 MB on the device). No product may exist. The next product allocates it again.
  static void release_shared();
  void launch(cudaStream_t stream) const;
  std::string describe() const;  // "cuBLASLt, algorithm 3 of 8"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ws::cuda::lab
