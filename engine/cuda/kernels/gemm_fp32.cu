// Own matrix products in fp32.
#include "engine/cuda/kernels/small_gemm.cuh"
#include "engine/cuda/kernels/weight_gradients.cuh"

namespace ws::cuda {

void small_gemm_fp32(Queue queue, const Product& p) { small_gemm_of<Math::Fp32>(queue, p); }

void weight_gradients_fp32(Queue queue, std::span<const WeightGradient> layers) {
  weight_gradients_of<Math::Fp32>(queue, Precision::Fp32, layers);
}

}  // namespace ws::cuda
