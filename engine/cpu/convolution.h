// Convolutions and pools of pictures: one row for each pixel, one column for each channel.
#pragma once
#include "engine/cpu/cpu_ops.h"

namespace ws::cpu {

template <class Real>
void convolve(const Window& window, Matrix<Real> x, Matrix<Real> w, Matrix<Real> z);
template <class Real>
void convolve_data_grad(const Window& window, Matrix<Real> dz, Matrix<Real> w, Matrix<Real> dx);
template <class Real>
void convolve_weight_grad(const Window& window, Matrix<Real> x, Matrix<Real> dz, Matrix<Real> dw);
template <class Real>
void max_pool(const Window& window, Matrix<Real> x, Matrix<Real> y);
template <class Real>
void max_pool_grad(const Window& window, Matrix<Real> dy, Matrix<Real> x, Matrix<Real> y, Matrix<Real> dx);
template <class Real>
void average_pool(const Window& window, Matrix<Real> x, Matrix<Real> y);
template <class Real>
void average_pool_grad(const Window& window, Matrix<Real> dy, Matrix<Real> dx);

// Turns each of the window's n matrices of h × w.
template <class Real>
void turn(const Window& w, Matrix<Real> x, Matrix<Real> y);

}  // namespace ws::cpu
