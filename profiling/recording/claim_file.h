// The run file of each process of a recorded program. This runs in the program, which has no SQLite of ours.
#pragma once
#include <string>
#include <string_view>

namespace ws::prof {

inline constexpr std::string_view kRunEnding = ".wsrun";

// Another process of the program writes name.1234.wsrun instead of name.wsrun. Returns "name", with its folder.
std::string stem_of(const std::string& path);

// Creates an empty file for this process and returns its name: `wanted` for the first process, name.PROCESS.wsrun for
// other processes. Returns "" if all these names are taken. Throws Failure if the file cannot be created.
std::string claim_file(const std::string& wanted);

std::string rank_text();  // "rank 1 of 2"; empty: no launcher started this process

}  // namespace ws::prof
