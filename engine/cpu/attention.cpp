#include "engine/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ws::cpu {
namespace {

// The parts of one head of one text in the matrices of all of them.
struct Place {
  const Heads& heads;
  int64_t text = 0, head = 0;

  int64_t width() const { return heads.heads * heads.head_width; }
  // which: 0 queries, 1 keys, 2 values.
  template <class Real>
  Part<Real> of_qkv(Matrix<Real> qkv, int64_t which) const {
    return {qkv.row(text * heads.time) + which * width() + head * heads.head_width, heads.time, heads.head_width, qkv.cols};
  }
  template <class Real>
  Part<Real> of_out(Matrix<Real> out) const {
    return {out.row(text * heads.time) + head * heads.head_width, heads.time, heads.head_width, out.cols};
  }
  template <class Real>
  Real* of_lse(Matrix<Real> lse) const {
    return lse.row(text * heads.heads + head);
  }
};

template <class Work>
void each_head(const Heads& heads, int64_t rows, const Work& work) {
  for (int64_t text = 0; text < rows / heads.time; ++text)
    for (int64_t head = 0; head < heads.heads; ++head) work(Place{heads, text, head});
}

template <class Real>
Real scale_of(const Heads& heads) {
  return static_cast<Real>(1 / std::sqrt(static_cast<double>(heads.head_width)));
}

// Turns the scores of query `t` into shares of the symbols up to it, and returns the logarithm of their sum.
template <class Real>
Real softmax_up_to(Real* scores, int64_t t, int64_t time) {
  const Real top = *std::max_element(scores, scores + t + 1);
  Real sum = 0;
  for (int64_t j = 0; j <= t; ++j) sum += scores[j] = std::exp(scores[j] - top);
  for (int64_t j = 0; j <= t; ++j) scores[j] /= sum;
  std::fill(scores + t + 1, scores + time, Real(0));
  return top + std::log(sum);
}

// Shares from stored logarithms: the same values as in the forward pass.
template <class Real>
void shares_of(Matrix<Real> scores, const Real* lse) {
  for (int64_t t = 0; t < scores.rows; ++t) {
    Real* row = scores.row(t);
    for (int64_t j = 0; j <= t; ++j) row[j] = std::exp(row[j] - lse[t]);
    std::fill(row + t + 1, row + scores.cols, Real(0));
  }
}

// Gradient of the scores from the gradient of the shares.
template <class Real>
void score_grad(Matrix<Real> shares, Matrix<Real> d_shares, Part<Real> out, Part<Real> dout) {
  for (int64_t t = 0; t < shares.rows; ++t) {
    Real mean = 0;
    for (int64_t j = 0; j < out.cols; ++j) mean += out.data[t * out.stride + j] * dout.data[t * dout.stride + j];
    for (int64_t j = 0; j <= t; ++j) d_shares.row(t)[j] = shares.row(t)[j] * (d_shares.row(t)[j] - mean);
    std::fill(d_shares.row(t) + t + 1, d_shares.row(t) + shares.cols, Real(0));
  }
}

}  // namespace

template <class Real>
void attend(const Heads& heads, Matrix<Real> qkv, Matrix<Real> out, Matrix<Real> lse) {
  std::vector<Real> space(static_cast<size_t>(heads.time * heads.time));
  const Matrix<Real> scores{space.data(), heads.time, heads.time};
  each_head(heads, qkv.rows, [&](const Place& at) {
    multiply<Real>(at.of_qkv(qkv, 0), false, at.of_qkv(qkv, 1), true, scores, scale_of<Real>(heads), Result::Replaces);
    for (int64_t t = 0; t < heads.time; ++t) at.of_lse(lse)[t] = softmax_up_to(scores.row(t), t, heads.time);
    multiply<Real>(scores, false, at.of_qkv(qkv, 2), false, at.of_out(out), Real(1), Result::Replaces);
  });
}

template <class Real>
void attention_shares(const Heads& heads, int64_t head, Matrix<Real> qkv, Matrix<Real> lse, Matrix<Real> shares) {
  const Place at{heads, 0, head};
  multiply<Real>(at.of_qkv(qkv, 0), false, at.of_qkv(qkv, 1), true, shares, scale_of<Real>(heads), Result::Replaces);
  shares_of(shares, at.of_lse(lse));
}

template <class Real>
void attend_grad(const Heads& heads, Matrix<Real> dout, Matrix<Real> out, Matrix<Real> qkv, Matrix<Real> lse,
                 Matrix<Real> dqkv) {
  std::vector<Real> space(static_cast<size_t>(2 * heads.time * heads.time));
  const Matrix<Real> shares{space.data(), heads.time, heads.time}, d_scores{space.data() + shares.size(), heads.time, heads.time};
  const Real scale = scale_of<Real>(heads);
  each_head(heads, qkv.rows, [&](const Place& at) {
    const Part<Real> q = at.of_qkv(qkv, 0), k = at.of_qkv(qkv, 1), v = at.of_qkv(qkv, 2), grad = at.of_out(dout);
    multiply<Real>(q, false, k, true, shares, scale, Result::Replaces);
    shares_of(shares, at.of_lse(lse));
    multiply<Real>(shares, true, grad, false, at.of_qkv(dqkv, 2), Real(1), Result::Replaces);
    multiply<Real>(grad, false, v, true, d_scores, Real(1), Result::Replaces);
    score_grad(shares, d_scores, at.of_out(out), grad);
    multiply<Real>(d_scores, false, k, false, at.of_qkv(dqkv, 0), scale, Result::Replaces);
    multiply<Real>(d_scores, true, q, false, at.of_qkv(dqkv, 1), scale, Result::Replaces);
  });
}

#define WS_FOR(Real)                                                                      \
  template void attend(const Heads&, Matrix<Real>, Matrix<Real>, Matrix<Real>);           \
  template void attention_shares(const Heads&, int64_t, Matrix<Real>, Matrix<Real>, Matrix<Real>);                \
  template void attend_grad(const Heads&, Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

}  // namespace ws::cpu
