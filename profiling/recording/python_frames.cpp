#include "profiling/recording/python_frames.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/generated_code.h"
#include "profiling/recording/layouts/interpreter.h"
#include "profiling/recording/layouts/known_layouts.h"
#include "profiling/recording/layouts/safe_copy.h"
#include "profiling/trace/code_places.h"

namespace ws::prof {
namespace {

constexpr size_t kFrameBytes = FrameLayout::kFrameBytes, kThreadBytes = FrameLayout::kThreadBytes;
static_assert(kThreadBytes <= SafeCopy::kMost);
constexpr int kMostDepth = 200, kMostThreads = 1000;

FrameLayout g_layout;
std::atomic<bool> g_known{false}, g_names{false};
const char* g_first_thread = nullptr;  // oldest thread state, the end of the list; new ones are added before it
std::vector<std::string> g_others;

bool is_code(const char* object) { return object && word_at(object, 8) == Interpreter::instance().code_type; }

std::optional<CodeAt> code_of(const char* frame) {
  const char* code = unmarked(word_at(frame, g_layout.code));
  if (!code) return {};
  if (!g_layout.whole_frames) {
    const long last = word_at(frame, g_layout.instruction) - code - g_layout.first_instruction;
    if (last < 0 || last > (1 << 28)) return {};
    return CodeAt{code, static_cast<int>(last)};
  }
  int number = 0;
  std::memcpy(&number, frame + g_layout.instruction, sizeof number);
  return CodeAt{code, std::max(0, number) * static_cast<int>(g_layout.first_instruction)};
}

const char* newest_frame(const char* state) {
  const char* frame = word_at(state, g_layout.thread_frame);
  return g_layout.through && frame ? word_at(frame, *g_layout.through) : frame;
}

// Names of code objects. We keep a reference to each known code, so its address stays unique.
struct KnownCode {
  bool own = false;
  bool hidden = false;     // ours, or PyTorch's around each module
  bool generated = false;  // by torch.compile
  std::string name, path;
};
struct CodeHash {
  size_t operator()(const CodeAt& at) const {
    return (reinterpret_cast<uintptr_t>(at.code) ^ (static_cast<uint64_t>(at.last) << 40)) * 0x9e3779b97f4a7c15u;
  }
};
struct Names {
  std::shared_mutex mutex;
  std::unordered_map<const char*, KnownCode> codes;
  std::unordered_map<CodeAt, CodeFrame, CodeHash> frames;
  std::unordered_map<CodeAt, OpTag, CodeHash> lines;
  std::unordered_map<uint64_t, OpTag> stacks;  // by hash_of_stack()
};
Names& names() {
  static Names* const kept = new Names;  // threads still use it while the process ends
  return *kept;
}

class InterpreterLock {
 public:
  InterpreterLock() : state_(Interpreter::instance().lock()) {}
  ~InterpreterLock() { Interpreter::instance().unlock(state_); }
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;

