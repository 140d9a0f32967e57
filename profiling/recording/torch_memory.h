// Observes PyTorch's allocators: each block that they hand out and take back.
#pragma once

namespace ws::prof {

// Returns false if this PyTorch reports its blocks in no way that is known here. Call it once, after torch was
// imported.
bool torch_watch_memory();

}  // namespace ws::prof
