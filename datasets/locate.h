// Where the data files lie: beside the sources, beside an installed program, or where WARPSCOPE_DATA points.
#pragma once
#include <string>
#include <vector>

namespace ws::data {

// The folders to look in, best first.
std::vector<std::string> data_roots();

// The first data_roots() entry that holds `relative`; throws a Failure that names every place tried.
std::string locate(const std::string& relative);

}  // namespace ws::data
