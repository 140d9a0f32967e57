// Numbers things with letters, as the columns of a spreadsheet: A … Z, AA, AB …
#pragma once
#include <cstddef>
#include <string>

namespace ws {

std::string column_letters(size_t number);  // "A" for 0, "Z" for 25, "AA" for 26

}  // namespace ws
