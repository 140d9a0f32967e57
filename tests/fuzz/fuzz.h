// A fuzz target is one file that defines fuzz_one(): feed the bytes to a parser, and call require() for what must hold
// of whatever it accepts. Exceptions that a parser promises (ws::Failure) are caught there; anything else is a find.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

int fuzz_one(const uint8_t* bytes, size_t count);

namespace ws::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace ws::fuzz
