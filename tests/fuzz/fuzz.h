// A fuzz target is one file, fuzz_NAME.cpp, with FUZZ_TARGET(NAME) { … }: feed `bytes` to a parser in accepts(), which catches what a
// parser promises to throw (ws::Failure), and call require() for what must hold of all that it accepts. Anything else is a find.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "profiling/base/failure.h"

#define FUZZ_TARGET(name)                                                                                        \
  static void fuzz_##name(std::string_view bytes);                                                               \
  [[maybe_unused]] static const bool name##_is_known = ws::fuzz::targets().emplace(#name, fuzz_##name).second; \
  static void fuzz_##name(std::string_view bytes)

namespace ws::fuzz {

using Target = void (*)(std::string_view bytes);

// The targets of this program by name.
inline std::map<std::string, Target>& targets() {
  static std::map<std::string, Target> all;
  return all;
}

// False if the work throws ws::Failure.
template <class Work>
bool accepts(const Work& work) {
  try {
    work();
  } catch (const Failure&) {
    return false;
  }
  return true;
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace ws::fuzz
