// Lets a test make the n-th checked call fail. Outside such a test, a call costs one load of a flag.
#pragma once
#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace ws::cuda::faults {

// Makes the n-th call from now on return `error` (1 is the next). 0 only counts calls. Restarts the count.
void fail_at(int64_t n, cudaError_t error = cudaErrorUnknown);
int64_t calls();         // checked calls since fail_at
std::string last_hit();  // the call that was made to fail; empty: none so far

namespace detail {
inline std::atomic<bool> counting{false};  // set by the first fail_at
bool count(const char* call);
}  // namespace detail

inline bool hit(const char* call) { return detail::counting.load(std::memory_order_relaxed) && detail::count(call); }
cudaError_t error();

}  // namespace ws::cuda::faults
