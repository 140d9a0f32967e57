#include "profiling/recording/loader_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "profiling/recording/host_notes.h"

namespace ws::prof {
namespace {

constexpr size_t kMostFiles = 1000, kMostAtOnce = size_t{1} << 20;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

void take_line(std::string_view line, HostNotes& notes, const std::function<bool(int64_t)>& unheard) {
  std::array<std::string_view, 4> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t cut = i + 1 < parts.size() ? std::min(line.find('\t'), line.size()) : line.size();
    parts[i] = line.substr(0, cut);
    line.remove_prefix(std::min(cut + 1, line.size()));
  }
  const auto worker = whole_number(parts[0]), begin = whole_number(parts[1]), end = whole_number(parts[2]);
  if (!worker || !begin || !end || *end < *begin || unheard(*begin)) return;
  const std::string_view what = parts[3].empty() ? "makes a batch" : parts[3];
  notes.sample(kLoaderTrack + std::to_string(*worker), notes.name(what), *begin, *end);
}

}  // namespace

void LoaderNotes::take_lines(std::string& rest, HostNotes& notes, const std::function<bool(int64_t)>& unheard) const {
  size_t begin = 0;
  for (size_t end = rest.find('\n'); end != std::string::npos; begin = end + 1, end = rest.find('\n', begin))
    take_line(std::string_view(rest).substr(begin, end - begin), notes, unheard);
  rest.erase(0, begin);
  if (rest.size() > kMostAtOnce) rest.clear();  // no worker writes such a long line
}

void LoaderNotes::take(HostNotes& notes, const std::function<bool(int64_t)>& unheard) {
  if (folder_.empty()) return;
  std::error_code none;
  const std::string own = "loader-" + std::to_string(getpid()) + "-";  // other ranks have workers too
  for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(own) || (files_.size() >= kMostFiles && !files_.contains(path)))
      continue;
    File& file = files_[path];
    const int handle = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (handle < 0) continue;
    std::string bytes(kMostAtOnce, '\0');
    const ssize_t got = pread(handle, bytes.data(), bytes.size(), file.read);
    close(handle);
    if (got <= 0) continue;
    file.read += got;
    file.rest.append(bytes, 0, static_cast<size_t>(got));
    take_lines(file.rest, notes, unheard);
  }
}

}  // namespace ws::prof
