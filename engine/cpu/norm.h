// Batch norm and layer norm, with their gradients, and dropout.
#pragma once
#include "engine/cpu/cpu_ops.h"

namespace ws::cpu {

// A norm's own values. Vectors have one value for each column; mean and deviation of a layer norm one for each row.
template <class Real>
struct NormValues {
  const Real *gain = nullptr, *shift = nullptr;
  Real *mean = nullptr, *inverse = nullptr;  // of the values in this step; inverse standard deviation
};

// What follows a batch norm in the same op: an activation, and a max pool unless its window is empty.
struct AfterNorm {
  Activation activation = Activation::None;
  Window pool = {};
};

// Normalises the columns of x and moves the running statistics towards the statistics of x.
template <class Real>
void batch_norm(const AfterNorm& after, Matrix<Real> x, NormValues<Real> norm, Matrix<Real> running_mean,
                Matrix<Real> running_variance, Matrix<Real> y);
template <class Real>
void batch_norm_apply(Activation after, Matrix<Real> x, NormValues<Real> norm, Matrix<Real> running_mean,
                      Matrix<Real> running_variance, Matrix<Real> y);
// Computes the norm's result again if something follows it; only then it needs the shift.
template <class Real>
void batch_norm_grad(const AfterNorm& after, Matrix<Real> dy, Matrix<Real> x, NormValues<Real> norm, Matrix<Real> dx,
                     Matrix<Real> dgain, Matrix<Real> dshift);
template <class Real>
void layer_norm(Matrix<Real> x, NormValues<Real> norm, Matrix<Real> y);
template <class Real>
void layer_norm_grad(Matrix<Real> dy, Matrix<Real> x, NormValues<Real> norm, Matrix<Real> dx, Matrix<Real> dgain,
                     Matrix<Real> dshift);
template <class Real>
void drop_out(const DropoutMask& mask, uint64_t seed, int64_t step, Matrix<Real> x, Matrix<Real> y);

}  // namespace ws::cpu
