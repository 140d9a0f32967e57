//! title: A product in tiles
//! preset: mnist
//! set: exec.fusion=pointwise
//! set: model.hidden=1024
//! set: train.batch=1024
//! op: fc1
//! check: train.batch=37 model.hidden=33
//! check: train.batch=1 model.hidden=1
//! check: train.batch=129 model.hidden=200
//! built-in: 1.8
//! text: z = x·W with 1024 x 784 x 1024. The starter reads both operands from memory for each product of two numbers.
//! text: Let a block compute a tile of z: copy strips of x and W into shared memory, and let each thread compute 4 x 4 or 8 x 8 results in registers.
//! look: Arithmetic is the limit here: 1.6 GFLOP. Count how many products each value that comes from shared memory is used for.
//! hint: 64 x 64 results with 256 threads are 4 x 4 a thread, from strips of 16 columns of x and 16 rows of W.
//! hint: While the block computes with one strip, its threads can already load the next one into registers.
constexpr int kThreads = 256, kBlocks = (c_rows * c_cols + kThreads - 1) / kThreads, kSharedBytes = 0;

extern "C" __global__ void own_kernel(const a_t* a, const b_t* b, c_t* c) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= c_rows * c_cols) return;
  const int row = i / c_cols, col = i % c_cols;
  float sum = 0;
  for (int k = 0; k < a_cols; ++k) sum += float(a[row * a_cols + k]) * float(b[k * b_cols + col]);
  c[i] = c_t(sum);
}
