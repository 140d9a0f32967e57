// The version of Warpscope, as CMakeLists.txt states it.
#pragma once

namespace ws {

const char* version();

}  // namespace ws
