// Convolutions of wide layers in 16 bits on Hopper's warpgroup instructions. This file is compiled for sm_90a alone.
#include "engine/cuda/kernels/convolution.cuh"
#include "engine/cuda/kernels/warpgroup_product.cuh"

namespace ws::cuda {
namespace {

template <Math M, bool Grad>
void conv_wide(Queue queue, const Convolution& c) {
  const ConvArguments a = conv_arguments(c);
  if (a.g.n <= 64) return launch_conv<WarpgroupProduct<M, false, !Grad, 64>, Grad, true>(queue, a);
  launch_conv<WarpgroupProduct<M, false, !Grad, 128>, Grad, true>(queue, a);
}

template <Math M>
void wide(Queue queue, Workspace workspace, const Convolution& c) {
  switch (c.pass) {
    case Convolution::Pass::Forward:
      return conv_wide<M, false>(queue, c);
    case Convolution::Pass::DataGrad:
      return conv_wide<M, true>(queue, c);
    case Convolution::Pass::WeightGrad:
      if (c.window.kh * c.window.kw * c.window.c >= 1024)
        return launch_weight_grad<WarpgroupProduct<M, true, false, 256>>(queue, workspace, c);
      return launch_weight_grad<WarpgroupProduct<M, true, false, 128>>(queue, workspace, c);
  }
}

}  // namespace

Moments moments_of(const Convolution& c, Workspace memory) {
  if (c.pass != Convolution::Pass::Forward || (c.precision != Precision::Bf16 && c.precision != Precision::Fp16)) return {};
  const bool windows = has_small_windows(c);
  if (!windows && (!moves_whole_parts(c) || !suits_warpgroups(c))) return {};
  const GemmArguments g = conv_arguments(c).g;
  const int64_t rows = windows ? kWindowRows : 128;  // of a tile
  if (!g.writes_rows || ceil_div(g.m, rows) * 12 * g.n > memory.bytes) return {};
  return {static_cast<float*>(memory.data), rows};
}

void conv_by_warpgroups(Queue queue, Workspace workspace, const Convolution& c) {
  c.precision == Precision::Bf16 ? wide<Math::Bf16>(queue, workspace, c) : wide<Math::Fp16>(queue, workspace, c);
}

}  // namespace ws::cuda
