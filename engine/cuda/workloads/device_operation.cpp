#include "engine/cuda/workloads/device_operation.h"

#include <cuda_fp16.h>

#include "engine/cuda/workloads/workload_kernels.h"
#include "engine/workloads/lab_kernels.h"

namespace ws::cuda::lab {

using Kind = ws::lab::Operation;

Operation::Operation(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs)
    : spec_(spec),
      way_(way),
      size_(size),
      first_elements_(static_cast<int64_t>(inputs.a.size())),
      second_elements_(static_cast<int64_t>(inputs.b.size())),
      output_elements_(ws::lab::output_elements(spec, size)) {
  inputs_ = DeviceBlock<float>::device(static_cast<size_t>(input_elements()));
  out_ = DeviceBlock<float>::device(static_cast<size_t>(output_elements_));
  if (spec.operation == Kind::Reduce) partials_ = DeviceBlock<float>::device(kReducePartials);
  if (spec.operation == Kind::Sine && op_by_op()) level_ = DeviceBlock<float>::device(static_cast<size_t>(size));
  if (const OwnKernelSource* source = ws::lab::kernel_of(spec, way)) own_ = std::make_unique<OwnKernel>(ws::lab::kernel_contract(spec, size), *source);
  upload(inputs);
  if (spec.operation == Kind::MatMul && !own_) prepare_product();
}

void Operation::upload(const Inputs& inputs) {
  CUDA_CHECK(cudaMemcpy(first(), inputs.a.data(), inputs.a.size() * sizeof(float), cudaMemcpyHostToDevice));
  if (has_second())
    CUDA_CHECK(cudaMemcpy(second(), inputs.b.data(), inputs.b.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaStreamSynchronize(nullptr));  // a copy from pageable memory may return before its last bytes arrive
}

void Operation::prepare_product() {
  const int64_t m = spec_.m > 0 ? spec_.m : size_, k = spec_.k > 0 ? spec_.k : size_;
  product_.a = {first(), DType::F32, m, k};
  product_.b = {second(), DType::F32, k, size_};
  product_.c = {out_.data(), DType::F32, m, size_};
  if (way_ == Way::GpuTf32) product_.precision = Precision::Tf32;
  if (way_ == Way::GpuFp16) use_half();
  if (way_ != Way::GpuNaive && way_ != Way::GpuTiled) {
    fastest_ = std::make_unique<FastestProduct>(product_, way_ != Way::GpuCold);
    return;
  }
  how_ = way_ == Way::GpuNaive ? Matmul::Naive : Matmul::Tiled;
  blas_ = std::make_unique<Blas>();
  scratch_ = DeviceBlock<char>::filled(kScratchBytes);
}

void Operation::use_half() {
  const auto half = [](DeviceBlock<char>& memory, Tensor& tensor, bool fill) {
    memory = DeviceBlock<char>::device(static_cast<size_t>(tensor.elements()) * 2);
    const Tensor small{memory.data(), DType::F16, tensor.rows, tensor.cols};
    if (fill) convert(Queue(), tensor, small);
    tensor = small;
  };
  product_.precision = Precision::Fp16;
  half(half_a_, product_.a, true);
  half(half_b_, product_.b, true);
  half(half_c_, product_.c, false);
  CUDA_CHECK(cudaDeviceSynchronize());
}

double Operation::output_at(int64_t index) const {
  if (half_c_) {
    __half value{};
    CUDA_CHECK(cudaMemcpy(&value, half_c_.data() + 2 * index, sizeof value, cudaMemcpyDeviceToHost));
    return static_cast<double>(__half2float(value));
  }
  float value = 0;
  CUDA_CHECK(cudaMemcpy(&value, out_.data() + index, sizeof value, cudaMemcpyDeviceToHost));
  return static_cast<double>(value);
}

void Operation::launch(cudaStream_t stream) {
  if (own_) return launch_own(stream);
  if (fastest_) return fastest_->launch(stream);
  if (spec_.operation == Kind::MatMul) return matmul(Queue(stream), *blas_, Scratch{scratch_.data()}, how_, product_);
  if (spec_.operation == Kind::Reduce) return reduce(stream, first(), partials_.data(), out_.data(), size_);
  if (spec_.operation == Kind::Softmax) return softmax_rows(stream, first(), out_.data(), size_);
  launch_chunk(stream, 0, size_);
}

void Operation::launch_chunk(cudaStream_t stream, int64_t first, int64_t count) {
  if (spec_.operation == Kind::Copy) {
    CUDA_CHECK(cudaMemcpyAsync(out_.data() + first, this->first() + first, static_cast<size_t>(count) * sizeof(float),
                               cudaMemcpyDeviceToDevice, stream));
  } else if (spec_.operation == Kind::Add) {
    add(stream, this->first() + first, second() + first, out_.data() + first, count);
  } else if (op_by_op()) {
    launch_sines(stream, first, count);
  } else {
    nested_sine(stream, this->first() + first, out_.data() + first, count, spec_.depth);
  }
}

void Operation::launch_own(cudaStream_t stream) {
  std::vector<void*> operands{first()};
  if (has_second()) operands.push_back(second());
  operands.push_back(out_.data());
  own_->launch(stream, operands, {});
}

// Works like an array library: each level reads a whole array and writes a whole array.
void Operation::launch_sines(cudaStream_t stream, int64_t first, int64_t count) {
  const float* from = this->first() + first;
  for (int level = 1; level <= spec_.depth; ++level) {
    float* to = level == spec_.depth ? out_.data() + first : level_.data();
    sine(stream, from, to, count);
    from = to;
  }
}

std::string Operation::note() const {
  if (own_) return own_->note();
  if (fastest_) return fastest_->describe();
  return product_.c ? describe(how_, product_) : "";
}

}  // namespace ws::cuda::lab
