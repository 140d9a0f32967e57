#include "app/core/runs/spec_line.h"

#include <cctype>

#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr std::string_view kPrefix = "ws1:", kAround = " \t\r\n'\"";  // kAround: what may stand around it in a letter
constexpr size_t kMostBytes = 64 << 10;

// Letters of an address: a mail program or a shell in single quotes leaves these letters as they are.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("._,:+-/ ()").find(c) != std::string_view::npos)
      out += c;
    else
      out += formatted("%{:02X}", static_cast<unsigned>(byte));
  }
  return out;
}

int digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? digit(text[i + 1]) : -1, low = high >= 0 ? digit(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
    } else {
      out += static_cast<char>(high << 4 | low);
      i += 2;
    }
  }
  return out;
}

}  // namespace

std::string spec_line(const RunSpec& spec) {
  const RunSpec defaults;
  std::string line = std::string(kPrefix) + "name=" + escaped(spec.name);
  for (const Field& field : fields())
    if (const std::string value = field_text(spec, field.key); value != field_text(defaults, field.key))
      line += ";" + std::string(field.key) + "=" + escaped(value);
  return line;
}

bool is_spec_line(std::string_view text) { return trimmed(text, kAround).starts_with(kPrefix); }

RunSpec spec_of_line(std::string_view line) {
  line = trimmed(line, kAround);
  if (!line.starts_with(kPrefix)) throw SpecError("A line with settings begins with ws1: and this one does not.");
  if (line.size() > kMostBytes) throw SpecError("The line with settings is too long.");
  RunSpec spec;
  for (std::string_view rest = line.substr(kPrefix.size()); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rest = rest.substr(std::min(part.size() + 1, rest.size()));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) throw SpecError("The line with settings is cut off at \"" + one_line(part) + "\". Copy it again.");
    const std::string key(part.substr(0, equals)), value = unescaped(part.substr(equals + 1));
    if (key == "name")
      spec.name = value;
    else
      set_field(spec, key, value);
  }
  return spec;
}

}  // namespace ws::app
