// The arithmetic of every op on plain arrays, as the reference definition. Real is float to run and double to check.
#pragma once
#include <cstdint>

#include "engine/plan/plan.h"

namespace ws::cpu {

// Row-major matrix views; shapes as in plan.h.
template <class Real>
struct Matrix {
  Real* data = nullptr;
  int64_t rows = 0, cols = 0;
  int64_t size() const { return rows * cols; }
  Real* row(int64_t r) const { return data + r * cols; }
};

struct Sums {
  double loss = 0, correct = 0;  // over the rows of a step
};

// The class of each row. The target of a row is (1 − smoothing)·onehot + smoothing/classes.
struct Labels {
  const int32_t* classes = nullptr;
  double smoothing = 0;
};

struct Hyper {
  Optimizer kind = Optimizer::Sgd;
  double lr = 0, momentum = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  double unscale = 1;   // gradients are multiplied by it
  int64_t updates = 1;  // 1 for the first update; for Adam's bias correction
  bool nesterov = false;
};

// A part of a wider matrix: its rows begin `stride` values after each other.
template <class Real>
struct Part {
  Real* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
  Part(Real* at, int64_t r, int64_t c, int64_t s) : data(at), rows(r), cols(c), stride(s) {}
  Part(Matrix<Real> m) : Part(m.data, m.rows, m.cols, m.cols) {}
};
enum class Result { Replaces, Adds };

// c = factor·op(a)·op(b), or c += the same.
template <class Real>
void multiply(Part<Real> a, bool transpose_a, Part<Real> b, bool transpose_b, Part<Real> c, Real factor, Result result);
template <class Real>
void multiply(Matrix<Real> a, bool transpose_a, Matrix<Real> b, bool transpose_b, Matrix<Real> c);  // c = op(a)·op(b)
template <class Real>
void broadcast_rows(Matrix<Real> bias, Matrix<Real> out);  // (1, out) → (n, out)
template <class Real>
void add(Matrix<Real> a, Matrix<Real> b, Matrix<Real> out);
template <class Real>
void activate(Activation kind, Matrix<Real> z, Matrix<Real> h);
template <class Real>
void activate_grad(Activation kind, Matrix<Real> dh, Matrix<Real> saved, Matrix<Real> dz);
template <class Real>
void bias_activate(Activation kind, Matrix<Real> z, Matrix<Real> bias, Matrix<Real> h,
                   Matrix<Real> pre);  // pre may be empty
template <class Real>
void softmax(Matrix<Real> z, Matrix<Real> p);
template <class Real>
Sums cross_entropy(Matrix<Real> z, Labels labels);
template <class Real>
void softmax_grad(Matrix<Real> p, Labels labels, Real scale, Matrix<Real> dz);  // (p − target)·scale
template <class Real>
Sums softmax_cross_entropy(Matrix<Real> z, Labels labels, Real scale, Matrix<Real> dz);
template <class Real>
Sums squared_error(Matrix<Real> z, Matrix<Real> y);  // sum over rows of the mean over columns
template <class Real>
void squared_error_grad(Matrix<Real> z, Matrix<Real> y, Real scale, Matrix<Real> dz);
template <class Real>
void column_sum(Matrix<Real> a, Matrix<Real> out);
template <class Real>
bool all_finite(Matrix<Real> a);
template <class Real>
double sum_of_squares(Matrix<Real> a);
template <class Real>
void scale(Real factor, Matrix<Real> a);
template <class Real>
void update(const Hyper& hyper, bool decays, Matrix<Real> w, Matrix<Real> gradient, Real* m, Real* v);
template <class Real>
Sums linear_step(Matrix<Real> x, Matrix<Real> y, Matrix<Real> w, Real b, Matrix<Real> dw, Real* db);

// Returns the nearest number that the type can hold.
float round_to(DType type, float value);
template <class Real>
void round_all(DType type, Matrix<Real> a);

// Vectors of symbols and of their positions.
// The symbols are whole numbers in x; `positions` may be empty.
template <class Real>
void embed(Matrix<Real> symbols, Matrix<Real> table, Matrix<Real> positions, Matrix<Real> h);
template <class Real>
void embed_grad(Matrix<Real> symbols, Matrix<Real> dh, Matrix<Real> dtable, Matrix<Real> dpositions);

// Crops, mirrors and normalises pictures.
// `pictures`: how many, and their height, width and channels.
template <class Real>
void prepare(const Preparation& how, const Window& pictures, uint64_t seed, int64_t step, Matrix<Real> x, Matrix<Real> y);

}  // namespace ws::cpu
