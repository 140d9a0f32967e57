// Makes text from files safe to print on a terminal or open in a spreadsheet: either could execute some texts as
// commands.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "profiling/base/text.h"

namespace ws {

// Replaces control characters except line ends and tabs, marks of the writing direction, and bytes that are not UTF-8.
std::string printable(std::string_view text);
// Also replaces line ends and tabs, so that a name from a file cannot add rows to a table.
std::string one_line(std::string_view text);
// One row of a printed table, with its line end. Cells may hold any text.
template <class... Values>
std::string table_row(fmt::format_string<Values...> pattern, Values&&... values) {
  return one_line(formatted(pattern, std::forward<Values>(values)...)) + '\n';
}
std::string escape_xml(std::string_view text);  // for HTML and SVG
// Makes a text a cell of a CSV file: quoted if necessary, and never a formula.
std::string csv_cell(std::string_view text);
// One word of a shell's command line, in single quotes.
std::string shell_quoted(std::string_view word);
// The same for people to read: in quotes only if a shell would take it for something else.
std::string shell_word(std::string_view word);

}  // namespace ws
