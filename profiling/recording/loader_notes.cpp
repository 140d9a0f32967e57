#include "profiling/recording/loader_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "profiling/recording/host_notes.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

constexpr size_t kMostFiles = 1000, kMostAtOnce = size_t{1} << 20;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

struct Line {
  int64_t worker, begin, end;
  std::string_view what;
};

std::optional<Line> line_of(std::string_view text) {
  std::array<std::string_view, 4> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t cut = i + 1 < parts.size() ? std::min(text.find('\t'), text.size()) : text.size();
    parts[i] = text.substr(0, cut);
    text.remove_prefix(std::min(cut + 1, text.size()));
  }
  const auto worker = whole_number(parts[0]), begin = whole_number(parts[1]), end = whole_number(parts[2]);
  if (!worker || !begin || !end || *end < *begin) return std::nullopt;
  return Line{*worker, *begin, *end, parts[3].empty() ? "makes a batch" : parts[3]};
}

}  // namespace

// A capture range that began before a batch may be reported after it: lines from `until` on wait.
void LoaderNotes::take_lines(std::string& rest, HostNotes& notes, int64_t until, const IsLeftOut& left_out) const {
  size_t begin = 0;
  for (size_t end = rest.find('\n'); end != std::string::npos; begin = end + 1, end = rest.find('\n', begin)) {
    const auto line = line_of(std::string_view(rest).substr(begin, end - begin));
    if (line && line->begin >= until) break;
    if (line && !left_out(line->begin))
      notes.sample(std::string(kLoaderTrack) + std::to_string(line->worker), notes.name(line->what), line->begin, line->end);
  }
  rest.erase(0, begin);
  if (rest.size() > kMostAtOnce) rest.clear();  // no worker writes so much at once
}

void LoaderNotes::take(HostNotes& notes, int64_t until, const IsLeftOut& left_out) {
  if (folder_.empty()) return;
  std::error_code none;
  const std::string own = "loader-" + std::to_string(process_) + "-";  // other ranks have workers too
  for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(own) || (files_.size() >= kMostFiles && !files_.contains(path)))
      continue;
    File& file = files_[path];
    if (const int handle = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); handle >= 0) {
      std::string bytes(kMostAtOnce, '\0');
      const ssize_t got = pread(handle, bytes.data(), bytes.size(), file.read);
      close(handle);
      file.read += std::max<ssize_t>(got, 0);
      file.rest.append(bytes, 0, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    }
    take_lines(file.rest, notes, until, left_out);
  }
}

}  // namespace ws::prof
