//! title: Bias and relu in one pass
//! preset: mnist
//! set: exec.fusion=pointwise
//! set: model.hidden=1024
//! set: train.batch=4096
//! op: bias relu1
//! check: train.batch=37 model.hidden=1021
//! check: train.batch=1 model.hidden=1
//! check: train.batch=515 model.hidden=64
//! built-in: 0.75
//! text: Adds the bias to each row and applies relu. The kernel reads z once and writes h once, so only memory limits it.
//! text: The starter works, with one value a thread. Let each thread load four values at once, as float4.
//! look: Memory is the limit: the op reads and writes 32 MiB. In the SASS of a fast kernel each load is LDG.E.128.
//! hint: cols may not be a multiple of four. h_cols is a constant, so "if constexpr (h_cols % 4 == 0)" costs nothing.
//! hint: One thread can take several float4 of the same column, and keep that part of the bias in registers.
constexpr int kThreads = 256, kBlocks = (h_rows * h_cols + kThreads - 1) / kThreads, kSharedBytes = 0;

extern "C" __global__ void own_kernel(const z_t* z, const bias_t* bias, h_t* h) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= h_rows * h_cols) return;
  const float sum = float(z[i]) + float(bias[i % bias_cols]);
  h[i] = h_t(activation(sum));
}
