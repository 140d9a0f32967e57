// A fuzz target is one file, fuzz_NAME.cpp, with FUZZ_TARGET(NAME) { … }: feed `bytes` to a parser, and call require() for what must
// hold of all that it accepts. Exceptions that a parser promises (ws::Failure) are caught there; anything else is a find.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#define FUZZ_TARGET(name)                                                                     \
  static int fuzz_##name(const uint8_t* bytes, size_t count);                                 \
  [[maybe_unused]] static const bool name##_is_known = ws::fuzz::targets().emplace(#name, fuzz_##name).second; \
  static int fuzz_##name(const uint8_t* bytes, size_t count)

namespace ws::fuzz {

// The targets of this program by name.
inline std::map<std::string, int (*)(const uint8_t*, size_t)>& targets() {
  static std::map<std::string, int (*)(const uint8_t*, size_t)> all;
  return all;
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace ws::fuzz
