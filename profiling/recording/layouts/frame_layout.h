// Where CPython keeps the code and the current instruction of its frames, and the frame of a thread. Learned at the start from
// three frames that Python describes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace ws::prof {

// Python's description of a frame: its object, its code, its last instruction.
struct SaidFrame {
  const char* frame;
  const char* code;
  long last;
};

struct FrameLayout {
  static constexpr size_t kFrameBytes = 128, kThreadBytes = 640;
  bool whole_frames = false;  // 3.9, 3.10: frames are objects that store the instruction as a number
  size_t inner_frame = 24;    // 3.11 and later: offset of the frame in a frame object
  size_t previous = 0, code = 0, instruction = 0;
  long first_instruction = 0;  // offset from the code's begin; with whole_frames: bytes per instruction
  size_t thread_frame = 0;     // offset in the state of a thread
  std::optional<size_t> through;  // 3.11, 3.12: an extra struct in between, with the frame at this offset
  size_t thread_number = 0;
  std::optional<size_t> task_number;
};

inline const char* word_at(const char* from, size_t offset) {
  const char* word = nullptr;
  std::memcpy(&word, from + offset, sizeof word);
  return word;
}

// Since 3.14 the lowest bits of a reference hold flags.
inline const char* unmarked(const char* reference) {
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(reference) & ~uintptr_t{7});
}

// `said`: three nested calls on this thread, innermost first. `state`: the interpreter's of this thread, whose number in Python
// is `thread`. Returns nullopt if the frames lie in another way.
std::optional<FrameLayout> learn_layout(const SaidFrame (&said)[3], const char* state, unsigned long thread, int minor_version);

}  // namespace ws::prof
