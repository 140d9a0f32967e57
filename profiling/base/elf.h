// Reads machine code of the GPU: a 64-bit little-endian ELF file, as the compilers and the driver make it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ws {

inline constexpr int kInstructionBytes = 16;  // from compute capability 7.0 on

// A view of bytes that must outlive it. Bad bytes give no sections.
class Elf {
 public:
  struct Section {
    uint32_t name = 0, type = 0;
    uint64_t flags = 0, address = 0, offset = 0, size = 0;
    uint32_t link = 0, info = 0;
    uint64_t alignment = 0, entry_size = 0;
  };
  struct Symbol {
    uint32_t name = 0;
    unsigned char info = 0, other = 0;
    uint16_t section = 0;
    uint64_t value = 0, size = 0;
  };

  explicit Elf(std::span<const char> bytes);
  bool good() const { return !sections_.empty(); }
  const Section* section(std::string_view name) const;  // nullptr: none
  const Section* at(uint16_t index) const { return index < sections_.size() ? &sections_[index] : nullptr; }
  std::span<const char> content(const Section& section) const;
  std::vector<std::pair<std::string_view, Symbol>> symbols() const;
  std::string_view name_of(uint16_t section) const;  // empty: there is no such section
  int compute() const;  // capability that the code was made for: 90

 private:
  bool inside(uint64_t offset, uint64_t size) const { return offset <= bytes_.size() && size <= bytes_.size() - offset; }
  template <class T>
  T read(uint64_t offset) const;
  std::string_view text(const Section& strings, uint32_t offset) const;

  std::span<const char> bytes_;
  std::vector<Section> sections_;
  Section names_;
};

}  // namespace ws
