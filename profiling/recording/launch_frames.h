// The native frames between the program's line and a launch, at level lines.
#pragma once
#include "profiling/trace/code_places.h"

namespace ws::prof {

// Call it on the thread that launches. Returns this op with the native frames of the thread behind its stack, or `op`
// itself where they cannot be followed. A stack that was seen before is recognized by its return addresses: 0.1 µs.
OpTag with_native_frames(OpTag op);

}  // namespace ws::prof
