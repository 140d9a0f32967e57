#include "profiling/recording/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "profiling/recording/own_files.h"

namespace ws::prof {
namespace {

constexpr size_t kMostOfTable = size_t{1} << 28;  // of one table
constexpr size_t kMostName = 4096;

template <class T>
T value_at(const std::string& bytes, size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof value <= bytes.size() - offset) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::unique_ptr<ElfFile> ElfFile::open(const std::string& path) {
  std::unique_ptr<ElfFile> file(new ElfFile(path));
  return file->learn() ? std::move(file) : nullptr;
}

std::string ElfFile::bytes_at(uint64_t offset, size_t bytes) const {
  if (bytes > kMostOfTable) return {};
  std::string read(bytes, '\0');
  size_t have = 0;
  with_own_files([&] {
    const int handle = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) return;
    while (have < bytes) {
      const ssize_t got = pread(handle, read.data() + have, bytes - have, static_cast<off_t>(offset + have));
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    close(handle);
  });
  read.resize(have);
  return read;
}

bool ElfFile::learn() {
  const std::string head = bytes_at(0, sizeof(Elf64_Ehdr));
  const auto header = value_at<Elf64_Ehdr>(head, 0);
  constexpr int kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (head.size() < sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kOrder || header.e_phentsize < sizeof(Elf64_Phdr))
    return false;
  const std::string programs = bytes_at(header.e_phoff, size_t{header.e_phnum} * header.e_phentsize);
  Elf64_Phdr descriptions{};
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto part = value_at<Elf64_Phdr>(programs, i * header.e_phentsize);
    if (part.p_type == PT_LOAD) parts_.push_back({part.p_vaddr, part.p_filesz, part.p_offset});
    if (part.p_type == PT_GNU_EH_FRAME) descriptions = part;
  }
  if (descriptions.p_filesz > 0) learn_descriptions(descriptions.p_vaddr, descriptions.p_offset, descriptions.p_filesz);
  if (header.e_shentsize >= sizeof(Elf64_Shdr)) learn_functions(header.e_shoff, header.e_shnum, header.e_shentsize);
  return true;
}

// The table of .eh_frame_hdr, where it has the form that linkers write: pairs of offsets from its begin.
void ElfFile::learn_descriptions(uint64_t address, uint64_t offset, uint64_t bytes) {
  constexpr size_t kHead = 12, kEach = 8;
  constexpr uint8_t kFourBytes = 0x03, kFromHere = 0x3b;
  const std::string table = bytes_at(offset, bytes);
  if (value_at<uint8_t>(table, 0) != 1 || value_at<uint8_t>(table, 2) != kFourBytes || value_at<uint8_t>(table, 3) != kFromHere)
    return;
  const size_t count = std::min<size_t>(value_at<uint32_t>(table, 8), table.size() / kEach);
  descriptions_.reserve(count);
  for (size_t i = 0; i < count && kHead + (i + 1) * kEach <= table.size(); ++i) {
    const auto code = value_at<int32_t>(table, kHead + i * kEach), what = value_at<int32_t>(table, kHead + i * kEach + 4);
    descriptions_.emplace_back(address + static_cast<uint64_t>(int64_t{code}), address + static_cast<uint64_t>(int64_t{what}));
  }
  if (!std::ranges::is_sorted(descriptions_)) std::ranges::sort(descriptions_);
}

// From the full table of symbols where the file has one, else from the table for the loader.
void ElfFile::learn_functions(uint64_t sections, size_t count, size_t each) {
  const std::string heads = bytes_at(sections, count * each);
  const auto head = [&](size_t i) { return value_at<Elf64_Shdr>(heads, i * each); };
  for (const uint32_t kind : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}})
    for (size_t i = 0; i < count && functions_.empty(); ++i) {
      if (head(i).sh_type != kind || head(i).sh_link >= count) continue;
      const Elf64_Shdr names = head(head(i).sh_link);
      const std::string symbols = bytes_at(head(i).sh_offset, head(i).sh_size);
      for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
        const auto symbol = value_at<Elf64_Sym>(symbols, at);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && symbol.st_size > 0)
          functions_.push_back({symbol.st_value, symbol.st_size, names.sh_offset + symbol.st_name});
      }
    }
  std::ranges::sort(functions_, {}, &Function::address);
}

std::string ElfFile::read(uint64_t address, size_t bytes) const {
  for (const Part& part : parts_)
    if (address >= part.address && address - part.address < part.bytes)
      return bytes_at(part.offset + (address - part.address), std::min<uint64_t>(bytes, part.bytes - (address - part.address)));
  return {};
}

std::string ElfFile::function_at(uint64_t address) const {
  auto at = std::ranges::upper_bound(functions_, address, {}, &Function::address);
  for (int tries = 0; at != functions_.begin() && tries < 4; ++tries) {  // functions may have several names
    --at;
    if (address - at->address >= at->bytes) continue;
    const std::string name = bytes_at(at->name, kMostName);
    return name.substr(0, name.find('\0'));
  }
  return {};
}

uint64_t ElfFile::description_at(uint64_t address) const {
  const auto after = std::ranges::upper_bound(descriptions_, address, {}, &std::pair<uint64_t, uint64_t>::first);
  return after == descriptions_.begin() ? 0 : std::prev(after)->second;
}

}  // namespace ws::prof
