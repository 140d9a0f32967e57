// Which part of a run has its instructions sampled: some steps, or some time. Kernel records pause meanwhile.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ws::prof {

struct XrayWindow {
  int64_t length = 0, every = 0;  // steps or ns; every 0: once
  bool by_time = false;

  // The first steps and the first seconds compile, load and allocate.
  static constexpr int64_t kFirstStep = 20, kFirstNs = 2'000'000'000;
  bool any() const { return length > 0; }
  bool open(int64_t at) const { return any() && at >= first() && since(at) < length; }
  int64_t until_change(int64_t at) const;  // from `at`, in steps or ns; the most if nothing changes any more

 private:
  int64_t first() const { return by_time ? kFirstNs : kFirstStep; }
  int64_t since(int64_t at) const { return every > 0 ? (at - first()) % every : at - first(); }
};

XrayWindow xray_steps(std::string_view text);  // "20" or "20/2000"; throws Failure
XrayWindow xray_time(std::string_view text);   // "200ms" or "200ms/10s"; throws Failure
std::string to_text(const XrayWindow& window);  // "20 of every 2000 steps"

// log2 of the cycles between two samples, so that a window of this length gives enough samples and not too many. A window of
// 0.13 s with 2^14 cycles gave 577,000 samples on an H200, and 9.2 million with 2^10, which took 0.2 s to read.
uint32_t sampling_period(int64_t window_ns);

}  // namespace ws::prof
