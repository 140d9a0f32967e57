#include "profiling/base/safe_text.h"

#include <algorithm>

namespace ws {
namespace {

constexpr std::string_view kInstead = "\xEF\xBF\xBD";  // U+FFFD

// Returns how many bytes at the front form a control character. 0: the text begins with a normal character.
size_t command_at(std::string_view rest) {
  const auto byte = [rest](size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0; };
  if (byte(0) < 0x20) return byte(0) == '\n' || byte(0) == '\t' ? 0 : 1;
  if (byte(0) == 0x7F) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) return 2;  // the C1 control characters
  // Separators of lines and paragraphs, and marks of the writing direction.
  const bool turns = byte(0) == 0xE2 && ((byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||
                                         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  return turns ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = command_at(text);
    shown += bytes > 0 ? kInstead : text.substr(0, 1);
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return shown;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string csv_cell(std::string_view text) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  if (!formula && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = formula ? "\"'" : "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

}  // namespace ws