 private:
  int state_;
};

std::string text_attribute(const char* object, const char* name) {
  const Interpreter& python = Interpreter::instance();
  void* value = python.attribute(const_cast<char*>(object), name);
  const char* text = value ? python.as_text(value) : nullptr;
  std::string copy = text ? text : "";
  if (!text) python.clear();
  if (value) python.decrease(value);
  return copy;
}

// What a person has typed, also in a notebook.
bool is_typed(const std::string& path) { return path == "<stdin>" || path == "<console>" || path.starts_with("<ipython-input") || path.starts_with("<python-input"); }

// In a program made by PyInstaller, paths begin with their package.
bool is_our_package(const std::string& path) { return ("/" + path).ends_with("/warpsight/__init__.py"); }

bool is_own(const std::string& path) {
  if (is_typed(path)) return true;
  if (path.starts_with("<") || path.find("site-packages") != std::string::npos ||
      path.find("dist-packages") != std::string::npos || is_our_package(path))
    return false;
  std::error_code none;
  const std::string real = std::filesystem::weakly_canonical(path, none).string();
  for (const std::string& other : g_others)
    if (path.starts_with(other) || real.starts_with(other)) return false;
  return true;
}

std::string shown_path(const std::string& path) {
  std::error_code none;
  const std::string here = std::filesystem::current_path(none).string() + "/";
  return here.size() > 1 && path.starts_with(here) ? path.substr(here.size()) : path;
}

bool is_hidden(const std::string& name, const std::string& path) {
  return path.find("/warpsight_hook/") != std::string::npos || is_our_package(path) || path.starts_with("<shim") ||
         (name.ends_with("_call_impl") && path.ends_with("torch/nn/modules/module.py"));
}

// The caller holds the interpreter's lock, and the code is in a frame. Each name is asked for once.
const KnownCode& known_code(const char* code) {
  {
    const std::shared_lock lock(names().mutex);
    if (const auto at = names().codes.find(code); at != names().codes.end()) return at->second;
  }
  KnownCode known;
  known.name = text_attribute(code, "co_qualname");
  if (known.name.empty()) known.name = text_attribute(code, "co_name");
  const std::string path = text_attribute(code, "co_filename");
  known.generated = is_generated(known.name, path);
  known.own = !known.generated && is_own(path);
  known.hidden = is_hidden(known.name, path);
  known.path = shown_path(path);
  Interpreter::instance().increase(const_cast<char*>(code));
  const std::unique_lock lock(names().mutex);
  return names().codes.try_emplace(code, std::move(known)).first->second;
}

int line_at(const CodeAt& at) { return Interpreter::instance().line(const_cast<char*>(at.code), at.last); }

CodeFrame code_frame(const KnownCode& code, const CodeAt& at) { return {code.path, line_at(at), code.name}; }

// Returns the line if it is in the program's own code, or kNoOp.
OpTag learn_line(const CodeAt& at) {
  const InterpreterLock lock;
  if (!is_code(at.code)) return kNoOp;
  const KnownCode& code = known_code(at.code);
  const OpTag tag = code.own ? ProgramRanges::instance().line({{code_frame(code, at)}, 0}) : kNoOp;
  const std::unique_lock keep(names().mutex);
  return names().lines[at] = tag;
}

OpTag line_of(const CodeAt& at) {
  struct Slot {
    CodeAt at;
    OpTag line = kNoOp;
  };
  thread_local std::array<Slot, 256> slots;
  Slot& slot = slots[CodeHash{}(at) >> 56];
  if (slot.at == at) return slot.line;
  OpTag line = kNoOp;
  bool known = false;
  {
    const std::shared_lock lock(names().mutex);
    if (const auto found = names().lines.find(at); found != names().lines.end()) line = found->second, known = true;
  }
  if (!known && !g_names) return kNoOp;
  if (!known) line = learn_line(at);
  slot = {at, line};
  return line;
}

// The innermost line of the program's own code, without the stack around it.
OpTag nearest_line(const char* frame) {
  constexpr int kNear = 40;
  for (int depth = 0; frame && depth < kNear; ++depth) {
    const auto code = code_of(frame);
    if (code && is_code(code->code))
      if (const OpTag line = line_of(*code); line != kNoOp) return line;
    frame = word_at(frame, g_layout.previous);
  }
  return kNoOp;
}

// Equal for equal stacks: the code of each frame is known, so its address stays unique.
uint64_t hash_of_stack(const char* frame) {
  uint64_t hash = 0;
  for (int depth = 0; frame && depth < kMostDepth; ++depth) {
    uint64_t code = 0, at = 0;
    std::memcpy(&code, frame + g_layout.code, sizeof code);
    std::memcpy(&at, frame + g_layout.instruction, g_layout.whole_frames ? sizeof(int) : sizeof at);
    hash = (hash ^ at ^ (code << 32 | code >> 32)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    frame = word_at(frame, g_layout.previous);
  }
  return hash;
}

struct StackFrame {
  const KnownCode* code;
  CodeAt at;
};

// Without hidden frames, and recursion once.
std::vector<StackFrame> frames_from(const char* frame) {
  std::vector<StackFrame> frames;
  for (int depth = 0; frame && depth < kMostDepth; ++depth, frame = word_at(frame, g_layout.previous)) {
    const auto at = code_of(frame);
    if (!at || !is_code(at->code)) continue;
    const KnownCode& code = known_code(at->code);
    if (!code.hidden && (frames.empty() || frames.back().at != *at)) frames.push_back({&code, *at});
  }
  return frames;
}

// The nearest frames of a stack and its outermost ones.
template <class Take>
void each_shown(size_t begin, size_t end, const Take& take) {
  constexpr size_t kNearest = 32, kOutermost = 8;
  for (size_t i = begin; i < end; ++i)
    if (i < begin + kNearest || i + kOutermost >= end) take(i);
}

// The caller holds the interpreter's lock.
OpTag place_of_stack(const std::vector<StackFrame>& frames) {
  const auto own = static_cast<size_t>(std::ranges::find_if(frames, [](const StackFrame& f) { return f.code->own; }) - frames.begin());
  std::string ops;
  for (size_t i = 0; i < std::min(own, frames.size()) && ops.empty(); ++i)
    if (frames[i].code->generated) ops = generated_ops(frames[i].code->path, line_at(frames[i].at));
  ProgramRanges& ranges = ProgramRanges::instance();
  if (own == frames.size()) return ops.empty() ? kNoOp : ranges.generated(ops, {});
  CodeStack stack;
  const auto take = [&](size_t i) { stack.frames.push_back(code_frame(*frames[i].code, frames[i].at)); };
  each_shown(own + 1, frames.size(), take);
  std::ranges::reverse(stack.frames);
  stack.own = stack.frames.size();
  take(own);
  each_shown(0, own, [&](size_t i) { take(own - 1 - i); });
  return ops.empty() ? ranges.line(std::move(stack)) : ranges.generated(ops, std::move(stack));
}

OpTag learn_stack(const char* frame, uint64_t hash) {
  const InterpreterLock lock;
  const OpTag place = place_of_stack(frames_from(frame));
  const std::unique_lock keep(names().mutex);
  return names().stacks[hash] = place;
}

OpTag line_of_stack(const char* frame) {
  constexpr size_t kMostStacksKept = 8192;
  struct Slot {
    uint64_t hash = 0;
    OpTag line = kNoOp;
  };
  thread_local std::array<Slot, 1024> slots;
  const uint64_t hash = hash_of_stack(frame);
  Slot& slot = slots[hash >> 54];
  if (slot.hash == hash) return slot.line;
  OpTag line = kNoOp;
  bool known = false, full = false;
  {
    const std::shared_lock lock(names().mutex);
    full = names().stacks.size() >= kMostStacksKept;
    if (const auto found = names().stacks.find(hash); found != names().stacks.end()) line = found->second, known = true;
  }
  if (!known && !g_names) return kNoOp;
  if (!known) line = full ? nearest_line(frame) : learn_stack(frame, hash);
  slot = {hash, line};
  return line;
}

// Skips frames without code, which Python creates for itself. Returns the next thread's state.
const char* read_stack(const char* state, StackOfThread& stack) {
  SafeCopy copy;
  stack.frames.clear(), stack.thread = 0, stack.task = 0, stack.state = state;
  const char* const thread = copy.at(state, kThreadBytes);
  if (!thread) return nullptr;
  stack.thread = reinterpret_cast<uintptr_t>(word_at(thread, g_layout.thread_number));
  if (g_layout.task_number) stack.task = static_cast<int>(reinterpret_cast<uintptr_t>(word_at(thread, *g_layout.task_number)));
  const char* const next = word_at(thread, 0);
  const char* at = word_at(thread, g_layout.thread_frame);
  if (g_layout.through) {
    const char* const between = at ? copy.at(at, 24) : nullptr;
    at = between ? word_at(between, *g_layout.through) : nullptr;
  }
  for (int depth = 0; at && depth < kMostDepth; ++depth) {
    const char* const frame = copy.at(at, kFrameBytes);
    if (!frame) break;
    if (const auto code = code_of(frame)) stack.frames.push_back(*code);
    at = word_at(frame, g_layout.previous);
  }
  return next;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

bool learn_frames(const SaidFrame (&said)[3], unsigned long thread, int minor_version, const std::string& others) {
  const Interpreter& python = Interpreter::instance();
  if (!python.has_frames() || g_known) return g_known;
  const char* state = python.thread_state();
  if (!state || !why_not(Hook::PythonFrames, "3." + std::to_string(minor_version)).empty()) return false;
  const auto layout = learn_layout(said, state, thread, minor_version);
  if (!layout) return false;
  g_layout = *layout;
  g_first_thread = state;  // the list ends with the oldest state
  while (const char* older = word_at(g_first_thread, 8)) g_first_thread = older;
  g_others = lines_of(others);
  g_names = g_known = true;
  return true;
}

void stop_reading_names() { g_names = false; }

OpTag own_line_here() {
  if (!g_known) return kNoOp;
  const char* const state = Interpreter::instance().thread_state();
  const char* const frame = state ? newest_frame(state) : nullptr;
  return frame ? line_of_stack(frame) : kNoOp;
}

void read_all_stacks(std::vector<StackOfThread>& stacks) {
  size_t count = 0;
  const char* state = g_known ? g_first_thread : nullptr;
  while (state && count < kMostThreads) {
    if (stacks.size() <= count) stacks.emplace_back();
    state = read_stack(state, stacks[count++]);
  }
  stacks.resize(count);
}

bool stands_still(const StackOfThread& stack) {
  StackOfThread now;
  read_stack(stack.state, now);
  return now.thread == stack.thread && !now.frames.empty() && !stack.frames.empty() && now.frames[0] == stack.frames[0];
}

const CodeFrame* known_frame(const CodeAt& at) {
  const std::shared_lock lock(names().mutex);
  const auto found = names().frames.find(at);
  return found == names().frames.end() ? nullptr : &found->second;
}

void learn_names(std::vector<StackOfThread>& stacks) {
  if (!g_names) return;
  const InterpreterLock lock;  // frames cannot change now
  read_all_stacks(stacks);
  for (const StackOfThread& stack : stacks)
    for (const CodeAt& at : stack.frames) {
      if (known_frame(at)) continue;
      if (!is_code(at.code)) {  // a frame that Python created for itself
        const std::unique_lock keep(names().mutex);
        names().frames.try_emplace(at);
        continue;
      }
      const KnownCode& code = known_code(at.code);
      CodeFrame frame = code.hidden ? CodeFrame() : code_frame(code, at);
      const std::unique_lock keep(names().mutex);
      names().frames.try_emplace(at, std::move(frame));
    }
}

}  // namespace ws::prof
