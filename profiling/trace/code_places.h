// The source line that an op stands for, the stack around it, and the stacks of samples; and their texts.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/annotate/annotate.h"
#include "profiling/annotate/code_stack.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

inline constexpr size_t kMostStackFrames = 1000;  // the innermost ones; a file may claim any number

std::string place_text(const CodeFrame& frame);  // "net.py:12 in Net.forward"
std::string frame_text(const CodeFrame& frame);  // "Net.forward (net.py:12)"

std::string line_of(const OpInfo& op);                       // as place_text() has it; empty if the op has no line
const std::vector<CodeFrame>& stack_of(const OpInfo& op);    // outermost first; empty if the op has no line
bool same_stack(const OpInfo& a, const OpInfo& b);

// "hot (train.py:3) < main (train.py:9)", for display. Cut where it is very long.
std::string stack_text(const CodeStack& stack);
uint64_t stack_hash(const CodeStack& stack);
// Outermost first. Run files before version 4 have the stack of a sample as text: a path with " < " is cut there.
std::vector<CodeFrame> sampled_frames(const Trace& trace, NameId name);

CodeFrame frame_from(std::string_view place);      // reads what place_text() wrote
CodeFrame frame_from_text(std::string_view text);  // reads what frame_text() wrote
// "net.py:12 in Net.forward > lib.py:7 in act < train.py:40 in step < train.py:60 in main": the line, what it calls, and
// its callers. Run files before version 3 have stacks as this text. A path with " > " or " < " is cut.
std::shared_ptr<const CodeStack> stack_from_text(std::string_view text);

}  // namespace ws::prof
