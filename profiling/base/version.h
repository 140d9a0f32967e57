// The version of Warpsight, defined in CMakeLists.txt.
#pragma once

namespace ws {

const char* version();

// In each JSON object that the command line prints. resources/docs/schema/ describes them: a new version of the program
// only adds keys, and this number grows if the meaning of one changes.
inline constexpr int kJsonVersion = 1;

}  // namespace ws
