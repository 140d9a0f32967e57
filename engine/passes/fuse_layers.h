// Fusion across layers: each rule gathers ops from the whole plan into one kernel, for shapes where that pays off.
#pragma once
#include "engine/plan/plan.h"

namespace ws {

// Each rule changes the plan if its pattern begins at the op `at`. Returns true if it changed the plan.
bool fuse_output_layer(Plan& plan, size_t at, std::string_view rule);  // product, loss, dz and the gradient before it
bool fuse_gradient_update(Plan& plan, size_t at,
                          std::string_view rule);  // all weight gradients with the optimizer: dW is never stored
bool fuse_weight_gradients(Plan& plan, size_t at, std::string_view rule);  // small ones: one launch fills the GPU
bool fuse_bias_gradient(Plan& plan, size_t at, std::string_view rule);  // the op that makes a long dz sums its columns
bool fuse_norm_pool(Plan& plan, size_t at, std::string_view rule);  // with the gradients: what is between is not stored
bool fuse_line_update(Plan& plan, size_t at, std::string_view rule);  // the linear step updates its own two parameters

}  // namespace ws
