// Folders of the program: installed files beside it, caches and temporary files.
#pragma once
#include <filesystem>
#include <string>

namespace ws {

// Name of this program before version 0.2. Its run files, exports, settings and run folder are still read.
inline constexpr const char* kNameBefore = "warpscope";

std::filesystem::path program_file();  // path of the running program; empty if unknown
// Returns the library that records other programs, or an empty path if it is not installed beside `program`.
std::filesystem::path collector_library(const std::filesystem::path& program);
// Likewise the program that writes the run files of recorded programs.
std::filesystem::path run_writer(const std::filesystem::path& program);
// Folder of presets, experiments, laboratory pages and scripts: $WARPSIGHT_RESOURCES, else the installed folder, else
// the source.
std::filesystem::path resources_folder();
// Folder that recorded Python programs get on their path. It also holds the package that they may import.
std::filesystem::path python_folder();
// Folder of this program in the user's cache; empty if there is none.
std::filesystem::path cache_folder();
// Folder of the run library: $WARPSIGHT_RUNS, else in the user's data. The first call takes over the folder of versions
// that had another name.
std::filesystem::path runs_folder();
// Folder for files that are deleted when the program ends. Throws Failure if TMPDIR names a folder that does not exist.
std::filesystem::path temporary_folder();
// Makes a text a safe name of a file or folder: no path separators, not hidden, at most 80 bytes.
std::string file_name_of(const std::string& text);

}  // namespace ws
