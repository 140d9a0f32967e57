// Observes the ops that PyTorch runs through its own observers (at::RecordFunction), without a PyTorch header. It costs
// 0.2 µs per op, includes backward threads, and does not disturb the program's own profiler.
#pragma once
#include <string_view>

namespace ws::prof {

// Begins to find the layout of this PyTorch build. Afterwards the Python hook runs two multiplications with gradients
// and calls torch_observe(). Returns false if this PyTorch has no observers that are known.
bool torch_search(std::string_view version);
// `ops`: records each op as a range; otherwise only the modules of the backward pass. Returns false if nothing can be
// observed.
bool torch_observe(bool ops);
// Records only the modules of the backward pass, in place of torch_observe(false): observes autograd's engine itself, which
// costs 80 instructions per backward function and not 3,400. `nodes`: three backward functions, made one after the other just now.
// Returns false if this PyTorch's engine cannot be observed.
bool torch_follow(const void* const* nodes, std::string_view version);

}  // namespace ws::prof
