#include "profiling/analysis/disassembly.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "profiling/base/failure.h"
#include "profiling/base/process.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"

namespace ws::prof {

namespace {

constexpr int kMostMs = 60'000;
constexpr const char* kNotInstalled = "No disassembler: install nvdisasm of the CUDA toolkit, or add its folder to PATH, to see the instructions.";

// Empty: it is not installed.
std::string disassembler() {
  const auto value = [](const char* name) { const char* found = std::getenv(name); return std::string(found ? found : ""); };
  std::istringstream path(value("PATH"));
  std::vector<std::string> folders;
  for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = value(name); !home.empty()) folders.push_back(home + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders)
    if (const std::string file = folder + "/nvdisasm"; !folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  return {};
}

// What it prints, or nullopt if it refuses.
std::optional<std::string> printed_by(std::vector<std::string> command, std::string_view code) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "code").string();
  write_whole(file, code);
  command.push_back(file);
  CommandOutput all = output_of(command, kMostMs);
  return all.status == 0 ? std::optional(std::move(all.text)) : std::nullopt;
}

// "//## File "/home/my.cu", line 12 inlined at …": the innermost place.
void read_place(std::string_view line, Instruction& place) {
  const size_t begin = line.find("File \"") + 6, end = line.find('"', begin), number = line.find("line ", end);
  if (end == line.npos || number == line.npos) return;
  place.file = line.substr(begin, end - begin);
  std::from_chars(line.data() + number + 5, line.data() + line.size(), place.line);
}

// "/*0010*/   @!P0 BRA `(.L_x_1) ;   /* 0x… */"; nullopt: another line.
std::optional<Instruction> instruction_in(std::string_view line) {
  line = trimmed(line);
  const size_t end = line.find("*/");
  Instruction found;
  if (!line.starts_with("/*") || end == line.npos) return {};
  const auto [stop, error] = std::from_chars(line.data() + 2, line.data() + end, found.offset, 16);
  std::string_view text = line.substr(end + 2);
  if (const size_t semicolon = text.find(';'); semicolon != text.npos) text = text.substr(0, semicolon);
  if (const size_t comment = text.find("/*"); comment != text.npos) text = text.substr(0, comment);
  found.text = trimmed(text);
  if (error != std::errc() || stop != line.data() + end || found.text.empty()) return {};
  return found;
}

// The function that begins there; empty: none does.
std::string_view function_in(std::string_view line) {
  line = trimmed(line);
  constexpr std::string_view kOfCuobjdump = "Function : ", kSection = ".text.";
  if (line.starts_with(kOfCuobjdump)) return trimmed(line.substr(kOfCuobjdump.size()));
  return line.starts_with(kSection) && line.ends_with(':') ? line.substr(kSection.size(), line.size() - kSection.size() - 1) : std::string_view();
}

Disassembly missing(const std::string& sentence) { return {0, {}, sentence}; }

Disassembly listed(std::vector<Instruction> instructions) {
  if (instructions.empty()) return missing("nvdisasm cannot read this code. Install a newer CUDA toolkit.");
  return {0, std::move(instructions), {}};
}

Disassembly disassembled_bytes(const SampledCode& code) {
  const std::string program = disassembler();
  if (program.empty()) return missing(kNotInstalled);
  try {
    const std::string name = "SM" + std::to_string(code.compute);
    for (const char* variant : {"a", ""})  // with the instructions of one architecture only, where there are some
      if (const auto text = printed_by({program, "--binary", name + variant}, code.bytes))
        if (auto found = instructions_in(*text); !found.empty()) return listed(std::move(found));
    return listed({});
  } catch (const Failure& problem) {
    return missing(problem.what());
  }
}

}  // namespace

std::vector<Instruction> instructions_in(std::string_view listing, std::string_view function) {
  std::vector<Instruction> found;
  Instruction place;
  bool wanted = function.empty();
  while (!listing.empty()) {
    const std::string_view line = listing.substr(0, listing.find('\n'));
    listing.remove_prefix(std::min(listing.size(), line.size() + 1));
    if (const std::string_view name = function_in(line); !name.empty() && !function.empty()) wanted = name == function, place = {};
    if (line.find("//## File \"") != line.npos) read_place(line, place);
    auto instruction = wanted ? instruction_in(line) : std::nullopt;
    if (!instruction) continue;
    instruction->file = place.file, instruction->line = place.line;
    found.push_back(std::move(*instruction));
  }
  return found;
}

Disassembly disassembled(const SampledCode& code) {
  Disassembly made = disassembled_bytes(code);
  made.module = code.module;
  return made;
}

Disassembly disassembled(std::string_view cubin, const std::string& function) {
  const std::string program = disassembler();
  if (program.empty()) return missing(kNotInstalled);
  try {
    const auto text = printed_by({program, "--print-code", "--print-line-info"}, cubin);
    return listed(text ? instructions_in(*text, function) : std::vector<Instruction>());
  } catch (const Failure& problem) {
    return missing(problem.what());
  }
}

}  // namespace ws::prof
