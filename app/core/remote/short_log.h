// What a program prints in a day, short enough to show: the beginning, and the end once it is over.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ws::app {

// Returns how many bytes of a text that still arrives are whole UTF-8 letters: the last letter may be cut.
size_t whole_letters(std::string_view text);

class ShortLog {
 public:
  // `most`: bytes of the beginning, and of the end; `where`: "6.8 KiB " + where is said of the rest.
  explicit ShortLog(size_t most = 4u << 20, std::string where = "are only in the log there")
      : most_(most), where_(std::move(where)) {}
  // Returns what to show now.
  std::string add(std::string_view printed, bool over);

 private:
  size_t most_, shown_ = 0;
  uint64_t left_out_ = 0;
  std::string where_, end_;
};

}  // namespace ws::app
