// Reads the current position of Python code from the interpreter's frames: on the thread itself at a call, or from
// another thread without stopping it. layouts/ knows where they lie. If it does not know this Python, there are no lines.
#pragma once
#include <string>
#include <vector>

#include "profiling/recording/layouts/frame_layout.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct CodeAt {
  const char* code = nullptr;
  int last = 0;  // byte offset of the last instruction
  bool operator==(const CodeAt&) const = default;
};

// `said`: three nested calls, innermost first, on the calling thread. `thread`: Python's number of this thread.
// `others`: path prefixes, one per line, of code that is not the program's own. The caller holds the interpreter's
// lock. Returns true if frames can be read.
bool learn_frames(const SaidFrame (&said)[3], unsigned long thread, int minor_version, const std::string& others);

// Returns the innermost line of the program's own code on this thread, with the stack around it, or kNoOp if there is
// none or it is not known. Each stack is kept once; with very many stacks, only the line.
OpTag own_line_here();
void stop_reading_names();  // call it before the interpreter ends

// The stack of one thread, read from another thread. `thread`: Python's number, 0: the thread has none any more.
struct StackOfThread {
  unsigned long thread = 0;
  int task = 0;  // the system's number of the thread; 0: not known, before 3.11
  const char* state = nullptr;
  std::vector<CodeAt> frames;  // innermost first
};
// Frames may change while they are read, but no invalid memory is accessed. Overwrites `stacks`.
void read_all_stacks(std::vector<StackOfThread>& stacks);
bool stands_still(const StackOfThread& stack);  // its innermost frame is still the same
// Empty for a frame to skip; nullptr: not known yet. Does not call the interpreter.
const CodeFrame* known_frame(const CodeAt& at);
// Reads the frames of all threads and learns new names. Waits for the interpreter's lock and holds it briefly.
void learn_names(std::vector<StackOfThread>& stacks);

}  // namespace ws::prof
