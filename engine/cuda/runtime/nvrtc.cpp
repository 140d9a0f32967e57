#include "engine/cuda/runtime/nvrtc.h"

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/late_libraries.h"

namespace ws::cuda {
namespace {

constexpr size_t kLogShown = 600;  // characters

struct Program {
  nvrtcProgram value = nullptr;
  ~Program() {
    if (value) nvrtcDestroyProgram(&value);
  }
};

std::string log_of(nvrtcProgram program) {
  size_t size = 0;
  if (!program || nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size < 2) return {};
  std::string log(size, '\0');
  if (nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) return {};
  return log.substr(0, size - 1);
}

std::string first_of(const std::string& log) { return log.empty() ? "" : ": " + log.substr(0, kLogShown); }

void check_nvrtc(nvrtcResult code, const std::string& call, const Program& program, const std::string& failed) {
  if (code != NVRTC_SUCCESS)
    throw CallFailure(call.substr(0, call.find('(')), nvrtcGetErrorString(code), failed + first_of(log_of(program.value)));
}

#define NVRTC_ATTEMPT(call) (faults::hit(#call) ? NVRTC_ERROR_INTERNAL_ERROR : (call))
#define NVRTC_CHECK(call) check_nvrtc(NVRTC_ATTEMPT(call), #call, program, failed)

// Returns what the compiler answers. It has read the source and its options.
nvrtcResult compile(Program& program, const std::string& source, const char* file_name, const std::vector<std::string>& options, const std::string& failed) {
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  NVRTC_CHECK(nvrtcCreateProgram(&program.value, source.c_str(), file_name, 0, nullptr, nullptr));
  return NVRTC_ATTEMPT(nvrtcCompileProgram(program.value, static_cast<int>(words.size()), words.data()));
}

std::vector<char> cubin_of(const Program& program, const std::string& failed) {
  size_t size = 0;
  NVRTC_CHECK(nvrtcGetCUBINSize(program.value, &size));
  std::vector<char> cubin(size);
  NVRTC_CHECK(nvrtcGetCUBIN(program.value, cubin.data()));
  return cubin;
}

}  // namespace

std::vector<char> compile_to_cubin(const std::string& source, const char* file_name,
                                   const std::vector<std::string>& options, const std::string& failed) {
  Program program;
  check_nvrtc(compile(program, source, file_name, options, failed), "nvrtcCompileProgram()", program, failed);
  return cubin_of(program, failed);
}

Compilation try_compile(const std::string& source, const char* file_name, const std::vector<std::string>& options) {
  const std::string failed = "the kernel could not be compiled";
  Program program;
  const nvrtcResult made = compile(program, source, file_name, options, failed);
  if (made == NVRTC_ERROR_COMPILATION) return {{}, log_of(program.value)};
  check_nvrtc(made, "nvrtcCompileProgram()", program, failed);
  return {cubin_of(program, failed), log_of(program.value)};
}

std::string compile_to_ptx(const std::string& source, const char* file_name, const std::vector<std::string>& options, const std::string& failed) {
  Program program;
  check_nvrtc(compile(program, source, file_name, options, failed), "nvrtcCompileProgram()", program, failed);
  size_t size = 0;
  NVRTC_CHECK(nvrtcGetPTXSize(program.value, &size));
  std::string ptx(size, '\0');
  NVRTC_CHECK(nvrtcGetPTX(program.value, ptx.data()));
  ptx.resize(ptx.find('\0') == ptx.npos ? ptx.size() : ptx.find('\0'));
  return ptx;
}

Compilation try_assemble(const std::string& ptx, const std::string& architecture) {
  constexpr int kPtx = 2;  // NVJITLINK_INPUT_PTX
  struct Link {
    JitLink value = nullptr;
    ~Link() {
      if (value) nvJitLinkDestroy(&value);
    }
  } link;
  const std::string arch = "-arch=" + architecture;
  const char* options[] = {arch.c_str(), "-lineinfo"};
  Compilation made;
  size_t size = 0;
  const bool good = nvJitLinkCreate(&link.value, 2, options) == 0 && nvJitLinkAddData(link.value, kPtx, ptx.c_str(), ptx.size() + 1, "kernel.ptx") == 0 &&
                    nvJitLinkComplete(link.value) == 0 && nvJitLinkGetLinkedCubinSize(link.value, &size) == 0;
  if (good) {
    made.code.resize(size);
    if (nvJitLinkGetLinkedCubin(link.value, made.code.data()) != 0) made.code.clear();
  }
  if (!made.code.empty()) return made;
  if (!link.value || nvJitLinkGetErrorLogSize(link.value, &size) != 0) size = 0;
  made.log.resize(size);
  if (size == 0 || nvJitLinkGetErrorLog(link.value, made.log.data()) != 0) made.log = "the assembler does not know " + architecture;
  return made;
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace ws::cuda
