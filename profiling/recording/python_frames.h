// Reads where Python code is, from the interpreter's own frames: on the thread itself at a call, or from another thread, without
// stopping it. The layout is not known beforehand: it is found at the start, by what Python says of three of its frames, so that
// CPython 3.9 to 3.14 and later ones work alike; where it is not found, there are no lines.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct CodeAt {
  const char* code = nullptr;
  int last = 0;  // the last instruction, in bytes
  bool operator==(const CodeAt&) const = default;
};

// What Python says of a frame: its object, its code, its last instruction.
struct SaidFrame {
  const char* frame;
  const char* code;
  long last;
};

// Three nested calls, the innermost first, on the thread that asks; it holds no lock of the interpreter, or this one. `thread`: its
// number as Python has it. `others`: beginnings of paths, a line each, of code that is not the program's own. True: frames can be
// read.
bool learn_frames(const SaidFrame (&said)[3], unsigned long thread, int minor_version, const std::string& others);

// The line of the program's own code that is nearest to where this thread is; kNoOp: none, or not known. 0.1 µs.
OpTag own_line_here();
void stop_reading_names();  // before the interpreter ends

// One thread's stack, read from another. `thread`: its number, 0: it has none any more.
struct StackOfThread {
  unsigned long thread = 0;
  std::vector<CodeAt> frames;  // the innermost first
};
// Frames may change while they are read; what is read is never wrong memory. Overwrites `stacks`.
void read_all_stacks(std::vector<StackOfThread>& stacks);
// "hot (train.py:3)"; empty: not known yet. Asks nothing of the interpreter.
const std::string* known_frame(const CodeAt& at);
// The same for the frames of all threads, learning new names: waits for the interpreter's lock, and holds it shortly.
void learn_names(std::vector<StackOfThread>& stacks);

}  // namespace ws::prof
