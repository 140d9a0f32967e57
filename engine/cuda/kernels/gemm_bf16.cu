// Own matrix products in bf16.
#include "engine/cuda/kernels/small_gemm.cuh"
#include "engine/cuda/kernels/weight_gradients.cuh"

namespace ws::cuda {

void small_gemm_bf16(Queue queue, const Product& p) { small_gemm_of<Math::Bf16>(queue, p); }

void weight_gradients_bf16(Queue queue, std::span<const WeightGradient> layers) {
  weight_gradients_of<Math::Bf16>(queue, Precision::Bf16, layers);
}

}  // namespace ws::cuda
