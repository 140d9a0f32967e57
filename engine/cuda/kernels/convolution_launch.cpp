// Chooses how a convolution is computed.
#include "engine/cuda/kernels/convolution_launch.h"

namespace ws::cuda {

bool suits_warpgroups(const Convolution& c) {
  constexpr int64_t kFewTiles = 32;  // of 128 pixels: too few to fill the multiprocessors
  const Window& v = c.window;
  const bool grad = c.pass == Convolution::Pass::DataGrad;
  const int64_t pixels = v.n * (grad ? v.h * v.w : v.oh * v.ow), taps = v.kh * v.kw;
  const int64_t columns = grad ? v.c : v.k, sum = taps * (grad ? v.k : v.c);
  const bool wide = c.pass == Convolution::Pass::WeightGrad ? v.k > 64 && taps * v.c >= 128 : columns >= 64 && sum >= 128;
  if (grad && v.k % 64 != 0) return false;  // a stage of the sum would reach into a second tap
  return !c.by_warps && wide && pixels >= kFewTiles * 128 && runs_warpgroups();
}

void convolve(Queue queue, Workspace workspace, const Convolution& c) {
  const bool exact = c.precision == Precision::Fp32 || c.precision == Precision::Tf32;
  exact ? conv_exact(queue, workspace, c) : conv_half(queue, workspace, c);
}

std::string describe(const Convolution& c) {
  return c.precision == Precision::Fp32 ? "own kernel, implicit product" : "own kernel, implicit product on tensor cores";
}

}  // namespace ws::cuda
