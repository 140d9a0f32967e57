// Our own matrix products.
#pragma once
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

// Tiles of a product. small_tile returns the largest one that still gives most multiprocessors work.
enum class SmallTile : uint8_t { T64, T32, T32x16, T16 };
SmallTile small_tile(int64_t m, int64_t n);

void small_gemm(Queue, const Product&);

// On Hopper, for 16 bits and rows of whole 16 bytes; a product without a transposed a.
void gemm_by_warpgroups(Queue, const Product&);
void weight_gradients_by_warpgroups(Queue, Precision, std::span<const WeightGradient>);

constexpr int kMaxWeightGradients = 48;  // per launch; more need several launches

// For learners: one thread per result, and the textbook 16 × 16 tiles in shared memory.
void naive_gemm(Queue, const Product&);
void tiled_gemm(Queue, const Product&);

}  // namespace ws::cuda
