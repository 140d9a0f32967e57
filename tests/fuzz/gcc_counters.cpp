// Lets libFuzzer run targets that GCC built. GCC calls a function in each basic block (-fsanitize-coverage=trace-pc,trace-cmp);
// libFuzzer wants counters. Here each block has one of 2^18 counters, chosen by a hash of its place: a few share one.
#include <cstdint>

extern "C" void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
extern "C" void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);

namespace {

constexpr uintptr_t kCounters = 1 << 18;
uint8_t counters[kCounters];
uintptr_t places[2 * kCounters];  // a place and flags for each counter

__attribute__((constructor, no_sanitize_coverage)) void begin() {
  for (uintptr_t i = 0; i < kCounters; ++i) places[2 * i] = i + 1;
  __sanitizer_cov_8bit_counters_init(counters, counters + kCounters);
  __sanitizer_cov_pcs_init(places, places + 2 * kCounters);
}

}  // namespace

// A call to itself would not end.
#define WARPSIGHT_NOT_COUNTED __attribute__((no_sanitize_coverage))
extern "C" {
WARPSIGHT_NOT_COUNTED void __sanitizer_cov_trace_pc();
WARPSIGHT_NOT_COUNTED void __sanitizer_cov_trace_cmpf(float, float);
WARPSIGHT_NOT_COUNTED void __sanitizer_cov_trace_cmpd(double, double);

void __sanitizer_cov_trace_pc() {
  const auto at = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - reinterpret_cast<uintptr_t>(&counters);
  ++counters[(at * 0x9E3779B97F4A7C15u) >> 46];
}
// libFuzzer does not use comparisons of floating-point numbers.
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}
}
