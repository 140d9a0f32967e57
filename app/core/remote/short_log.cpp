#include "app/core/remote/short_log.h"

#include <algorithm>
#include <utility>

#include "profiling/base/text.h"

namespace ws::app {

size_t whole_letters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // the middle of a letter
    const size_t needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return needed > back ? text.size() - back : text.size();
  }
  return text.size();
}

std::string ShortLog::add(std::string_view printed, bool over) {
  std::string now(printed.substr(0, std::min(printed.size(), most_ - shown_)));
  shown_ += now.size();
  end_ += printed.substr(now.size());
  if (end_.size() > most_) {
    left_out_ += end_.size() - most_;
    end_.erase(0, end_.size() - most_);
  }
  if (!over || end_.empty()) return now;
  if (left_out_ > 0) now += "\n… " + bytes_text(static_cast<double>(left_out_)) + " " + where_ + " …\n";
  left_out_ = 0;
  return now + std::exchange(end_, {});
}

}  // namespace ws::app
