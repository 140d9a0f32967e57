// Vectors of symbols and of their positions.
#pragma once
#include "engine/cpu/cpu_ops.h"

namespace ws::cpu {

// The symbols are whole numbers in x; `positions` may be empty.
template <class Real>
void embed(Matrix<Real> symbols, Matrix<Real> table, Matrix<Real> positions, Matrix<Real> h);
template <class Real>
void embed_grad(Matrix<Real> symbols, Matrix<Real> dh, Matrix<Real> dtable, Matrix<Real> dpositions);

}  // namespace ws::cpu
