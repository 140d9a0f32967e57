// Convolutions in fp32 and tf32.
#include "engine/cuda/kernels/convolution.cuh"

namespace ws::cuda {

void conv_exact(Queue queue, Workspace workspace, const Convolution& c) {
  c.precision == Precision::Tf32 ? conv_of<Math::Tf32>(queue, workspace, c) : conv_of<Math::Fp32>(queue, workspace, c);
}

}  // namespace ws::cuda
