// The version of Warpscope, defined in CMakeLists.txt.
#pragma once

namespace ws {

const char* version();

}  // namespace ws
