#include "profiling/cupti/module_lines.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "profiling/base/elf.h"
#include "profiling/cupti/late_calls.h"

namespace ws::prof {

namespace {

struct Freed {
  void operator()(char* text) const { std::free(text); }
};

std::string path_of(const char* folder, const char* file) {
  const std::string name = file ? file : "";
  if (name.empty() || name[0] == '/' || !folder || !*folder) return name;
  return std::string(folder) + "/" + name;
}

}  // namespace

void ModuleLines::loaded(std::string_view cubin) {
  if (!on() || cubin.empty()) return;
  const std::lock_guard lock(mutex_);
  if (bytes_ + cubin.size() > kMostBytes) return;
  bytes_ += cubin.size();
  fresh_.emplace_back(cubin);
}

// Checksums are computed only for modules whose samples are asked for, or that come before such a module.
const std::string* ModuleLines::find(uint64_t module) {
  if (const auto known = modules_.find(module); known != modules_.end()) return &known->second;
  const std::lock_guard lock(mutex_);
  while (!fresh_.empty()) {
    std::string cubin = std::move(fresh_.back());
    fresh_.pop_back();
    CUpti_GetCubinCrcParams sum{};
    sum.size = CUpti_GetCubinCrcParamsSize;
    sum.cubin = cubin.data(), sum.cubinSize = cubin.size();
    if (cuptiGetCubinCrc(&sum) != CUPTI_SUCCESS) continue;
    const auto at = modules_.insert_or_assign(sum.cubinCrc, std::move(cubin)).first;
    if (sum.cubinCrc == module) return &at->second;
  }
  return nullptr;
}

ModuleLines::Place ModuleLines::line_of(uint64_t module, const std::string& function, uint64_t offset) {
  const std::string* cubin = find(module);
  if (!cubin) return {};
  CUpti_GetSassToSourceCorrelationParams place{};
  place.size = CUpti_GetSassToSourceCorrelationParamsSize;
  place.cubin = cubin->data(), place.cubinSize = cubin->size();
  place.functionName = function.c_str(), place.pcOffset = offset;
  if (cuptiGetSassToSourceCorrelation(&place) != CUPTI_SUCCESS) return {};
  const std::unique_ptr<char, Freed> file(place.fileName), folder(place.dirName);
  if (place.lineNumber == 0 || !file) return {};
  return {path_of(folder.get(), file.get()), static_cast<int32_t>(place.lineNumber)};
}

// Only the function: a module of a library has megabytes of kernels that never ran.
std::optional<ModuleLines::Code> ModuleLines::code_of(uint64_t module, const std::string& function) {
  const std::string* cubin = find(module);
  if (!cubin) return {};
  const Elf elf(*cubin);
  const Elf::Section* section = elf.section(".text." + function);
  if (!section) return {};
  const std::span<const char> content = elf.content(*section);
  constexpr uint64_t kMostLineInfo = uint64_t{8} << 20;  // of all functions of the module, which are read for each
  const Elf::Section* info = elf.section(".debug_line");
  return Code{{content.data(), content.size()}, elf.compute(), info && info->size <= kMostLineInfo ? line_table(elf, function) : std::vector<PlacedInstructions>()};
}

}  // namespace ws::prof
