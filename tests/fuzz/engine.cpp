// The entry that libFuzzer calls; with other compilers driver.cpp takes its place.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) { return fuzz_one(bytes, count); }
