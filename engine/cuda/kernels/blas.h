// Matrix products through cuBLASLt, with as much of the epilogue fused as cuBLASLt supports.
#pragma once
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

// Returns the epilogue that cuBLASLt should do according to our rules. Our own kernels do the rest.
Epilogue blas_epilogue(const Product&);
// Returns the epilogue that cuBLASLt can do on this machine. Call blas_prepare first.
Epilogue blas_epilogue_found(const Product&);
void blas_prepare(Blas&, const Product&);
void blas_forget();  // clears the choices made in this process, so that a test can choose again
void blas_product(Queue, Blas&, Scratch, const Product&);

}  // namespace ws::cuda
