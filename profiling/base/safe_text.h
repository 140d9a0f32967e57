// Makes text from files safe to print on a terminal or open in a spreadsheet: either could execute some texts as
// commands.
#pragma once
#include <string>
#include <string_view>

namespace ws {

// Replaces control characters other than line ends and tabs, and marks that reverse the writing direction.
std::string printable(std::string_view text);
// Makes a text a cell of a CSV file: quoted if necessary, and never a formula.
std::string csv_cell(std::string_view text);

}  // namespace ws
