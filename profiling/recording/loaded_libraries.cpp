#include "profiling/recording/loaded_libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "profiling/recording/layouts/safe_copy.h"

namespace ws::prof {
namespace {

#if defined(__x86_64__)
constexpr unsigned kCallSlot = R_X86_64_JUMP_SLOT, kDataSlot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr unsigned kCallSlot = R_AARCH64_JUMP_SLOT, kDataSlot = R_AARCH64_GLOB_DAT;
#else
constexpr unsigned kCallSlot = ~0U, kDataSlot = ~0U;  // nothing is redirected
#endif

struct Wanted {
  std::span<const Redirect> calls;
  std::string_view needed;  // empty: in every library
  int found = 0;
};

// The parts of a loaded library's dynamic section that name the functions it calls.
struct Calls {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * lists[2] = {};
  size_t bytes[2] = {};
  bool needs = false;  // the wanted library
};

// The loader has already turned these offsets into addresses, except in the kernel's own library.
template <class T>
const T* address(const dl_phdr_info& library, const ElfW(Dyn) & entry) {
  ElfW(Addr) at = entry.d_un.d_ptr;
  if (at < library.dlpi_addr) at += library.dlpi_addr;
  return reinterpret_cast<const T*>(at);
}

Calls calls_of(const dl_phdr_info& library, const ElfW(Dyn) * entry, std::string_view needed) {
  Calls calls;
  const ElfW(Dyn)* const first = entry;
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) calls.symbols = address<ElfW(Sym)>(library, *entry);
    if (entry->d_tag == DT_STRTAB) calls.names = address<char>(library, *entry);
    if (entry->d_tag == DT_JMPREL) calls.lists[0] = address<ElfW(Rela)>(library, *entry);
    if (entry->d_tag == DT_PLTRELSZ) calls.bytes[0] = entry->d_un.d_val;
    if (entry->d_tag == DT_RELA) calls.lists[1] = address<ElfW(Rela)>(library, *entry);
    if (entry->d_tag == DT_RELASZ) calls.bytes[1] = entry->d_un.d_val;
  }
  calls.needs = needed.empty();
  for (entry = first; calls.names && !calls.needs && entry->d_tag != DT_NULL; ++entry)
    calls.needs = entry->d_tag == DT_NEEDED && std::string_view(calls.names + entry->d_un.d_val).starts_with(needed);
  return calls;
}

// True if the loader made these addresses read-only after it had filled them in.
bool is_sealed(const dl_phdr_info& library, ElfW(Addr) slot) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    const ElfW(Addr) begin = library.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_RELRO && slot >= begin && slot < begin + part.p_memsz) return true;
  }
  return false;
}

bool write_slot(const dl_phdr_info& library, ElfW(Addr) slot, const void* value) {
  const auto size = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  auto* const page = reinterpret_cast<void*>(slot & ~(size - 1));
  const bool sealed = is_sealed(library, slot);
  if (sealed && mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return false;
  // Other threads may call through the slot meanwhile.
  std::atomic_ref(*reinterpret_cast<uintptr_t*>(slot))
      .store(reinterpret_cast<uintptr_t>(value), std::memory_order_release);
  if (sealed) mprotect(page, size, PROT_READ);
  return true;
}

bool contains(const dl_phdr_info& library, const void* address) {
  const auto at = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    const ElfW(Addr) begin = library.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && at >= begin && at < begin + part.p_memsz) return true;
  }
  return false;
}

int redirect_in(dl_phdr_info* library, size_t, void* given) {
  auto& wanted = *static_cast<Wanted*>(given);
  if (!wanted.calls.empty() && contains(*library, wanted.calls[0].instead)) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < library->dlpi_phnum; ++i)
    if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
  if (!dynamic) return 0;
  const Calls calls = calls_of(*library, dynamic, wanted.needed);
  if (!calls.symbols || !calls.names || !calls.needs) return 0;
  bool found = false;
  for (int list = 0; list < 2; ++list)
    for (size_t i = 0; calls.lists[list] && i < calls.bytes[list] / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& call = calls.lists[list][i];
      const unsigned kind = static_cast<unsigned>(ELF64_R_TYPE(call.r_info));
      if (kind != kCallSlot && kind != kDataSlot) continue;
      const char* const name = calls.names + calls.symbols[ELF64_R_SYM(call.r_info)].st_name;
      for (const Redirect& each : wanted.calls)
        if (std::strcmp(name, each.symbol) == 0)
          found |= write_slot(*library, library->dlpi_addr + call.r_offset, each.instead);
    }
  wanted.found += found;
  return 0;
}

