#include "engine/own_kernels/kernel_build.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>
#include <string_view>

#include "profiling/base/text.h"

namespace ws::own {
namespace {

// Limits of a multiprocessor. Shared memory in bytes; the system takes 1 KiB of it for each block.
struct Multiprocessor {
  int compute, warps, blocks, shared_bytes;
};
constexpr std::array<Multiprocessor, 9> kMultiprocessors{{{75, 32, 16, 64 << 10},
                                                          {80, 64, 32, 164 << 10},
                                                          {86, 48, 16, 100 << 10},
                                                          {87, 48, 16, 164 << 10},
                                                          {89, 48, 24, 100 << 10},
                                                          {90, 64, 32, 228 << 10},
                                                          {100, 64, 32, 228 << 10},
                                                          {103, 64, 32, 228 << 10},
                                                          {120, 48, 24, 100 << 10}}};
constexpr int kRegisters = 65536, kRegisterUnit = 256, kSharedUnit = 128, kSystemBytes = 1024, kWarp = 32, kInstructionBytes = 16;

// The headers of a 64-bit little-endian ELF file, as far as they are read.
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

class Elf {
 public:
  explicit Elf(std::span<const char> bytes) : bytes_(bytes) {
    constexpr std::string_view kMagic = "\x7f" "ELF\x02\x01";
    if (bytes.size() < 64 || std::string_view(bytes.data(), kMagic.size()) != kMagic) return;
    const auto first = read<uint64_t>(40);
    const auto count = read<uint16_t>(60), names = read<uint16_t>(62);
    for (uint16_t i = 0; i < count && inside(first + uint64_t{i} * sizeof(Section), sizeof(Section)); ++i)
      sections_.push_back(read<Section>(first + uint64_t{i} * sizeof(Section)));
    if (names < sections_.size()) names_ = sections_[names];
  }
  bool good() const { return !sections_.empty(); }
  const Section* section(std::string_view name) const {
    for (const Section& s : sections_)
      if (text(names_, s.name) == name) return &s;
    return nullptr;
  }
  std::span<const char> content(const Section& s) const { return inside(s.offset, s.size) ? bytes_.subspan(s.offset, s.size) : std::span<const char>{}; }
  std::vector<std::pair<std::string_view, Symbol>> symbols() const {
    std::vector<std::pair<std::string_view, Symbol>> all;
    const Section* table = section(".symtab");
    if (!table || table->link >= sections_.size()) return all;
    for (uint64_t at = 0; at + sizeof(Symbol) <= table->size && inside(table->offset + at, sizeof(Symbol)); at += sizeof(Symbol)) {
      const auto symbol = read<Symbol>(table->offset + at);
      all.emplace_back(text(sections_[table->link], symbol.name), symbol);
    }
    return all;
  }
  const Section* at(uint16_t index) const { return index < sections_.size() ? &sections_[index] : nullptr; }

