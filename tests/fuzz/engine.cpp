// The entry that libFuzzer calls in a program of one target; with other compilers driver.cpp takes its place.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return ws::fuzz::targets().begin()->second(bytes, count);
}
