#include "engine/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/cores.h"

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
  share_range(rows / heads.time * heads.heads, least_rows(heads.time * heads.head_width), [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) work(Place{heads, i / heads.heads, i % heads.heads});
  });
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
  each_head(heads, qkv.rows, [&](const Place& at) {
    const Matrix<Real> scores{scratch<Real>(heads.time * heads.time), heads.time, heads.time};
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
  const Real scale = scale_of<Real>(heads);
  each_head(heads, qkv.rows, [&](const Place& at) {
    const Matrix<Real> shares{scratch<Real>(2 * heads.time * heads.time), heads.time, heads.time};
    const Matrix<Real> d_scores{shares.data + shares.size(), heads.time, heads.time};
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

namespace {

template <class Real>
Part<Real> part_of(const Place& at, HeadPart part, Matrix<Real> m) {
  if (part == HeadPart::Output) return at.of_out(m);
  if (part != HeadPart::Scores) return at.of_qkv(m, static_cast<int64_t>(part));
  const int64_t time = at.heads.time;
  return {m.data + (at.text * at.heads.heads + at.head) * time * time, time, time, time};
}

}  // namespace

template <class Real>
void head_product(const Heads& heads, const HeadParts& parts, Matrix<Real> a, bool transpose_a, Matrix<Real> b,
                  bool transpose_b, Matrix<Real> c) {
  const Matrix<Real> scores = parts.a == HeadPart::Scores ? a : c;
  const int64_t texts = scores.size() / (heads.heads * heads.time * heads.time);
  const Real scale = parts.scaled ? scale_of<Real>(heads) : Real(1);
  each_head(heads, texts * heads.time, [&](const Place& at) {
    multiply<Real>(part_of(at, parts.a, a), transpose_a, part_of(at, parts.b, b), transpose_b, part_of(at, parts.c, c), scale,
                   Result::Replaces);
  });
}

template <class Real>
void causal_softmax(Matrix<Real> scores, Matrix<Real> shares) {
  share_range(scores.rows, least_rows(scores.cols), [=](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      std::copy_n(scores.row(row), scores.cols, shares.row(row));
      softmax_up_to(shares.row(row), row % scores.cols, scores.cols);
    }
  });
}

template <class Real>
void causal_softmax_grad(Matrix<Real> dshares, Matrix<Real> shares, Matrix<Real> dscores) {
  share_range(shares.rows, least_rows(shares.cols), [=](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      const Real *p = shares.row(row), *dp = dshares.row(row);
      const int64_t seen = row % shares.cols + 1;
      Real mean = 0;
      for (int64_t j = 0; j < seen; ++j) mean += p[j] * dp[j];
      for (int64_t j = 0; j < shares.cols; ++j) dscores.row(row)[j] = j < seen ? p[j] * (dp[j] - mean) : Real(0);
    }
  });
}

#define WS_FOR(Real)                                                                      \
  template void attend(const Heads&, Matrix<Real>, Matrix<Real>, Matrix<Real>);           \
  template void attention_shares(const Heads&, int64_t, Matrix<Real>, Matrix<Real>, Matrix<Real>);                \
  template void attend_grad(const Heads&, Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);  \
  template void head_product(const Heads&, const HeadParts&, Matrix<Real>, bool, Matrix<Real>, bool, Matrix<Real>); \
  template void causal_softmax(Matrix<Real>, Matrix<Real>);                                                        \
  template void causal_softmax_grad(Matrix<Real>, Matrix<Real>, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

}  // namespace ws::cpu
