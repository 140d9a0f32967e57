#include "profiling/collectors/xla_ranges.h"

#include <vector>

namespace ws::prof {
namespace {

// The value of `key=`, up to the key that follows or the end. Values may contain commas.
std::string_view value_of(std::string_view text, std::string_view key, std::string_view next) {
  const size_t begin = text.find(key);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + key.size());
  return text.substr(0, next.empty() ? text.find(',') : text.rfind(next));
}

// Cuts at slashes that are not inside parentheses.
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size()) depth += (path[i] == '(' || path[i] == '[') - (path[i] == ')' || path[i] == ']');
    if (i < path.size() && (path[i] != '/' || depth > 0)) continue;
    parts.push_back(path.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

// "Net" for "transpose(jvp(Net))"; nothing for what JAX compiles: "jit(step)".
std::string_view program_name(std::string_view part) {
  while (part.ends_with(')')) {
    const size_t open = part.find('(');
    if (open == std::string_view::npos) return part;
    if (part.starts_with("jit(") || part.starts_with("pjit(")) return {};
    part = part.substr(open + 1, part.size() - open - 2);
  }
  return part;
}

void set_path(std::string_view path, bool with_op, XlaRange& range) {
  if (path.find("transpose(") != std::string_view::npos)
    range.phase = "backward";
  else if (path.find("jvp(") != std::string_view::npos)
    range.phase = "forward";
  auto parts = parts_of(path);
  if (with_op) {
    range.name = parts.back().substr(0, parts.back().find('['));
    parts.pop_back();
  }
  for (const std::string_view part : parts)
    if (const std::string_view name = program_name(part); !name.empty())
      range.scope += (range.scope.empty() ? "" : "/") + std::string(name);
}

}  // namespace

std::optional<XlaRange> xla_range(std::string_view text) {
  constexpr std::string_view kModule = "XlaModule:#", kThunk = "Thunk:#";
  const bool module = text.starts_with(kModule);
  if ((!module && !text.starts_with(kThunk)) || !text.ends_with('#')) return {};
  text = text.substr((module ? kModule : kThunk).size());
  text.remove_suffix(1);
  XlaRange range;
  if (module) {
    set_path(value_of(text, "prefix=", ",hlo_module="), false, range);
    range.name = value_of(text, "hlo_module=", "");
  } else {
    set_path(value_of(text, "name=", ",hlo_op="), true, range);
    if (const std::string_view op = value_of(text, "hlo_op=", ""); !op.empty())
      range.name += (range.name.empty() ? "" : " · ") + std::string(op);
  }
  return range.name.empty() ? std::nullopt : std::optional(range);
}

}  // namespace ws::prof
