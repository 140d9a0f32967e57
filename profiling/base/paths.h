// Folders of the program: what is shipped beside it, and what it may forget.
#pragma once
#include <filesystem>
#include <string>

namespace ws {

std::filesystem::path program_file();  // the program that runs; empty where that is unknown
// The library that records other programs; empty: it is not installed beside `program`.
std::filesystem::path collector_library(const std::filesystem::path& program);
// Presets, experiments, pages of the laboratory, scripts: $WARPSCOPE_RESOURCES, else what is installed, else the source.
std::filesystem::path resources_folder();
// What is put on the path of recorded Python programs, and the package they may import.
std::filesystem::path python_folder();
// Of this program in the user's cache; empty where there is none.
std::filesystem::path cache_folder();
// For files that end with the program. Throws Failure where TMPDIR names none that is there.
std::filesystem::path temporary_folder();
// A text as the name of a file or folder: it cannot lead elsewhere, be hidden or be longer than 80 bytes.
std::string file_name_of(const std::string& text);

}  // namespace ws
