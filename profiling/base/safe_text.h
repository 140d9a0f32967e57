// Texts from files on their way to a terminal or a spreadsheet, which would take some of them for commands.
#pragma once
#include <string>
#include <string_view>

namespace ws {

// Without control characters but line ends and tabs, and without marks that turn the direction of writing around.
std::string printable(std::string_view text);
// A cell of text in a CSV file: quoted where it has to be, and never a formula.
std::string csv_cell(std::string_view text);

}  // namespace ws
