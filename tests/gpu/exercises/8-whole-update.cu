constexpr int kThreads = 256, kBlocks = (W1_rows * W1_cols / 4 + kThreads) / kThreads, kSharedBytes = 0;

__device__ void update(float& w, float g, float& m, float rate) {
  m = 0.9f * m + g;
  w -= rate * m;
}

template <int kCount>
__device__ void update_all(float* w, const float* g, float* m, float rate) {
  const int i = blockIdx.x * kThreads + threadIdx.x, all = kBlocks * kThreads;
  for (int at = i; at < kCount / 4; at += all) {
    float4 u = reinterpret_cast<float4*>(w)[at], n = reinterpret_cast<float4*>(m)[at];
    const float4 v = reinterpret_cast<const float4*>(g)[at];
    update(u.x, v.x, n.x, rate), update(u.y, v.y, n.y, rate), update(u.z, v.z, n.z, rate), update(u.w, v.w, n.w, rate);
    reinterpret_cast<float4*>(w)[at] = u, reinterpret_cast<float4*>(m)[at] = n;
  }
  if (i < kCount % 4) update(w[kCount / 4 * 4 + i], g[kCount / 4 * 4 + i], m[kCount / 4 * 4 + i], rate);
}

extern "C" __global__ void own_kernel(W1_t* W1, const dW1_t* dW1, m_W1_t* m_W1, b1_t* b1, const db1_t* db1, m_b1_t* m_b1, W2_t* W2,
                                      const dW2_t* dW2, m_W2_t* m_W2, b2_t* b2, const db2_t* db2, m_b2_t* m_b2, step_t step) {
  const float rate = learning_rate(step);
  update_all<W1_rows * W1_cols>(W1, dW1, m_W1, rate);
  update_all<b1_cols>(b1, db1, m_b1, rate);
  update_all<W2_rows * W2_cols>(W2, dW2, m_W2, rate);
  update_all<b2_cols>(b2, db2, m_b2, rate);
}
