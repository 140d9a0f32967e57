//! title: The whole update in one kernel
//! preset: mnist
//! set: exec.fusion=pointwise
//! set: model.hidden=1024
//! op: momentum all
//! check: train.batch=37 model.hidden=33
//! check: train.batch=1 model.hidden=1
//! check: train.batch=129 model.hidden=200
//! built-in: 1.5
//! text: Momentum updates four parameters: two matrices and two biases. One kernel reads each weight, its gradient and its momentum once, and writes two of them.
//! text: The starter updates the parameters with one block. Use the whole GPU, and load four values at once where their number allows it.
//! look: The limit is memory: five times the bytes of the weights. A second launch would cost more than the biases do.
//! hint: A grid of as many threads as the largest parameter needs can also handle the small ones: each loop begins at the thread's number.
//! hint: The sizes are constants, so "if constexpr (W1_rows * W1_cols % 4 == 0)" chooses float4 without a branch.
constexpr int kThreads = 256, kBlocks = 1, kSharedBytes = 0;

__device__ void update(float& w, float g, float& m, float rate) {
  m = 0.9f * m + g;
  w -= rate * m;
}

extern "C" __global__ void own_kernel(W1_t* W1, const dW1_t* dW1, m_W1_t* m_W1, b1_t* b1, const db1_t* db1, m_b1_t* m_b1, W2_t* W2,
                                      const dW2_t* dW2, m_W2_t* m_W2, b2_t* b2, const db2_t* db2, m_b2_t* m_b2, step_t step) {
  const int i = blockIdx.x * kThreads + threadIdx.x, all = kBlocks * kThreads;
  const float rate = learning_rate(step);
  for (int at = i; at < W1_rows * W1_cols; at += all) update(W1[at], float(dW1[at]), m_W1[at], rate);
  for (int at = i; at < b1_cols; at += all) update(b1[at], float(db1[at]), m_b1[at], rate);
  for (int at = i; at < W2_rows * W2_cols; at += all) update(W2[at], float(dW2[at]), m_W2[at], rate);
  for (int at = i; at < b2_cols; at += all) update(b2[at], float(db2[at]), m_b2[at], rate);
}
