#include "engine/own_kernels/ptx_source.h"

#include <cctype>
#include <sstream>
#include <string_view>

#include "profiling/base/text.h"

namespace ws::own {
namespace {

// Without the comment at its end.
std::string_view code_of(std::string_view line) { return trimmed(line.substr(0, line.find("//"))); }

// "ld.global.f32 %f1, [%rd6];", "@%p1 bra end;"
bool begins_instruction(std::string_view code) {
  if (code.empty() || (!std::isalpha(static_cast<unsigned char>(code[0])) && code[0] != '@')) return false;
  return code.find(':') == code.npos || code.find(':') > code.find_first_of(" \t");  // no label
}

// The assembler refuses other letters, in comments too.
std::string in_ascii(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) > 127) c = '?';
  return text;
}

// The compiler writes it as bytes.
std::string launch_line(const KernelFacts& launch) {
  return formatted(".visible .global .align 4 .u32 {}[3] = {{{}, {}, {}}};  // blocks, threads, bytes of dynamic shared memory", kLaunch, launch.blocks,
                   launch.threads, launch.dynamic_bytes);
}

// The comments of the first version in CUDA that are true of PTX as well.
std::string comments_in(const std::string& cuda) {
  std::istringstream lines(cuda);
  std::string text;
  for (std::string line; std::getline(lines, line) && line.starts_with("//");)
    if (line.find("_t, ") == line.npos) text += line + "\n";
  return text;
}

}  // namespace

std::string with_ptx_lines(const std::string& ptx, const std::string& file) {
  if (ptx.find(".loc") != ptx.npos) return in_ascii(ptx);
  std::istringstream lines(ptx);
  std::string text;
  int number = 0, depth = 0;
  bool fresh = true;  // the line before ended its statement
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view code = code_of(line);
    if (depth > 0 && fresh && begins_instruction(code)) text += ".loc 1 " + std::to_string(number) + " 0 ";
    for (const char c : code) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (!code.empty()) fresh = std::string_view(";{}:").find(code.back()) != std::string_view::npos;
    text += line + "\n";
  }
  return in_ascii(text + ".file 1 \"" + line_name(file) + "\"\n");
}

std::string first_ptx(const KernelContract& contract, const std::string& compiled, const KernelFacts& launch) {
  std::string text = comments_in(first_version(contract)) + "// The parameters are the addresses of the operands, in this order.\n";
  std::istringstream lines(compiled);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("//") || trimmed(line).starts_with("// .globl")) continue;
    text += line.find(kLaunch) != line.npos && line.starts_with(".") ? launch_line(launch) + "\n" : line + "\n";
  }
  return text;
}

}  // namespace ws::own
