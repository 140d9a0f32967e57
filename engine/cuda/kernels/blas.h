// Matrix products through cuBLASLt, with as much of the epilogue inside as it offers.
#pragma once
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

// What cuBLASLt does itself by rule; own kernels do the rest.
Epilogue blas_epilogue(const Product&);
// The same, after asking the library on this machine (once blas_prepare has run).
Epilogue blas_epilogue_found(const Product&);
void blas_prepare(Blas&, const Product&);
void blas_forget();  // what was chosen so far in this process: a test asks anew
void blas_product(Queue, Blas&, Scratch, const Product&);

}  // namespace ws::cuda
