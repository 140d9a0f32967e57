#include "profiling/base/line_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "profiling/base/byte_reader.h"
#include "profiling/base/failure.h"

namespace ws {
namespace {

constexpr size_t kMostRows = size_t{1} << 20, kMostCalls = 64;

// A row of the program: its place, and the row (from 1) that calls the function which it is inlined from.
struct Row {
  uint64_t address = 0;
  uint64_t file = 0;
  int64_t line = 1;
  uint64_t caller = 0;
  uint64_t function = 0;  // its name's place among the texts
};

std::string text_in(ByteReader& from) {
  std::string text;
  for (char c = from.value<char>("a name"); c != '\0'; c = from.value<char>("a name")) text += c;
  return text;
}

int64_t signed_leb(ByteReader& from) {
  int64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = from.value<uint8_t>("a number");
    value |= static_cast<int64_t>(byte & 0x7fu) << shift;
    if (byte < 0x80) return shift < 57 && (byte & 0x40u) ? value | -(int64_t{1} << (shift + 7)) : value;
  }
  from.fail("holds a number that is too long");
}

// One unit of version 2 of DWARF's line programs, with the calls that NVIDIA's compilers add: extended operation 0x90.
class Unit {
 public:
  // `functions`: which function's address is set at a place of the section. `size`: of the section. `texts`: names of inlined functions.
  Unit(ByteReader& from, size_t size, const std::map<uint64_t, std::string>& functions, std::string_view texts)
      : from_(from), size_(size), functions_(functions), texts_(texts) {}

  // Adds the rows of `function`. Ends at `left` bytes before the end of the section.
  void run(uint64_t left, const std::string& function, std::vector<PlacedInstructions>& found) {
    if (from_.value<uint16_t>("the version") == 2) {
      read_head();
      while (from_.left() > left) step(function, found);
    }
    if (from_.left() > left) from_.raw(from_.left() - left, "a unit");
  }

 private:
  void read_head() {
    const auto length = from_.value<uint32_t>("the head");
    const uint64_t program = from_.left() - std::min<uint64_t>(length, from_.left());
    unit_ = from_.value<uint8_t>("the head"), from_.value<uint8_t>("the head");
    line_base_ = from_.value<int8_t>("the head"), line_range_ = from_.value<uint8_t>("the head"), first_special_ = from_.value<uint8_t>("the head");
    if (line_range_ == 0 || first_special_ < 10) from_.fail("has an unknown head");
    for (int i = 1; i < first_special_; ++i) arguments_.push_back(from_.value<uint8_t>("the head"));
    std::vector<std::string> folders{""};
    for (std::string name = text_in(from_); !name.empty(); name = text_in(from_)) folders.push_back(name);
    files_.emplace_back();
    for (std::string name = text_in(from_); !name.empty(); name = text_in(from_)) {
      const uint64_t folder = from_.varint("a file");
      from_.varint("a file"), from_.varint("a file");
      files_.push_back(name[0] == '/' || folder == 0 || folder >= folders.size() ? name : folders[folder] + "/" + name);
    }
    if (from_.left() < program) from_.fail("has a head that is too long");
    from_.raw(from_.left() - program, "the head");
  }

  void step(const std::string& function, std::vector<PlacedInstructions>& found) {
    const auto operation = from_.value<uint8_t>("an operation");
    if (operation >= first_special_) {
      const int amount = operation - first_special_;
      now_.address += static_cast<uint64_t>(amount / line_range_) * unit_;
      now_.line += line_base_ + amount % line_range_;
      return emit();
    }
    switch (operation) {
      case 0:
        return extended(function, found);
      case 1:
        return emit();
      case 2:
        now_.address += from_.varint("an operation") * unit_;
        return;
      case 3:
        now_.line += signed_leb(from_);
        return;
      case 4:
        now_.file = from_.varint("an operation");
        return;
      case 8:
        now_.address += static_cast<uint64_t>((255 - first_special_) / line_range_) * unit_;
        return;
      case 9:
        now_.address += from_.value<uint16_t>("an operation");
        return;
      default:
        for (int i = 0; i < arguments_[operation - 1u]; ++i) from_.varint("an operation");
    }
  }

