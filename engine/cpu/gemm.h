// Matrix products of our own: packed panels and a tile in registers, for the widest vectors of the processor.
#pragma once
#include <cstdint>

#include "engine/cpu/cores.h"
#include "engine/cpu/vector_kernels.h"

namespace ws::cpu {

enum class VectorSet { Baseline, Avx2, Avx512 };
bool processor_has(VectorSet vectors);
VectorSet best_vectors();

template <class Real>
const Kernels<Real>& kernels_of(VectorSet vectors);
template <class Real>
const Kernels<Real>& best_kernels();

// c = factor·a·b + kept·c with a(i, p) = a[i·a_row + p·a_term] and b(p, j) = b[p·b_term + j·b_col]. If kept is 0, c is not read.
template <class Real>
struct Product {
  int64_t rows = 0, cols = 0, terms = 0;
  const Real* a = nullptr;
  int64_t a_row = 0, a_term = 1;
  const Real* b = nullptr;
  int64_t b_term = 0, b_col = 1;
  Real factor = 1, kept = 0;
  Real* c = nullptr;
  int64_t c_row = 0;
};

// Cores share rows and columns, never the terms of a sum: the bits of the result do not depend on the number of threads.
template <class Real>
void gemm(const Product<Real>& product, const Kernels<Real>& kernels = best_kernels<Real>(), int64_t threads = cores());

}  // namespace ws::cpu
