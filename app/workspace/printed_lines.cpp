#include "app/workspace/printed_lines.h"

#include <utility>

namespace ws::app {
namespace {

constexpr size_t kLongestLine = 64u << 10;

// Without the codes that set colours or move the cursor of a terminal.
std::string without_codes(std::string_view line) {
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      if (static_cast<unsigned char>(line[i]) >= 0x20 || line[i] == '\t') plain += line[i];
      continue;
    }
    if (i + 1 >= line.size() || line[++i] != '[') continue;
    while (++i < line.size() && (line[i] < '@' || line[i] > '~')) {
    }
  }
  return plain;
}

// What a terminal would show of a line that returns to its begin.
std::string_view last_state(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t begin = line.rfind('\r');
  return begin == line.npos ? line : line.substr(begin + 1);
}

}  // namespace

void PrintedLines::keep(std::string_view line, QStringList& lines) {
  const std::string plain = without_codes(last_state(line));
  const QString text = QString::fromUtf8(plain.data(), static_cast<qsizetype>(plain.size()));
  if (text.trimmed().isEmpty()) return;
  last_ = text.trimmed();
  lines << text;
}

QStringList PrintedLines::add(std::string_view printed) {
  QStringList lines;
  rest_ += printed;
  size_t begin = 0;
  for (size_t end = rest_.find('\n'); end != rest_.npos; begin = end + 1, end = rest_.find('\n', begin))
    keep(std::string_view(rest_).substr(begin, end - begin), lines);
  rest_.erase(0, begin);
  if (rest_.size() > kLongestLine) rest_ = last_state(rest_);
  if (rest_.size() > kLongestLine) lines << end();
  return lines;
}

void ShownOutput::add(std::string_view printed, bool over, std::vector<RunMessage>& messages) {
  QStringList lines = lines_.add(log_.add(printed, over));
  if (over) lines += lines_.end();
  for (const QString& line : lines) messages.push_back({line.toStdString()});
}

QStringList PrintedLines::end() {
  QStringList lines;
  keep(std::exchange(rest_, {}), lines);
  return lines;
}

}  // namespace ws::app
