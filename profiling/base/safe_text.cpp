#include "profiling/base/safe_text.h"

#include <algorithm>
#include <cstdint>

namespace ws {
namespace {

constexpr std::string_view kInstead = "\xEF\xBF\xBD";  // U+FFFD

// Characters that command a terminal or change the direction of writing, and separators of lines and paragraphs.
bool is_command(uint32_t letter) {
  if (letter < 0x20) return letter != '\n' && letter != '\t';
  return (letter >= 0x7F && letter < 0xA0) || letter == 0x061C || letter == 0x200E || letter == 0x200F ||
         (letter >= 0x2028 && letter <= 0x202E) || (letter >= 0x2066 && letter <= 0x2069);
}

struct Letter {
  uint32_t code;
  size_t bytes;  // 0: the text does not begin with a valid UTF-8 sequence
};

// Overlong sequences are not valid: some terminals read a control character from them.
Letter letter_at(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {0, 0};
  uint32_t code = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto more = static_cast<unsigned char>(text[i]);
    if ((more & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (more & 0x3F);
  }
  return code < kSmallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? Letter{0, 0} : Letter{code, bytes};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = letter_at(text);
    const bool shows = letter.bytes > 0 && !is_command(letter.code);
    const size_t bytes = std::max<size_t>(letter.bytes, 1);
    shown += shows ? text.substr(0, bytes) : kInstead;
    text.remove_prefix(bytes);
  }
  return shown;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n')
      out += c;
  }
  return out;
}

std::string csv_cell(std::string_view text) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  if (!formula && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = formula ? "\"'" : "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

std::string shell_quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string_view("'\\''") : std::string_view(&c, 1);
  return text + "'";
}

std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](const char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_-./:@%+=,").find(c) != std::string_view::npos;
  });
  return plain ? std::string(word) : shell_quoted(word);
}

}  // namespace ws
