// The source lines of the instructions of one function, with the calls that were inlined around each, from the line info of machine code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/base/elf.h"

namespace ws {

struct CodePlace {
  std::string file;
  int line = 0;
  std::string function;  // that is inlined there, mangled; empty: the kernel itself
  bool operator==(const CodePlace&) const = default;
};
struct PlacedInstructions {
  uint32_t offset = 0;            // the first; they end where the next entry begins
  std::vector<CodePlace> places;  // the line itself first, then the call around it, and so on to the kernel
};
// In order. Empty: the code has no line info, or it cannot be read.
std::vector<PlacedInstructions> line_table(const Elf& elf, const std::string& function);

}  // namespace ws
