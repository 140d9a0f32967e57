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

}  // namespace ws::cpu