 private:
  bool inside(uint64_t offset, uint64_t size) const { return offset <= bytes_.size() && size <= bytes_.size() - offset; }
  template <class T>
  T read(uint64_t offset) const {
    T value{};
    if (inside(offset, sizeof value)) std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string_view text(const Section& strings, uint32_t offset) const {
    const std::span<const char> all = content(strings);
    if (offset >= all.size()) return {};
    const std::string_view rest(all.data() + offset, all.size() - offset);
    return rest.substr(0, rest.find('\0'));
  }

  std::span<const char> bytes_;
  std::vector<Section> sections_;
  Section names_;
};

// Entries of .nv.info: format, attribute, size of the value, then the number of a symbol and its value.
void read_attributes(std::span<const char> info, uint32_t kernel, KernelFacts& facts) {
  constexpr unsigned char kSized = 4, kRegisterCount = 0x2f, kFrameSize = 0x11;
  for (size_t at = 0; at + 4 <= info.size();) {
    uint16_t size = 0;
    std::memcpy(&size, &info[at + 2], 2);
    const auto format = static_cast<unsigned char>(info[at]), attribute = static_cast<unsigned char>(info[at + 1]);
    if (format == kSized && size >= 8 && at + 12 <= info.size()) {
      uint32_t pair[2];
      std::memcpy(pair, &info[at + 4], sizeof pair);
      if (pair[0] == kernel && attribute == kRegisterCount) facts.registers = static_cast<int>(pair[1]);
      if (pair[0] == kernel && attribute == kFrameSize) facts.local_bytes = static_cast<int>(pair[1]);
    }
    at += 4 + (format == kSized ? size : 0);
  }
}

void read_launch(const Elf& elf, const Symbol& symbol, KernelFacts& facts) {
  const Section* section = elf.at(symbol.section);
  int launch[3];
  if (!section || symbol.size != sizeof launch) return;
  const std::span<const char> content = elf.content(*section);
  if (symbol.value > content.size() || sizeof launch > content.size() - symbol.value) return;
  std::memcpy(launch, content.data() + symbol.value, sizeof launch);
  facts.blocks = launch[0], facts.threads = launch[1], facts.dynamic_bytes = launch[2];
}

// "my.cu(12): warning #177-D: text" or "my.cu(12): error: text"
std::optional<BuildNote> note_in(const std::string& line, const std::string& file) {
  size_t word = line.find("): error");
  const bool error = word != line.npos;
  if (!error) word = line.find("): warning");
  const size_t open = word == line.npos ? line.npos : line.rfind('(', word);
  if (open == line.npos) return {};
  BuildNote note{.error = error};
  if (line.compare(0, open, file) == 0) std::from_chars(line.data() + open + 1, line.data() + word, note.line);
  const size_t text = line.find(": ", word + 3);
  if (text == line.npos) return {};
  note.text = line.substr(text + 2);
  if (const size_t hash = line.find('#', word); hash < text) note.number = line.substr(hash + 1, text - hash - 1);
  return note;
}

int rounded_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::vector<BuildNote> notes_of(const std::string& log, const std::string& file) {
  std::vector<BuildNote> notes;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (auto note = note_in(line, file)) notes.push_back(std::move(*note));
  return notes;
}

std::optional<KernelFacts> facts_of(std::span<const char> code, int compute) {
  const Elf elf(code);
  if (!elf.good()) return {};
  KernelFacts facts;
  const auto symbols = elf.symbols();
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const auto& [name, symbol] = symbols[i];
    if (name == kLaunch) read_launch(elf, symbol, facts);
    if (name != kEntry) continue;
    facts.has_kernel = true;
    facts.instructions = static_cast<int>(symbol.size / kInstructionBytes);
    if (const Section* info = elf.section(".nv.info")) read_attributes(elf.content(*info), i, facts);
  }
  // From compute capability 9.0 on, the section also counts what the system takes.
  if (const Section* shared = elf.section(std::string(".nv.shared.") + kEntry))
    facts.shared_bytes = std::max(0, static_cast<int>(shared->size) - (compute >= 90 ? kSystemBytes : 0));
  return facts;
}

std::vector<int> known_computes() {
  std::vector<int> all;
  for (const Multiprocessor& m : kMultiprocessors) all.push_back(m.compute);
  return all;
}

std::string Occupancy::limit() const {
  if (blocks == 0) return by_shared == 0 ? "shared memory" : by_registers == 0 ? "registers" : "threads";
  return blocks == by_threads ? "threads" : blocks == by_registers ? "registers" : "shared memory";
}

std::optional<Occupancy> occupancy_of(const KernelFacts& facts, int compute) {
  const auto m = std::ranges::find(kMultiprocessors, compute, &Multiprocessor::compute);
  if (m == kMultiprocessors.end() || facts.threads < 1) return {};
  Occupancy o;
  const int warps = rounded_up(facts.threads, kWarp) / kWarp;
  const int registers = rounded_up(std::max(facts.registers, 1) * kWarp, kRegisterUnit);  // of a warp
  const int shared = rounded_up(facts.shared_bytes + facts.dynamic_bytes + (compute >= 80 ? kSystemBytes : 0), kSharedUnit);
  o.most_warps = m->warps;
  o.by_threads = std::min(m->warps / warps, m->blocks);
  o.by_registers = std::min(kRegisters / registers / warps, m->blocks);
  o.by_shared = shared == 0 ? m->blocks : std::min(m->shared_bytes / shared, m->blocks);
  o.blocks = std::min({o.by_threads, o.by_registers, o.by_shared});
  o.warps = o.blocks * warps;
  return o;
}

std::string to_text(const KernelFacts& facts, const std::string& file, int compute) {
  std::string text = formatted("{} compiles for sm_{}: {} instructions, {} registers, {} of shared memory a block", file, compute, facts.instructions,
                               facts.registers, bytes_text(static_cast<double>(facts.shared_bytes + facts.dynamic_bytes)));
  if (facts.local_bytes > 0) text += formatted(", {} bytes of a thread in local memory", facts.local_bytes);
  if (const auto occupancy = occupancy_of(facts, compute))
    text += formatted(", {} of {} warps fit (limit: {})", occupancy->warps, occupancy->most_warps, occupancy->limit());
  return text;
}

std::string KernelBuild::errors() const {
  constexpr int kMost = 3;
  std::string text;
  int found = 0;
  for (const BuildNote& note : notes)
    if (note.error && found++ < kMost)
      text += (text.empty() ? "" : "; ") + (note.line > 0 ? "line " + std::to_string(note.line) + ": " : std::string()) + note.text;
  return text;
}

}  // namespace ws::own
