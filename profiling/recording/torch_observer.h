// Hears the ops that PyTorch runs through its own observers (at::RecordFunction), which need no header of it: 0.2 µs an op,
// backward threads included, and the program's own profiler works beside it.
#pragma once

namespace ws::prof {

// Begins to look how this PyTorch is built. The program's Python then runs two multiplications that need a gradient, and
// calls torch_observe(). False: this PyTorch has no such observers.
bool torch_search();
// Each op as a range, or only which module's backward pass runs. False: nothing is heard.
bool torch_observe(bool ops);

}  // namespace ws::prof
