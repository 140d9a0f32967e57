// The entries that libFuzzer calls; with other compilers driver.cpp takes their place. A program of several targets runs the one by
// whose name it is started: fuzz_all as fuzz_csv.
#include <filesystem>

#include "tests/fuzz/fuzz.h"

namespace {
ws::fuzz::Target g_target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerInitialize(int*, char*** argv) {
  constexpr std::string_view kBegin = "fuzz_";
  const auto& all = ws::fuzz::targets();
  const std::string name = std::filesystem::path((*argv)[0]).filename().string();
  const auto named = all.find(name.starts_with(kBegin) ? name.substr(kBegin.size()) : name);
  if (named == all.end() && all.size() > 1) {
    std::fprintf(stderr, "Start this program by the name of a target, such as fuzz_csv.\n");
    std::exit(1);
  }
  g_target = (named == all.end() ? all.begin() : named)->second;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  g_target({reinterpret_cast<const char*>(bytes), count});
  return 0;
}
