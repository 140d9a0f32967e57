// Causal self-attention over the symbols of each row of text.
#pragma once
#include "engine/cpu/cpu_ops.h"

namespace ws::cpu {

// lse: the logarithm of each query's sum of exponents, (rows · heads, time).
template <class Real>
void attend(const Heads& heads, Matrix<Real> qkv, Matrix<Real> out, Matrix<Real> lse);
template <class Real>
void attend_grad(const Heads& heads, Matrix<Real> dout, Matrix<Real> out, Matrix<Real> qkv, Matrix<Real> lse,
                 Matrix<Real> dqkv);
// The shares that each symbol of one head takes from the symbols up to it, (time, time), of the first row of text.
template <class Real>
void attention_shares(const Heads& heads, int64_t head, Matrix<Real> qkv, Matrix<Real> lse, Matrix<Real> shares);

// ---- the parts of attention as ops of their own ----
template <class Real>
void head_product(const Heads& heads, const HeadParts& parts, Matrix<Real> a, bool transpose_a, Matrix<Real> b,
                  bool transpose_b, Matrix<Real> c);
template <class Real>
void causal_softmax(Matrix<Real> scores, Matrix<Real> shares);
template <class Real>
void causal_softmax_grad(Matrix<Real> dshares, Matrix<Real> shares, Matrix<Real> dscores);

}  // namespace ws::cpu
