#include "engine/own_kernels/kernel_build.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>

#include "profiling/base/elf.h"
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
constexpr int kRegisters = 65536, kRegisterUnit = 256, kSharedUnit = 128, kSystemBytes = 1024, kWarp = 32;

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

// An entry of .nv.info.KERNEL whose value is two bytes long, in place of a size.
int parameter_bytes_in(std::span<const char> info) {
  constexpr unsigned char kShort = 3, kSized = 4, kParameterBytes = 0x19;
  for (size_t at = 0; at + 4 <= info.size();) {
    uint16_t size = 0;
    std::memcpy(&size, &info[at + 2], 2);
    const auto format = static_cast<unsigned char>(info[at]), attribute = static_cast<unsigned char>(info[at + 1]);
    if (format == kShort && attribute == kParameterBytes) return size;
    at += 4 + (format == kSized ? size : 0);
  }
  return 0;
}

void read_launch(const Elf& elf, const Elf::Symbol& symbol, KernelFacts& facts) {
  const Elf::Section* section = elf.at(symbol.section);
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

// "ptxas application ptx input, line 53; error   : text"
std::vector<BuildNote> ptx_notes_of(const std::string& log) {
  std::vector<BuildNote> notes;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t number = line.find(", line "), kind = line.find("; ", number), text = line.find(": ", kind);
    if (text == line.npos || number == line.npos || kind == line.npos) continue;
    BuildNote note{.error = line.compare(kind + 2, 7, "warning") != 0, .number = {}, .text = line.substr(text + 2)};
    std::from_chars(line.data() + number + 7, line.data() + kind, note.line);
    notes.push_back(std::move(note));
  }
  if (std::ranges::none_of(notes, &BuildNote::error) && !log.empty()) notes.push_back({0, true, {}, log.substr(0, log.find('\n'))});
  return notes;
}

std::optional<KernelFacts> facts_of(std::span<const char> code, int compute, const std::string& entry) {
  const Elf elf(code);
  if (!elf.good()) return {};
  KernelFacts facts;
  const auto symbols = elf.symbols();
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const auto& [name, symbol] = symbols[i];
    if (name == kLaunch) read_launch(elf, symbol, facts);
    if (name != entry) continue;
    facts.has_kernel = true;
    facts.instructions = static_cast<int>(symbol.size / kInstructionBytes);
    if (const Elf::Section* info = elf.section(".nv.info")) read_attributes(elf.content(*info), i, facts);
  }
  if (const Elf::Section* info = elf.section(".nv.info." + entry)) facts.parameter_bytes = parameter_bytes_in(elf.content(*info));
  // From compute capability 9.0 on, the section also counts what the system takes.
  if (const Elf::Section* shared = elf.section(".nv.shared." + entry))
    facts.shared_bytes = std::max(0, static_cast<int>(shared->size) - (compute >= 90 ? kSystemBytes : 0));
  return facts;
}

void check_parameters(const KernelContract& contract, KernelBuild& build) {
  constexpr int kAddress = 8, kStep = 40;  // bytes; of step_t in the prelude
  if (!build.facts || !build.facts->has_kernel) return;
  const int addresses = static_cast<int>(contract.operands.size()) + build.hidden_pointers;
  const int wanted = kAddress * addresses + (contract.takes_step() ? kStep : 0);
  if (build.facts->parameter_bytes == wanted) return;
  std::string names;
  for (const Operand& o : contract.operands) names += (names.empty() ? "" : ", ") + o.name;
  build.code.clear();
  build.notes.push_back({0, true, {}, formatted("{} takes {} bytes of parameters, and this op passes {}: the addresses of {}{}", kEntry, build.facts->parameter_bytes,
                                                wanted, names, contract.takes_step() ? ", then step_t step" : "")});
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
  std::string text = formatted("{} compiles for sm_{}: {} instructions, {} registers, {} of shared memory per block", file, compute, facts.instructions,
                               facts.registers, bytes_text(static_cast<double>(facts.shared_bytes + facts.dynamic_bytes)));
  if (facts.local_bytes > 0) text += formatted(", {} bytes of a thread in local memory", facts.local_bytes);
  if (const auto occupancy = occupancy_of(facts, compute))
    text += formatted(", at most {} of {} warps per multiprocessor (limit: {})", occupancy->warps, occupancy->most_warps, occupancy->limit());
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
