// Lets a test make the n-th checked call fail. Costs one load of a flag a call while nobody asked for it.
#pragma once
#include <driver_types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace ws::cuda::faults {

// The n-th call from now on (1 is the next) answers with `error`; 0 only counts. Counting starts anew.
void fail_at(int64_t n, cudaError_t error = cudaErrorUnknown);
int64_t calls();         // checked calls since fail_at
std::string last_hit();  // the call that was made to fail; empty: none yet

namespace detail {
inline std::atomic<bool> counting{false};  // set by the first fail_at
bool count(const char* call);
}  // namespace detail

inline bool hit(const char* call) { return detail::counting.load(std::memory_order_relaxed) && detail::count(call); }
cudaError_t error();

}  // namespace ws::cuda::faults
