// Convolutions in bf16.
#include "engine/cuda/kernels/convolution.cuh"

namespace ws::cuda {

void conv_bf16(Queue queue, const Convolution& c) {
  c.pass == Convolution::Pass::Forward ? conv_of<Math::Bf16, false>(queue, c) : conv_of<Math::Bf16, true>(queue, c);
}

void conv_weight_grad_bf16(Queue queue, Workspace workspace, const Convolution& c) {
  conv_weight_grad_of<Math::Bf16>(queue, workspace, c);
}

}  // namespace ws::cuda
