// One operation on device memory that can be enqueued on any stream, whole or in chunks.
#pragma once
#include <memory>

#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/executor/own_kernel.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/workloads/product.h"
#include "engine/workloads/workload.h"

namespace ws::cuda::lab {

using ws::lab::Inputs;
using ws::lab::LabSpec;
using ws::lab::Way;

class Operation {
 public:
  Operation(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs);

  void launch(cudaStream_t stream);
  // Enqueues elements [first, first + count) of an elementwise operation.
  void launch_chunk(cudaStream_t stream, int64_t first, int64_t count);
  bool has_second() const { return second_elements_ > 0; }
  int64_t output_elements() const { return output_elements_; }
  float* first() const { return inputs_.data(); }
  float* second() const { return inputs_.data() + second_begin(); }
  // Both inputs lie in one block, so one copy can transfer them. These are the start of the second input and the end.
  int64_t second_begin() const { return has_second() ? (first_elements_ + 63) / 64 * 64 : first_elements_; }
  int64_t input_elements() const { return second_begin() + second_elements_; }
  float* output() const { return out_.data(); }
  double output_at(int64_t index) const;  // call it after the work is done
  std::string note() const;

 private:
  void upload(const Inputs& inputs);
  void prepare_product();
  void use_half();
  void launch_own(cudaStream_t stream);
  void launch_sines(cudaStream_t stream, int64_t first, int64_t count);
  bool op_by_op() const { return way_ == Way::GpuOpByOp || way_ == Way::GpuGraphOps; }

  LabSpec spec_;
  Way way_;
  int64_t size_, first_elements_, second_elements_, output_elements_;
  DeviceBlock<float> inputs_, out_, partials_, level_;  // level_: between the sines, op by op
  std::unique_ptr<OwnKernel> own_;
  std::unique_ptr<Blas> blas_;  // for the learners' kernels
  std::unique_ptr<FastestProduct> fastest_;
  DeviceBlock<char> scratch_, half_a_, half_b_, half_c_;
  Product product_;
  Matmul how_ = Matmul::Library;
};

}  // namespace ws::cuda::lab
