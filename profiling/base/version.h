// The version of Warpsight, defined in CMakeLists.txt.
#pragma once

namespace ws {

const char* version();

}  // namespace ws
