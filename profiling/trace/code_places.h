// The source line that an op stands for, and the stack around it. Both are kept in the op's detail, with the frames that
// the line calls and its callers: "at net.py:12 in Net.forward > lib.py:7 in act < train.py:40 in step < train.py:60 in main".
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "profiling/annotate/annotate.h"

namespace ws::prof {

inline constexpr std::string_view kAtLine = "at ", kCalls = " > ", kCalledBy = " < ";
inline constexpr size_t kMostStackFrames = 1000;  // the innermost ones; a file may claim any number

// The line with its stack; empty if the op has no line.
inline std::string_view line_with_stack(const OpInfo& op) {
  const std::string_view detail = op.detail;
  if (!detail.starts_with(kAtLine)) return {};
  const std::string_view place = detail.substr(kAtLine.size());
  return place.find(':') == std::string_view::npos ? std::string_view{} : place;
}

// "net.py:12 in Net.forward"; empty if the op has no line.
inline std::string_view line_of(const OpInfo& op) {
  const std::string_view whole = line_with_stack(op);
  return whole.substr(0, std::min(whole.find(kCalls), whole.find(kCalledBy)));
}

// Where the next frame begins, or the end of the text. One pass, whichever separator comes.
inline size_t next_frame(std::string_view rest, bool calls) {
  for (size_t at = rest.find(' '); at != std::string_view::npos; at = rest.find(' ', at + 1)) {
    const std::string_view between = rest.substr(at, kCalledBy.size());
    if (between == kCalledBy || (calls && between == kCalls)) return at;
  }
  return rest.size();
}

// Outermost frame first, each as line_of() has it; empty if the op has no line.
inline std::vector<std::string_view> stack_of(const OpInfo& op) {
  std::string_view rest = line_with_stack(op);
  std::vector<std::string_view> inner, callers;
  bool calls = true;
  while (!rest.empty() && inner.size() + callers.size() < kMostStackFrames) {
    const size_t next = next_frame(rest, calls);
    (calls ? inner : callers).push_back(rest.substr(0, next));
    calls = calls && rest.substr(next).starts_with(kCalls);
    rest.remove_prefix(std::min(next + kCalls.size(), rest.size()));
  }
  std::ranges::reverse(callers);
  callers.insert(callers.end(), inner.begin(), inner.end());
  return callers;
}

}  // namespace ws::prof
