// Compiles CUDA source and PTX at run time. Needs no GPU.
#pragma once
#include <string>
#include <vector>

namespace ws::cuda {

// Returns machine code for the architecture in `options`. Throws CallFailure with `failed` ("the kernel could not be
// compiled for this GPU") and the first words of the compiler's message.
std::vector<char> compile_to_cubin(const std::string& source, const char* file_name,
                                   const std::vector<std::string>& options, const std::string& failed);
// The same without an exception for a source that does not compile: the code is then empty. `log` has all messages.
struct Compilation {
  std::vector<char> code;
  std::string log;
};
Compilation try_compile(const std::string& source, const char* file_name, const std::vector<std::string>& options);
// CUDA source as PTX. Throws CallFailure.
std::string compile_to_ptx(const std::string& source, const char* file_name, const std::vector<std::string>& options, const std::string& failed);
// PTX as machine code for "sm_90a". `log` has the assembler's messages; without errors it is empty.
Compilation try_assemble(const std::string& ptx, const std::string& architecture);
std::string nvrtc_version();  // "13.0"

}  // namespace ws::cuda
