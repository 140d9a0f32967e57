// Own matrix products in fp16.
#include "engine/cuda/kernels/small_gemm.cuh"
#include "engine/cuda/kernels/weight_gradients.cuh"

namespace ws::cuda {

void small_gemm_fp16(Queue queue, const Product& p) { small_gemm_of<Math::Fp16>(queue, p); }

void weight_gradients_fp16(Queue queue, std::span<const WeightGradient> layers) {
  weight_gradients_of<Math::Fp16>(queue, Precision::Fp16, layers);
}

}  // namespace ws::cuda
