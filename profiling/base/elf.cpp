#include "profiling/base/elf.h"

#include <cstring>

namespace ws {

template <class T>
T Elf::read(uint64_t offset) const {
  T value{};
  if (inside(offset, sizeof value)) std::memcpy(&value, bytes_.data() + offset, sizeof value);
  return value;
}

Elf::Elf(std::span<const char> bytes) : bytes_(bytes) {
  constexpr std::string_view kMagic = "\x7f" "ELF\x02\x01";
  if (bytes.size() < 64 || std::string_view(bytes.data(), kMagic.size()) != kMagic) return;
  const auto first = read<uint64_t>(40);
  const auto count = read<uint16_t>(60), names = read<uint16_t>(62);
  for (uint16_t i = 0; i < count && inside(first + uint64_t{i} * sizeof(Section), sizeof(Section)); ++i)
    sections_.push_back(read<Section>(first + uint64_t{i} * sizeof(Section)));
  if (names < sections_.size()) names_ = sections_[names];
}

const Elf::Section* Elf::section(std::string_view name) const {
  for (const Section& s : sections_)
    if (text(names_, s.name) == name) return &s;
  return nullptr;
}

std::span<const char> Elf::content(const Section& s) const {
  return inside(s.offset, s.size) ? bytes_.subspan(s.offset, s.size) : std::span<const char>{};
}

std::vector<std::pair<std::string_view, Elf::Symbol>> Elf::symbols() const {
  std::vector<std::pair<std::string_view, Symbol>> all;
  const Section* table = section(".symtab");
  if (!table || table->link >= sections_.size()) return all;
  for (uint64_t at = 0; at + sizeof(Symbol) <= table->size && inside(table->offset + at, sizeof(Symbol)); at += sizeof(Symbol)) {
    const auto symbol = read<Symbol>(table->offset + at);
    all.emplace_back(text(sections_[table->link], symbol.name), symbol);
  }
  return all;
}

std::string_view Elf::name_of(uint16_t section) const { return section < sections_.size() ? text(names_, sections_[section].name) : std::string_view(); }

// Version 8 of the format, of CUDA 13, has the capability in another byte of the flags.
int Elf::compute() const {
  constexpr uint64_t kFormatVersion = 8, kFlags = 48;
  const auto flags = read<uint32_t>(kFlags);
  return static_cast<int>((read<unsigned char>(kFormatVersion) >= 8 ? flags >> 8 : flags) & 0xff);
}

std::string_view Elf::text(const Section& strings, uint32_t offset) const {
  const std::span<const char> all = content(strings);
  if (offset >= all.size()) return {};
  const std::string_view rest(all.data() + offset, all.size() - offset);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace ws
