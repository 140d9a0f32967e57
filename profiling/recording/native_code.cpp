#include "profiling/recording/native_code.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/trace/kernel_names.h"

namespace ws::prof {

namespace {

constexpr int64_t kLibrariesAgain = 100'000'000;  // ns
constexpr size_t kDeepest = 100, kMostRemembered = 200'000;

struct Loaded {
  uint64_t begin, end, base;
  std::string path;
};

int add_library(dl_phdr_info* library, size_t, void* given) {
  Loaded one{UINT64_MAX, 0, library->dlpi_addr, library->dlpi_name ? library->dlpi_name : ""};
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
    one.begin = std::min(one.begin, one.base + part.p_vaddr);
    one.end = std::max(one.end, one.base + part.p_vaddr + part.p_memsz);
  }
  if (one.path.empty()) one.path = "/proc/self/exe";
  if (one.begin < one.end && one.path[0] == '/') static_cast<std::vector<Loaded>*>(given)->push_back(std::move(one));
  return 0;
}

std::string file_name(const std::string& path) {
  std::string real = path;
  if (path == "/proc/self/exe") {
    char target[4096];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length > 0) real.assign(target, static_cast<size_t>(length));
  }
  return real.substr(real.rfind('/') + 1);
}

}  // namespace

NativeCode& NativeCode::instance() {
  static auto* const all = new NativeCode;
  return *all;
}

// The caller holds the mutex; so it does for the next three.
void NativeCode::look_for_libraries() {
  std::vector<Loaded> loaded;
  dl_iterate_phdr(add_library, &loaded);
  std::vector<std::unique_ptr<Library>> kept;
  for (Loaded& one : loaded) {
    const auto same = std::ranges::find_if(libraries_, [&](const auto& old) {
      return old && old->begin == one.begin && old->end == one.end && old->path == one.path;
    });
    if (same != libraries_.end()) {
      kept.push_back(std::move(*same));
      continue;
    }
    const std::string name = file_name(one.path);
    kept.push_back(std::make_unique<Library>(Library{one.begin, one.end, one.base, one.path, nullptr}));
    kept.back()->interpreter = name.starts_with("libpython") || name.starts_with("python");
    std::erase_if(rules_, [&](const auto& known) { return known.first >= one.begin && known.first < one.end; });
    std::erase_if(names_, [&](const auto& known) { return known.first >= one.begin && known.first < one.end; });
  }
  std::ranges::sort(kept, {}, [](const auto& library) { return library->begin; });
  libraries_ = std::move(kept);
}

NativeCode::Library* NativeCode::library_of(uint64_t code) {
  for (int tries = 0; tries < 2; ++tries) {
    const auto after = std::ranges::upper_bound(libraries_, code, {}, [](const auto& library) { return library->begin; });
    if (after != libraries_.begin() && code < (*std::prev(after))->end) return std::prev(after)->get();
    const int64_t now = steady_ns();
    if (tries > 0 || now - looked_for_libraries_ < kLibrariesAgain) return nullptr;
    looked_for_libraries_ = now;
    look_for_libraries();
  }
  return nullptr;
}

const ElfFile* NativeCode::file_of(Library& library) {
  if (!std::exchange(library.opened, true)) library.file = ElfFile::open(library.path);
  return library.file.get();
}

const UnwindRule* NativeCode::rule(uint64_t code) {
  if (const auto known = rules_.find(code); known != rules_.end()) return known->second.get();
  if (rules_.size() > kMostRemembered) rules_.clear();
  std::unique_ptr<UnwindRule> made;
  if (Library* const library = library_of(code))
    if (const ElfFile* const file = file_of(*library))
      if (const auto found = unwind_rule(*file, code - library->base)) made = std::make_unique<UnwindRule>(*found);
  return (rules_[code] = std::move(made)).get();
}

std::vector<NativeCode::Frame> NativeCode::follow(Registers values, const Word& word) {
  const std::lock_guard lock(mutex_);
  std::vector<Frame> frames{{values[kReturnRegister], 0}};
  while (frames.size() < kDeepest) {
    const UnwindRule* const here = rule(frames.back().code);
    if (!here) break;
    const uint64_t begin = values[here->base] + static_cast<uint64_t>(int64_t{here->offset});
    if (begin <= values[kStackRegister] || here->saved[kReturnRegister] >= UnwindRule::kLost) break;
    const auto place = [&](size_t i) { return begin + static_cast<uint64_t>(int64_t{here->saved[i]}); };
    for (size_t i = 0; i < kReturnRegister; ++i)
      if (here->saved[i] < UnwindRule::kLost) values[i] = word(place(i));
    values[kStackRegister] = begin;
    const uint64_t next = word(place(kReturnRegister));
    if (next == 0) break;
    frames.push_back({next - 1, place(kReturnRegister)});  // a return address may be behind the end of the function
  }
  return frames;
}

CodeFrame NativeCode::frame(uint64_t code) {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find(code);
  if (known != names_.end()) return known->second;
  if (names_.size() > kMostRemembered) names_.clear();
  CodeFrame frame;
  if (Library* const library = library_of(code)) {
    const ElfFile* const file = file_of(*library);
    const std::string function = file ? file->function_at(code - library->base) : std::string();
    frame = {file_name(library->path), 0, function.empty() ? function : short_function_name(function)};
  }
  return names_[code] = std::move(frame);
}

std::string NativeCode::file(uint64_t code) {
  const std::lock_guard lock(mutex_);
  const Library* const library = library_of(code);
  return library ? file_name(library->path) : std::string();
}

bool NativeCode::is_interpreter(uint64_t code) {
  const std::lock_guard lock(mutex_);
  const Library* const library = library_of(code);
  return library && library->interpreter;
}

}  // namespace ws::prof
