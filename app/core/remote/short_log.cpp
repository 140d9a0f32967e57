#include "app/core/remote/short_log.h"

#include <algorithm>
#include <utility>

#include "profiling/base/text.h"

namespace ws::app {

std::string ShortLog::add(std::string_view printed, bool over) {
  std::string now(printed.substr(0, std::min(printed.size(), most_ - shown_)));
  shown_ += now.size();
  end_ += printed.substr(now.size());
  if (end_.size() > most_) {
    left_out_ += end_.size() - most_;
    end_.erase(0, end_.size() - most_);
  }
  if (!over || end_.empty()) return now;
  if (left_out_ > 0) now += "\n… " + bytes_text(static_cast<double>(left_out_)) + " are only in the log there …\n";
  left_out_ = 0;
  return now + std::exchange(end_, {});
}

}  // namespace ws::app
