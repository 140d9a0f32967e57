#include "profiling/analysis/source_lines.h"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ws::prof {

std::optional<SourcePlace> source_place(std::string_view place) {
  const size_t in = place.find(" in ", place.rfind(':') == std::string_view::npos ? 0 : place.rfind(':'));
  const std::string_view where = place.substr(0, in);
  const size_t colon = where.rfind(':');
  SourcePlace found;
  if (colon == std::string_view::npos || colon == 0) return {};
  const char* const end = where.data() + where.size();
  if (std::from_chars(where.data() + colon + 1, end, found.line).ptr != end || found.line < 1) return {};
  found.path = where.substr(0, colon);
  return found;
}

SourceFile source_of_text(std::string_view text) {
  SourceFile file;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

SourceFile read_source(const std::string& folder, const std::string& path, int64_t recorded_s) {
  constexpr int64_t kMostBytes = 8 << 20;
  const std::string whole = (std::filesystem::path(folder) / path).string();
  SourceFile file;
  struct stat about {};
  if (stat(whole.c_str(), &about) != 0) {
    file.problem = whole + " is not on this machine.";
    return file;
  }
  if (!S_ISREG(about.st_mode) || about.st_size > kMostBytes) {
    file.problem = whole + " is no source file.";
    return file;
  }
  std::ifstream in(whole);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  if (file.lines.empty()) file.problem = whole + " cannot be read.";
  file.changed = about.st_mtime > recorded_s;
  return file;
}

}  // namespace ws::prof
