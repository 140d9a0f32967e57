// How fast this GPU reads memory when it does nothing else: what a pass over data is held against.
#pragma once
#include <cstdint>

namespace ws::test {

// Microseconds of one pass over `bytes` that were just read before: from the cache as far as they fit into it. The best
// of several shapes of a kernel that only reads.
double microseconds_to_read(int64_t bytes);

}  // namespace ws::test
