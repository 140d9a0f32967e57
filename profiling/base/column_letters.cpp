#include "profiling/base/column_letters.h"

namespace ws {

std::string column_letters(size_t number) {
  std::string text;
  for (size_t rest = number + 1; rest > 0; rest = (rest - 1) / 26)
    text.insert(text.begin(), static_cast<char>('A' + (rest - 1) % 26));
  return text;
}

}  // namespace ws
