#include "engine/cpu/embedding.h"

#include <algorithm>

namespace ws::cpu {

template <class Real>
void embed(Matrix<Real> symbols, Matrix<Real> table, Matrix<Real> positions, Matrix<Real> h) {
  for (int64_t i = 0; i < symbols.size(); ++i) {
    const Real* vector = table.row(static_cast<int64_t>(symbols.data[i]));
    std::copy_n(vector, table.cols, h.row(i));
    if (!positions.data) continue;
    const Real* place = positions.row(i % symbols.cols);
    for (int64_t j = 0; j < table.cols; ++j) h.row(i)[j] += place[j];
  }
}

template <class Real>
void embed_grad(Matrix<Real> symbols, Matrix<Real> dh, Matrix<Real> dtable, Matrix<Real> dpositions) {
  std::fill_n(dtable.data, dtable.size(), Real(0));
  if (dpositions.data) std::fill_n(dpositions.data, dpositions.size(), Real(0));
  for (int64_t i = 0; i < symbols.size(); ++i) {
    Real* vector = dtable.row(static_cast<int64_t>(symbols.data[i]));
    for (int64_t j = 0; j < dtable.cols; ++j) vector[j] += dh.row(i)[j];
    if (!dpositions.data) continue;
    Real* place = dpositions.row(i % symbols.cols);
    for (int64_t j = 0; j < dtable.cols; ++j) place[j] += dh.row(i)[j];
  }
}

#define WS_FOR(Real)                                                                 \
  template void embed(Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);       \
  template void embed_grad(Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

}  // namespace ws::cpu
