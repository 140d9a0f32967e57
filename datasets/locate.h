// Finds the data files: in the folder WARPSIGHT_DATA, beside an installed program, or beside the sources.
#pragma once
#include <string>
#include <vector>

namespace ws::data {

// The folders to search, in order of preference.
std::vector<std::string> data_roots();

// Returns the first data_roots() entry that holds `relative`. Throws a Failure that names every folder tried.
std::string locate(const std::string& relative);

}  // namespace ws::data
