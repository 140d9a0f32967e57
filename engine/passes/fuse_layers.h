// Fusion across layers: rules that gather ops from all over the plan into one kernel for shapes where that pays.
#pragma once
#include "engine/plan/plan.h"

namespace ws {

// Each looks at the op at `at`, changes the plan when its pattern begins there, and says whether it did.
bool fuse_output_layer(Plan& plan, size_t at, std::string_view rule);  // product, loss, dz and the gradient before it
bool fuse_gradient_update(Plan& plan, size_t at,
                          std::string_view rule);  // every weight gradient with the optimizer: dW is never stored
bool fuse_line_update(Plan& plan, size_t at, std::string_view rule);  // the linear step moves its own two parameters

}  // namespace ws
