// Observes PyTorch's allocators: each block that they hand out and take back.
#pragma once
#include <string_view>


namespace ws::prof {

// Returns false if this PyTorch reports its blocks in no way that is known here. Call it once, after torch was
// imported.
bool torch_watch_memory(std::string_view version);

}  // namespace ws::prof
