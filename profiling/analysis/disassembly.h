// The instructions of a kernel as text, by nvdisasm of the CUDA toolkit.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/stall_samples.h"

namespace ws::prof {

struct Instruction {
  uint32_t offset = 0;  // in the function, in bytes
  std::string text;     // "@!P0 LDG.E R2, [R4.64]"
  std::string file;     // empty: not known
  int line = 0;         // 0: not known
};
struct Disassembly {
  uint64_t module = 0;  // of the code
  std::vector<Instruction> instructions;
  std::string missing;  // why there are none, as a sentence
};
// Both start nvdisasm, which takes 0.1 s or more.
Disassembly disassembled(const SampledCode& code);
Disassembly disassembled(std::string_view cubin, const std::string& function);  // with lines, if the code has them

// Reads what nvdisasm or cuobjdump printed. `function`: empty for code without names, of which all is taken.
std::vector<Instruction> instructions_in(std::string_view listing, std::string_view function = {});

}  // namespace ws::prof
