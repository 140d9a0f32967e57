//! title: A product on tensor cores
//! preset: mnist
//! set: exec.fusion=pointwise
//! set: exec.precision=bf16
//! set: model.hidden=1024
//! set: train.batch=1024
//! op: fc1
//! check: train.batch=37 model.hidden=33
//! check: train.batch=16 model.hidden=16
//! check: train.batch=129 model.hidden=200
//! built-in: 6
//! text: The same product with bf16 operands. A warp multiplies tiles of 16 x 16 numbers with one instruction, through nvcuda::wmma of <mma.h>.
//! text: The starter uses no tensor core. Copy tiles into shared memory, load them as fragments, and store the sums through shared memory.
//! look: The SASS of a fast kernel has HMMA instructions. The built-in kernel also keeps loads in flight with TMA; six times its time is a good start.
//! hint: The shapes need not be multiples of 16: fill the rest of a tile with zeros, and check the bounds when you store.
//! hint: Eight warps with 32 x 32 results each make a block of 64 x 128, from strips of 32 columns.
constexpr int kThreads = 256, kBlocks = (c_rows * c_cols + kThreads - 1) / kThreads, kSharedBytes = 0;

extern "C" __global__ void own_kernel(const a_t* a, const b_t* b, c_t* c) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= c_rows * c_cols) return;
  const int row = i / c_cols, col = i % c_cols;
  float sum = 0;
  for (int k = 0; k < a_cols; ++k) sum += float(a[row * a_cols + k]) * float(b[k * b_cols + col]);
  c[i] = c_t(sum);
}
