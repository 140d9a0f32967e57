// The ways to compute a convolution; convolution_launch.cpp chooses. `workspace` holds the partial sums of a weight gradient.
#pragma once
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

void conv_exact(Queue, Workspace, const Convolution&);  // fp32 and tf32
void conv_half(Queue, Workspace, const Convolution&);   // 16 bits

// For 16 bits on Hopper. The layer must be wide enough, and its operands must move in parts of 16 bytes.
bool suits_warpgroups(const Convolution&);
void conv_by_warpgroups(Queue, Workspace, const Convolution&);
// 3 × 3 of such layers over pictures of whole tiles of 8 × 8, at least 128 channels in, not the weight gradient.
bool suits_tiles(const Convolution&);
void conv_by_tiles(Queue, const Convolution&);

}  // namespace ws::cuda
