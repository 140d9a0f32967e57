#include "profiling/base/version.h"

namespace ws {

const char* version() { return WARPSIGHT_VERSION; }

}  // namespace ws