  void extended(const std::string& function, std::vector<PlacedInstructions>& found) {
    constexpr uint8_t kEnd = 1, kAddress = 2, kInlined = 0x90;
    const uint64_t length = from_.varint("an operation"), end = from_.left() - std::min(length, from_.left());
    const auto operation = from_.value<uint8_t>("an operation");
    if (operation == kEnd) {
      if (in_ == function) take(found);
      now_ = {}, rows_.clear(), in_.clear();
    } else if (operation == kAddress) {
      const auto named = functions_.find(size_ - from_.left());
      in_ = named == functions_.end() ? std::string() : named->second;
      now_.address = from_.value<uint64_t>("an address");
    } else if (operation == kInlined) {
      now_.caller = from_.varint("a call"), now_.function = from_.varint("a call");
    }
    if (from_.left() < end) from_.fail("has an operation that is too long");
    from_.raw(from_.left() - end, "an operation");
  }

  void emit() {
    if (rows_.size() >= kMostRows) from_.fail("has too many rows");
    rows_.push_back(now_);
  }

  CodePlace place_of(const Row& row) const {
    CodePlace place{row.file < files_.size() ? files_[row.file] : "", static_cast<int>(std::clamp<int64_t>(row.line, 0, 1 << 30)), {}};
    if (row.caller > 0 && row.function < texts_.size()) place.function = texts_.substr(row.function, texts_.find('\0', row.function) - row.function);
    return place;
  }

  // The last of several rows with one address holds.
  void take(std::vector<PlacedInstructions>& found) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i + 1 < rows_.size() && rows_[i + 1].address == rows_[i].address) continue;
      PlacedInstructions one{static_cast<uint32_t>(rows_[i].address), {place_of(rows_[i])}};
      size_t at = i;
      while (rows_[at].caller > 0 && rows_[at].caller <= rows_.size() && one.places.size() < kMostCalls) {
        at = rows_[at].caller - 1;
        one.places.push_back(place_of(rows_[at]));
      }
      found.push_back(std::move(one));
    }
  }

  ByteReader& from_;
  size_t size_;
  const std::map<uint64_t, std::string>& functions_;
  std::string_view texts_;
  int unit_ = 1, line_base_ = 0, line_range_ = 1, first_special_ = 10;
  std::vector<uint8_t> arguments_;
  std::vector<std::string> files_;
  std::vector<Row> rows_;  // of the sequence so far
  Row now_;
  std::string in_;  // the function of the sequence
};

// Which function's address is set where: from the relocations of the section, whose symbols are functions or their sections.
std::map<uint64_t, std::string> functions_in(const Elf& elf, const std::string& section) {
  constexpr uint64_t kWithAddend = 24, kPlain = 16;
  std::map<uint64_t, std::string> functions;
  const auto symbols = elf.symbols();
  for (const auto& [name, size] : {std::pair(".rela" + section, kWithAddend), {".rel" + section, kPlain}}) {
    const Elf::Section* table = elf.section(name);
    if (!table) continue;
    const std::span<const char> bytes = elf.content(*table);
    for (uint64_t at = 0; at + size <= bytes.size(); at += size) {
      uint64_t place = 0, info = 0;
      std::memcpy(&place, bytes.data() + at, sizeof place), std::memcpy(&info, bytes.data() + at + 8, sizeof info);
      const uint64_t symbol = info >> 32;
      if (symbol >= symbols.size()) continue;
      std::string_view named = symbols[symbol].first;
      if (named.empty()) named = elf.name_of(symbols[symbol].second.section);
      if (named.starts_with(".text.")) named.remove_prefix(6);
      functions[place] = named;
    }
  }
  return functions;
}

}  // namespace

std::vector<PlacedInstructions> line_table(const Elf& elf, const std::string& function) {
  const Elf::Section* section = elf.section(".debug_line");
  if (!section) return {};
  const std::span<const char> content = elf.content(*section);
  const std::map<uint64_t, std::string> functions = functions_in(elf, ".debug_line");
  const Elf::Section* names = elf.section(".debug_str");
  const std::span<const char> texts = names ? elf.content(*names) : std::span<const char>();
  std::vector<PlacedInstructions> found;
  try {
    ByteReader from({content.data(), content.size()}, "The line info of a kernel");
    while (from.left() > 4) {
      const auto length = from.value<uint32_t>("a unit");
      Unit(from, content.size(), functions, {texts.data(), texts.size()}).run(from.left() - std::min<uint64_t>(length, from.left()), function, found);
    }
  } catch (const Failure&) {  // what was read before holds
  }
  std::ranges::stable_sort(found, {}, &PlacedInstructions::offset);
  return found;
}

}  // namespace ws
