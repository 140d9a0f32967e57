// Convolutions in fp16.
#include "engine/cuda/kernels/convolution.cuh"

namespace ws::cuda {

void conv_fp16(Queue queue, const Convolution& c) {
  c.pass == Convolution::Pass::Forward ? conv_of<Math::Fp16, false>(queue, c) : conv_of<Math::Fp16, true>(queue, c);
}

void conv_weight_grad_fp16(Queue queue, Workspace workspace, const Convolution& c) {
  conv_weight_grad_of<Math::Fp16>(queue, workspace, c);
}

}  // namespace ws::cuda
