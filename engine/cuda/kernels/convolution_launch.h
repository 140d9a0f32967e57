// Convolutions by number type; convolution.cpp chooses. `workspace` holds the partial sums of a weight gradient.
#pragma once
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

void conv_fp32(Queue, const Convolution&);
void conv_tf32(Queue, const Convolution&);
void conv_bf16(Queue, const Convolution&);
void conv_fp16(Queue, const Convolution&);

void conv_weight_grad_fp32(Queue, Workspace, const Convolution&);
void conv_weight_grad_tf32(Queue, Workspace, const Convolution&);
void conv_weight_grad_bf16(Queue, Workspace, const Convolution&);
void conv_weight_grad_fp16(Queue, Workspace, const Convolution&);

// For 16 bits on Hopper. The layer must be wide enough, and its operands must move in parts of 16 bytes.
bool suits_warpgroups(const Convolution&);
void conv_by_warpgroups(Queue, Workspace, const Convolution&);
// 3 × 3 of such layers over pictures of whole tiles of 8 × 8, at least 128 channels in, not the weight gradient.
bool suits_tiles(const Convolution&);
void conv_by_tiles(Queue, const Convolution&);

}  // namespace ws::cuda
