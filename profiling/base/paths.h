// What is shipped beside the programs: presets, experiments, pages of the laboratory, scripts.
#pragma once
#include <filesystem>

namespace ws {

// As WARPSCOPE_RESOURCES says, else of what is installed, else of the source.
std::filesystem::path resources_folder();

}  // namespace ws
