// Lets a test make the n-th checked call fail. Compiled in with the tests only.
#pragma once
#include <driver_types.h>

#include <cstdint>
#include <string>

namespace ws::cuda::faults {

// The n-th call from now on (1 is the next) answers with `error`; 0 switches it off. Counting starts anew.
void fail_at(int64_t n, cudaError_t error = cudaErrorUnknown);
int64_t calls();         // checked calls since fail_at
std::string last_hit();  // the call that was made to fail; empty: none yet

bool hit(const char* call);
cudaError_t error();

}  // namespace ws::cuda::faults
