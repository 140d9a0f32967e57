// The source line that an op stands for. It is kept in the op's detail, as "at net.py:12 in Net.forward".
#pragma once
#include <string_view>

#include "profiling/annotate/annotate.h"

namespace ws::prof {

inline constexpr std::string_view kAtLine = "at ";

// "net.py:12 in Net.forward"; empty if the op has no line.
inline std::string_view line_of(const OpInfo& op) {
  const std::string_view detail = op.detail;
  if (!detail.starts_with(kAtLine)) return {};
  const std::string_view place = detail.substr(kAtLine.size());
  return place.find(':') == std::string_view::npos ? std::string_view{} : place;
}

}  // namespace ws::prof