struct Pointers {
  std::span<const RedirectedPointer> all;
  uintptr_t lowest = UINTPTR_MAX, highest = 0;  // most words in the data of a program lie outside
  const void* instead_of(uintptr_t word) const {
    if (word < lowest || word > highest) return nullptr;
    for (const RedirectedPointer& pointer : all)
      if (reinterpret_cast<uintptr_t>(pointer.function) == word) return pointer.instead;
    return nullptr;
  }
};

int redirect_pointers_in(dl_phdr_info* library, size_t, void* given) {
  constexpr size_t kMostBytes = size_t{64} << 20;  // a program may have huge arrays
  constexpr size_t kPart = 64 << 10;               // read at once; a program may have made a page unreadable
  const auto& pointers = *static_cast<const Pointers*>(given);
  if (contains(*library, pointers.all[0].function) || contains(*library, pointers.all[0].instead)) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_R) || !(part.p_flags & PF_W)) continue;
    const ElfW(Addr) begin = (library->dlpi_addr + part.p_vaddr + 7) & ~ElfW(Addr){7};
    const ElfW(Addr) end = library->dlpi_addr + part.p_vaddr + std::min<size_t>(part.p_memsz, kMostBytes);
    std::vector<uintptr_t> words(kPart / sizeof(uintptr_t));
    for (ElfW(Addr) at = begin; at + sizeof at <= end; at += kPart) {
      const size_t count = std::min<size_t>(kPart, end - at) / sizeof(uintptr_t);
      if (!read_safely(reinterpret_cast<const char*>(at), words.data(), count * sizeof(uintptr_t))) continue;
      for (size_t word = 0; word < count; ++word)
        if (const void* const instead = pointers.instead_of(words[word])) write_slot(*library, at + word * sizeof(uintptr_t), instead);
    }
  }
  return 0;
}

struct Search {
  std::string_view begins;
  std::string path;
};

int find_library(dl_phdr_info* library, size_t, void* given) {
  auto& search = *static_cast<Search*>(given);
  const std::string_view path = library->dlpi_name ? library->dlpi_name : "";
  if (!path.substr(path.rfind('/') + 1).starts_with(search.begins)) return 0;  // npos + 1 is 0
  search.path = path;
  return 1;
}

}  // namespace

void* loaded_function(std::string_view library, const char* symbol) {
  Search search{library, {}};
  if (!dl_iterate_phdr(find_library, &search)) return nullptr;
  void* const found = dlopen(search.path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  return found ? dlsym(found, symbol) : nullptr;
}

int redirect_calls(std::span<const Redirect> calls, std::string_view needed) {
  Wanted wanted{calls, needed};
  dl_iterate_phdr(redirect_in, &wanted);
  return wanted.found;
}

void redirect_pointers(std::span<const RedirectedPointer> pointers) {
  if (pointers.empty()) return;
  Pointers wanted{pointers};
  for (const RedirectedPointer& pointer : pointers) {
    wanted.lowest = std::min(wanted.lowest, reinterpret_cast<uintptr_t>(pointer.function));
    wanted.highest = std::max(wanted.highest, reinterpret_cast<uintptr_t>(pointer.function));
  }
  dl_iterate_phdr(redirect_pointers_in, &wanted);
}

int redirect_calls(const char* symbol, const void* instead) {
  const Redirect call{symbol, instead};
  return redirect_calls({&call, 1}, "");
}

uint64_t libraries_loaded_so_far() {
  uint64_t loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* result) {
        *static_cast<uint64_t*>(result) = library->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

}  // namespace ws::prof
