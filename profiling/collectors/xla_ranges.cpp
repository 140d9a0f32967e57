#include "profiling/collectors/xla_ranges.h"

#include <algorithm>
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

// "transpose(jvp(Net))": no operation, but what JAX applied to the program's function.
bool is_applied(std::string_view part) {
  if (!part.ends_with(')')) return false;
  for (const std::string_view way : {"jvp(", "transpose(", "vmap(", "jit(", "pjit("})
    if (part.starts_with(way)) return true;
  return false;
}

void set_path(std::string_view path, bool with_op, XlaRange& range) {
  if (path.find("transpose(") != std::string_view::npos)
    range.phase = "backward";
  else if (path.find("jvp(") != std::string_view::npos)
    range.phase = "forward";
  auto parts = parts_of(path);
  if (with_op && !is_applied(parts.back())) {
    range.name = parts.back().substr(0, parts.back().find('['));
    parts.pop_back();
  }
  for (const std::string_view part : parts)
    if (const std::string_view name = program_name(part); !name.empty())
      range.scope += (range.scope.empty() ? "" : "/") + std::string(name);
}

struct HloLine {
  std::string path;  // its op_name
  bool product, result;
};

// One instruction a line: "ROOT add.3 = f32[8]{0} add(a, b), metadata={op_name=\"jit(f)/jvp(net)/add\"}".
std::vector<HloLine> hlo_lines(std::string_view text) {
  constexpr std::string_view kName = "op_name=\"";
  constexpr size_t kMostLines = 10'000;
  std::vector<HloLine> lines;
  while (!text.empty() && lines.size() < kMostLines) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t name = line.find(kName);
    if (name == std::string_view::npos) continue;
    std::string path;
    for (size_t i = name + kName.size(); i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\' && i + 1 < line.size()) ++i;
      path += line[i];
    }
    const std::string_view code = line.substr(0, name);
    const auto calls = [code](std::string_view op) { return code.find(op) != std::string_view::npos; };
    if (!path.empty()) lines.push_back({std::move(path), calls(" dot(") || calls(" custom-call(") || calls(" convolution("), calls("ROOT ")});
  }
  return lines;
}

}  // namespace

std::string xla_text_with_path(std::string_view text, std::string_view hlo, std::string_view called) {
  constexpr std::string_view kThunk = "Thunk:#";
  if (!text.starts_with(kThunk) || !text.ends_with('#')) return {};
  const std::string_view keys = text.substr(kThunk.size(), text.size() - kThunk.size() - 1);
  const std::string_view path = value_of(keys, "name=", ",hlo_op="), op = value_of(keys, "hlo_op=", "");
  if (op.empty() || (!path.empty() && !is_applied(parts_of(path).back()))) return {};
  std::vector<HloLine> lines = hlo_lines(called);
  for (HloLine& own : hlo_lines(hlo)) lines.push_back({std::move(own.path), false, false});
  const auto backward = [](const HloLine& line) { return line.path.find("transpose(") != std::string::npos; };
  if (std::ranges::any_of(lines, backward)) std::erase_if(lines, [&](const HloLine& line) { return !backward(line); });
  auto chosen = std::ranges::find_if(lines, &HloLine::product);
  if (chosen == lines.end()) chosen = std::ranges::find_if(lines, &HloLine::result);
  if (chosen == lines.end()) chosen = lines.begin();
  if (chosen == lines.end()) return {};
  return std::string(kThunk) + "name=" + chosen->path + ",hlo_op=" + std::string(op) + "#";
}

namespace {

std::optional<XlaRange> compiler_range(std::string_view text) {
  const size_t keys = text.find(":#");
  if (!text.starts_with("Xla") || keys == std::string_view::npos || !text.ends_with('#') || keys + 2 >= text.size()) return {};
  XlaRange range;
  range.name = text.substr(0, keys);
  text = text.substr(keys + 2, text.size() - keys - 3);
  for (const std::string_view key : {"name=", "module="})
    if (const std::string_view what = value_of(text, key, ""); !what.empty()) {
      range.name.append(" ").append(what);
      return range;
    }
  return range;
}

}  // namespace

std::optional<XlaRange> xla_range(std::string_view text) {
  constexpr std::string_view kModule = "XlaModule:#", kThunk = "Thunk:#";
  const bool module = text.starts_with(kModule);
  if (!module && !text.starts_with(kThunk)) return compiler_range(text);
  if (!text.ends_with('#')) return {};
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
