#include "profiling/base/version.h"

namespace ws {

const char* version() { return WARPSCOPE_VERSION; }

}  // namespace ws
