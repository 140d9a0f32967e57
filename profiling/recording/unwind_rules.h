// How to go from a function to its caller at one address: what an FDE of .eh_frame says (System V ABI, DWARF 5 section 6.4).
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "profiling/recording/elf_file.h"

namespace ws::prof {

// Numbers of the registers of x86-64, as DWARF numbers them.
inline constexpr size_t kRegisters = 17, kStackRegister = 7, kReturnRegister = 16;

struct UnwindRule {
  static constexpr int32_t kSame = INT32_MAX, kLost = INT32_MAX - 1;
  uint8_t base = kStackRegister;  // the frame begins at this register's value
  int32_t offset = 0;             // plus this
  std::array<int32_t, kRegisters> saved{};  // where the caller's register stands, from the frame's begin; kSame, kLost
};

// Nothing if the file does not describe this code, or describes it in a way that is not followed here (expressions).
std::optional<UnwindRule> unwind_rule(const ElfFile& file, uint64_t address);

}  // namespace ws::prof
