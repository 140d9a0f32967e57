// Own matrix products.
#include "engine/cuda/kernels/small_gemm.cuh"
#include "engine/cuda/kernels/weight_gradients.cuh"

namespace ws::cuda {

void small_gemm(Queue queue, const Product& p) {
  // Sums in fp16 show why products need fp32 accumulators.
  if (p.precision == Precision::Fp16 && p.accumulate == Accumulate::Fp16) return small_gemm_of<Math::Half16>(queue, p);
  with_math(p.precision, [&]<Math M>() { small_gemm_of<M>(queue, p); });
}

void weight_gradients(Queue queue, Precision precision, std::span<const WeightGradient> layers) {
  while (!layers.empty()) {
    const auto some = layers.first(std::min<size_t>(layers.size(), kMaxWeightGradients));
    with_math(precision, [&]<Math M>() { weight_gradients_of<M>(queue, precision, some); });
    layers = layers.subspan(some.size());
  }
}

}  // namespace ws::cuda
