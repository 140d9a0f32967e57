// Convolutions in 16 bits.
#include "engine/cuda/kernels/convolution.cuh"

namespace ws::cuda {

void conv_half(Queue queue, Workspace workspace, const Convolution& c) {
  c.precision == Precision::Bf16 ? conv_of<Math::Bf16>(queue, workspace, c) : conv_of<Math::Fp16>(queue, workspace, c);
}

}  // namespace ws::cuda
