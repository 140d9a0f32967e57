#include "profiling/trace/code_places.h"

#include <algorithm>
#include <charconv>
#include <ranges>

namespace ws::prof {

std::string place_text(const CodeFrame& frame) {
  const std::string where = frame.line > 0 ? frame.path + ":" + std::to_string(frame.line) : frame.path;
  return frame.function.empty() ? where : where + " in " + frame.function;
}

std::string frame_text(const CodeFrame& frame) {
  const std::string where = frame.line > 0 ? frame.path + ":" + std::to_string(frame.line) : frame.path;
  return frame.function.empty() ? where : where.empty() ? frame.function : frame.function + " (" + where + ")";
}

std::string line_of(const OpInfo& op) {
  return op.stack && op.stack->own < op.stack->frames.size() ? place_text(op.stack->frames[op.stack->own]) : std::string();
}

const std::vector<CodeFrame>& stack_of(const OpInfo& op) {
  static const std::vector<CodeFrame> none;
  return op.stack ? op.stack->frames : none;
}

bool same_stack(const OpInfo& a, const OpInfo& b) { return a.stack == b.stack || (a.stack && b.stack && *a.stack == *b.stack); }

uint64_t stack_hash(const CodeStack& stack) {
  uint64_t hash = mixed(stack.own, stack.frames.size());
  for (const CodeFrame& frame : stack.frames)
    hash = mixed(mixed(mixed(hash, static_cast<uint64_t>(frame.line)), frame.path), frame.function);
  return hash;
}

CodeFrame frame_from(std::string_view place) {
  const size_t in = place.rfind(" in ");
  CodeFrame frame;
  if (in != std::string_view::npos) frame.function = place.substr(in + 4);
  const std::string_view where = place.substr(0, in);
  const size_t colon = where.rfind(':');
  const std::string_view digits = colon == std::string_view::npos ? std::string_view{} : where.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), frame.line);
  const bool line = !digits.empty() && read.ec == std::errc() && read.ptr == digits.data() + digits.size() && frame.line > 0;
  frame.path = line ? where.substr(0, colon) : where;
  if (!line) frame.line = 0;
  return frame;
}

CodeFrame frame_from_text(std::string_view text) {
  if (!text.ends_with(')')) return {"", 0, std::string(text)};
  for (size_t open = text.find(" ("); open != std::string_view::npos; open = text.find(" (", open + 1)) {
    CodeFrame frame = frame_from(text.substr(open + 2, text.size() - open - 3));
    const bool last = text.find(" (", open + 1) == std::string_view::npos;
    if (frame.line == 0 && !last) continue;  // a function of a library: its name may have parentheses
    frame.function = text.substr(0, open);
    return frame;
  }
  return {"", 0, std::string(text)};
}

namespace {

constexpr std::string_view kCalls = " > ", kCalledBy = " < ";

// Where the next frame begins, or the end of the text. One pass for both separators.
size_t next_frame(std::string_view rest, bool calls) {
  for (size_t at = rest.find(' '); at != std::string_view::npos; at = rest.find(' ', at + 1)) {
    const std::string_view between = rest.substr(at, kCalledBy.size());
    if (between == kCalledBy || (calls && between == kCalls)) return at;
  }
  return rest.size();
}

}  // namespace

std::string stack_text(const CodeStack& stack) {
  constexpr size_t kLongest = 1 << 16;
  std::string text;
  for (const CodeFrame& frame : stack.frames | std::views::reverse) {
    text.append(text.empty() ? "" : kCalledBy).append(frame_text(frame));
    if (text.size() > kLongest) return text.substr(0, kLongest);
  }
  return text;
}

std::vector<CodeFrame> sampled_frames(const Trace& trace, NameId name) {
  if (const CodeStack* stack = trace.stack(name)) return stack->frames;
  std::vector<CodeFrame> frames;
  std::string_view text = trace.name(name);
  while (!text.empty() && frames.size() < kMostStackFrames) {
    const size_t cut = std::min(text.find(kCalledBy), text.size());
    frames.push_back(frame_from_text(text.substr(0, cut)));
    text.remove_prefix(std::min(cut + kCalledBy.size(), text.size()));
  }
  std::ranges::reverse(frames);
  return frames;
}

std::shared_ptr<const CodeStack> stack_from_text(std::string_view text) {
  std::vector<CodeFrame> inner, callers;
  bool calls = true;
  while (!text.empty() && inner.size() + callers.size() < kMostStackFrames) {
    const size_t next = next_frame(text, calls);
    (calls ? inner : callers).push_back(frame_from(text.substr(0, next)));
    calls = calls && text.substr(next).starts_with(kCalls);
    text.remove_prefix(std::min(next + kCalls.size(), text.size()));
  }
  if (inner.empty()) return nullptr;
  auto stack = std::make_shared<CodeStack>();
  stack->own = callers.size();
  std::ranges::reverse(callers);
  stack->frames = std::move(callers);
  stack->frames.insert(stack->frames.end(), inner.begin(), inner.end());
  return stack;
}

}  // namespace ws::prof
