// Own matrix products in tf32.
#include "engine/cuda/kernels/small_gemm.cuh"
#include "engine/cuda/kernels/weight_gradients.cuh"

namespace ws::cuda {

void small_gemm_tf32(Queue queue, const Product& p) { small_gemm_of<Math::Tf32>(queue, p); }

void weight_gradients_tf32(Queue queue, std::span<const WeightGradient> layers) {
  weight_gradients_of<Math::Tf32>(queue, Precision::Tf32, layers);
}

}  // namespace ws::cuda
