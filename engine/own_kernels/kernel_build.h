// What the compiler made of a kernel, without a GPU: messages at their lines, registers, memory, instructions, occupancy.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/own_kernels/kernel_contract.h"

namespace ws::own {

struct BuildNote {
  int line = 0;  // of the person's file, from 1; 0: none
  bool error = false;
  std::string number;  // "177-D", with which a warning can be suppressed; may be empty
  std::string text;
};
// The messages of the assembler of PTX, and of a failure without a line its first line.
std::vector<BuildNote> ptx_notes_of(const std::string& log);
// The messages in a log of NVRTC. Messages about other files than `file` get line 0.
std::vector<BuildNote> notes_of(const std::string& log, const std::string& file);

struct KernelFacts {
  int registers = 0;     // of a thread
  int shared_bytes = 0;  // of a block, declared in the source
  int local_bytes = 0;   // of a thread: spilled registers and arrays
  int instructions = 0;
  int parameter_bytes = 0;
  int blocks = 0, threads = 0, dynamic_bytes = 0;  // as the source launches it
  bool has_kernel = false;                         // false: there is no kernel named kEntry
};
// Makes a kernel with other parameters than the contract has an error: a launch would pass too few.
struct KernelBuild;
void check_parameters(const KernelContract& contract, KernelBuild& build);
// Reads them from machine code. Returns nullopt for code that cannot be read.
std::optional<KernelFacts> facts_of(std::span<const char> code, int compute, const std::string& entry = kEntry);

// How many blocks of a kernel one multiprocessor holds, by each of its limits.
struct Occupancy {
  int by_registers = 0, by_shared = 0, by_threads = 0, blocks = 0;
  int warps = 0, most_warps = 0;
  double share() const { return most_warps > 0 ? static_cast<double>(warps) / most_warps : 0; }
  std::string limit() const;  // "threads": what allows no further block
};
std::optional<Occupancy> occupancy_of(const KernelFacts& facts, int compute);  // nullopt: no launch, or an unknown GPU
std::vector<int> known_computes();                                            // 80, 86, 89, 90 …
// "my.cu compiles for sm_90: 120 instructions, 18 registers, …"
std::string to_text(const KernelFacts& facts, const std::string& file, int compute);

struct KernelBuild {
  std::vector<BuildNote> notes;
  std::vector<char> code;  // empty: it does not compile
  std::optional<KernelFacts> facts;
  std::string entry = kEntry;  // the kernel's name in the code
  int hidden_pointers = 0;  // parameters behind the operands that Triton adds; they get nullptr
  bool good() const { return !code.empty(); }
  std::string errors() const;  // the first errors with their lines
};

}  // namespace ws::own
