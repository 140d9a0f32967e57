// The native code that is loaded into this process: follows stacks through it and names its functions. One for all who
// ask, because the tables of symbols are large.
#pragma once
#include <ucontext.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/recording/elf_file.h"
#include "profiling/recording/unwind_rules.h"
#include "profiling/trace/code_places.h"

namespace ws::prof {

#if defined(__x86_64__)
inline void copy_registers(const ucontext_t& context, std::array<uint64_t, kRegisters>& to) {
  constexpr int kOrder[kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (size_t i = 0; i < kRegisters; ++i) to[i] = static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
}
#else
inline void copy_registers(const ucontext_t&, std::array<uint64_t, kRegisters>&) {}
#endif

class NativeCode {
 public:
#if defined(__x86_64__)
  static constexpr bool kFollows = true;
#else
  static constexpr bool kFollows = false;
#endif
  using Registers = std::array<uint64_t, kRegisters>;
  using Word = std::function<uint64_t(uint64_t address)>;  // a word of the stack; 0 where there is none
  struct Frame {
    uint64_t code = 0;   // inside the call
    uint64_t place = 0;  // where the return address into this frame stands; 0 for the innermost frame
  };

  static NativeCode& instance();  // never destroyed: threads may ask until the process ends

  std::vector<Frame> follow(Registers values, const Word& word);  // innermost first
  CodeFrame frame(uint64_t code);   // without a function if its name is not known; empty for code that belongs to no file
  std::string file(uint64_t code);  // "libtorch_cpu.so"
  bool is_interpreter(uint64_t code);  // Python's own code, which its frames stand for

 private:
  struct Library {
    uint64_t begin, end, base;  // addresses; where address 0 of the file is
    std::string path;
    std::unique_ptr<ElfFile> file;  // opened when it is needed
    bool opened = false, interpreter = false;
  };
  NativeCode() = default;
  void look_for_libraries();
  Library* library_of(uint64_t code);
  const ElfFile* file_of(Library& library);
  const UnwindRule* rule(uint64_t code);

  std::mutex mutex_;
  int64_t looked_for_libraries_ = 0;
  std::vector<std::unique_ptr<Library>> libraries_;                  // by address
  std::unordered_map<uint64_t, std::unique_ptr<UnwindRule>> rules_;  // empty: cannot be followed
  std::unordered_map<uint64_t, CodeFrame> names_;
};

}  // namespace ws::prof
