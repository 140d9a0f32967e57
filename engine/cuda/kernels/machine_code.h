// Which GPUs the build has code for: machine code, or PTX that the driver compiles first.
#pragma once
#include <string_view>

namespace ws::cuda {

// `architectures` as CMake has them, with commas: "80-real,86-real,90". Machine code runs on its own major version, from its
// own minor version on; code for "90a" only on 9.0. PTX ("90", "90-virtual") runs on its own version and on all newer ones.
bool has_machine_code(std::string_view architectures, int major, int minor);
bool has_ptx(std::string_view architectures, int major, int minor);
bool made_for(int major, int minor);  // machine code of this build; kernels.h declares it as well
bool build_has_ptx(int major, int minor);

}  // namespace ws::cuda
