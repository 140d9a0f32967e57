#include "profiling/recording/launch_frames.h"

#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/native_code.h"
#include "profiling/recording/layouts/safe_copy.h"

namespace ws::prof {
namespace {

constexpr size_t kMostNativeFrames = 32, kMostVariants = 32, kMostNativeTags = 8192;

struct Bounds {
  uint64_t begin = 0, end = 0;
};

Bounds bounds_of_thread() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  const bool known = pthread_attr_getstack(&attributes, &begin, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  const auto from = reinterpret_cast<uint64_t>(begin);
  return known ? Bounds{from, from + bytes} : Bounds{};
}

// Any word of the own stack, also between the variables that a sanitizer watches.
[[gnu::no_sanitize("address")]] uint64_t word_at(uint64_t address) {
  using Word [[gnu::aligned(1), gnu::may_alias]] = uint64_t;
  return *reinterpret_cast<const volatile Word*>(address);
}

// A stack from an op's launch: its return addresses, each with its distance from our own frame.
struct Variant {
  std::vector<std::pair<uint64_t, uint64_t>> words;
  OpTag op;
  bool is_here(uint64_t frame, uint64_t end) const {
    return std::ranges::all_of(words, [=](const auto& word) {
      return word.first + sizeof(uint64_t) <= end - frame && word_at(frame + word.first) == word.second;
    });
  }
};

struct Known {
  std::shared_mutex mutex;
  std::unordered_map<OpTag, std::vector<Variant>> variants;
  size_t tags = 0;
};
Known& known() {
  static auto* const all = new Known;  // never destroyed: threads may launch until the process ends
  return *all;
}

bool is_driver(const std::string& file) {
  for (const char* name : {"libwarpsight_inject", "libcupti", "libcuda.so", "libcudart"})
    if (file.starts_with(name)) return true;
  return false;
}

const std::string& own_file() {
  static const auto* const name = new std::string([] {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string whole(path, static_cast<size_t>(std::max<ssize_t>(length, 0)));
    return whole.substr(whole.rfind('/') + 1);
  }());
  return *name;
}

// Outermost first, without frames that have no name.
std::vector<CodeFrame> named(const std::vector<NativeCode::Frame>& frames) {
  std::vector<CodeFrame> named;
  for (const NativeCode::Frame& frame : frames)
    if (CodeFrame known = NativeCode::instance().frame(frame.code); !known.function.empty())
      if (named.size() < kMostNativeFrames) named.push_back(std::move(known));
  std::ranges::reverse(named);
  return named;
}

// False for CUDA's runtime, which may be linked into the program's own file.
bool is_own_function(const CodeFrame& frame) {
  for (const char* begin : {"cuda", "__cuda", "libcudart_static", "__device_stub"})
    if (frame.function.starts_with(begin)) return false;
  return frame.path == own_file();
}

// A program without Python: the op is the innermost function of the program's own file.
void stand_for_own_function(OpInfo& op, CodeStack& stack) {
  const auto own = std::ranges::find_if(stack.frames.rbegin(), stack.frames.rend(), is_own_function);
  stack.own = own == stack.frames.rend() ? stack.frames.size() : static_cast<size_t>(stack.frames.rend() - own) - 1;
  if (op.name.empty()) op.name = (own == stack.frames.rend() ? stack.frames.back() : *own).function;
}

OpTag op_with(OpTag op, std::vector<CodeFrame> native) {
  if (native.empty()) return op;
  OpInfo info = op_info(op);
  CodeStack stack = info.stack ? *info.stack : CodeStack();
  const bool bare = stack.frames.empty();
  stack.frames.insert(stack.frames.end(), std::make_move_iterator(native.begin()), std::make_move_iterator(native.end()));
  if (bare) stand_for_own_function(info, stack);
  info.stack = std::make_shared<CodeStack>(std::move(stack));
  const OpTag made = ProgramRanges::instance().place(std::move(info));
  return made == kNoOp ? op : made;
}

#if defined(__x86_64__)
[[gnu::noinline]] std::vector<NativeCode::Frame> frames_here(uint64_t end) {
  ucontext_t context;
  if (getcontext(&context) != 0) return {};
  NativeCode::Registers registers;
  copy_registers(context, registers);
  const uint64_t begin = registers[kStackRegister];
  return NativeCode::instance().follow(registers, [=](uint64_t address) {
    return address >= begin && address + sizeof(uint64_t) <= end ? word_at(address) : 0;
  });
}

// True if code returns to this address from a call. The word may be an old one of a library that is gone.
bool follows_a_call(uint64_t address) {
  constexpr size_t kLongestCall = 7;  // bytes
  std::array<uint8_t, kLongestCall> code;
  if (!read_safely(reinterpret_cast<const char*>(address) - kLongestCall, code.data(), kLongestCall)) return false;
  const auto before = [&](size_t bytes) { return code[kLongestCall - bytes]; };
  if (before(5) == 0xe8) return true;
  for (const size_t bytes : {2, 3, 4, 6, 7})
    if (before(bytes) == 0xff && (before(bytes - 1) & 0x38) == 0x10) return true;
  return false;
}

// The driver's files may not describe their frames. The program's frames are then the first on the stack that can be
// followed: from an address behind a call, outside the driver, up to the interpreter or through several functions.
std::vector<NativeCode::Frame> frames_behind_driver(uint64_t from, uint64_t end) {
  constexpr uint64_t kSearched = 32'768;
  constexpr size_t kFewest = 3;
  NativeCode& code = NativeCode::instance();
  for (uint64_t place = (from + 7) & ~uint64_t{7}; place + sizeof(uint64_t) <= std::min(end, from + kSearched); place += 8) {
    const uint64_t address = word_at(place);
    const std::string file = address > 0xffff ? code.file(address - 1) : std::string();
    if (file.empty() || is_driver(file) || !follows_a_call(address)) continue;
    NativeCode::Registers registers{};
    registers[kStackRegister] = place + sizeof(uint64_t), registers[kReturnRegister] = address - 1;
    std::vector<NativeCode::Frame> frames = code.follow(registers, [=](uint64_t at) {
      return at >= place && at + sizeof(uint64_t) <= end ? word_at(at) : 0;
    });
    frames.front().place = place;
    const bool python = std::ranges::any_of(frames, [&](const NativeCode::Frame& one) { return code.is_interpreter(one.code); });
    const bool driver = std::ranges::any_of(frames, [&](const NativeCode::Frame& one) { return is_driver(code.file(one.code)); });
    if (!driver && (python || frames.size() >= kFewest)) return frames;
  }
  return {};
}
#else
std::vector<NativeCode::Frame> frames_here(uint64_t) { return {}; }
std::vector<NativeCode::Frame> frames_behind_driver(uint64_t, uint64_t) { return {}; }
#endif

// From the call into the driver up to the interpreter, which stands for Python's own frames.
Variant learn(OpTag op, uint64_t frame, uint64_t end) {
  NativeCode& code = NativeCode::instance();
  std::vector<NativeCode::Frame> frames = frames_here(end);
  std::erase_if(frames, [=](const NativeCode::Frame& one) { return one.place < frame; });  // ours
  const auto first = std::ranges::find_if(frames, [&](const NativeCode::Frame& one) { return !is_driver(code.file(one.code)); });
  const uint64_t searched = frames.empty() ? frame : frames.back().place;
  frames.erase(frames.begin(), first);
  if (frames.empty()) frames = frames_behind_driver(searched, end);
  const auto python = std::ranges::find_if(frames, [&](const NativeCode::Frame& one) { return code.is_interpreter(one.code); });
  Variant variant{{}, op};
  for (auto one = frames.begin(); one != frames.end(); ++one) {
    variant.words.emplace_back(one->place - frame, one->code + 1);
    if (one == python) break;
  }
  frames.erase(python, frames.end());
  variant.op = op_with(op, named(frames));
  return variant;
}

}  // namespace

[[gnu::noinline]] OpTag with_native_frames(OpTag op) {
  thread_local const Bounds bounds = bounds_of_thread();
  const auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (frame < bounds.begin || frame >= bounds.end) return op;  // a stack that the program made
  Known& all = known();
  {
    const std::shared_lock lock(all.mutex);
    if (const auto at = all.variants.find(op); at != all.variants.end()) {
      for (const Variant& variant : at->second)
        if (variant.is_here(frame, bounds.end)) return variant.op;
      if (at->second.size() >= kMostVariants) return op;
    }
    if (all.tags >= kMostNativeTags) return op;
  }
  Variant variant = learn(op, frame, bounds.end);
  const OpTag made = variant.op;
  const std::unique_lock lock(all.mutex);
  all.tags += made != op;
  all.variants[op].push_back(std::move(variant));
  return made;
}

}  // namespace ws::prof
