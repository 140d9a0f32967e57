// Which part of a run has its instructions sampled: some steps, or some time. Kernel records pause meanwhile.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace ws::prof {

struct XrayWindow {
  int64_t length = 0, every = 0;  // steps or ns; every 0: once
  bool by_time = false;           // length is ns
  bool again_by_time = false;     // every is ns, after some steps: XrayPace knows when

  // The first steps and the first seconds compile, load and allocate.
  static constexpr int64_t kFirstStep = 20, kFirstNs = 2'000'000'000;
  bool any() const { return length > 0; }
  bool open(int64_t at) const { return any() && at >= first() && since(at) < length; }
  int64_t until_change(int64_t at) const;  // from `at`, in steps or ns; the most if nothing changes any more

 private:
  int64_t first() const { return by_time ? kFirstNs : kFirstStep; }
  bool again() const { return every > 0 && by_time == again_by_time; }
  int64_t since(int64_t at) const { return again() ? (at - first()) % every : at - first(); }
};

// To begin or end a window takes 0.12 to 0.3 s, so each half minute this is at most 1 % of the time.
inline constexpr const char* kUsualXraySteps = "20/30s";
XrayWindow xray_steps(std::string_view text);  // "20", "20/2000" or "20/30s"; throws Failure
XrayWindow xray_time(std::string_view text);   // "200ms" or "200ms/10s"; throws Failure
std::string to_text(const XrayWindow& window);  // "20 of every 2000 steps"

// log2 of the cycles between two samples, so that a window of this length gives enough samples and not too many. A window of
// 0.13 s with 2^14 cycles gave 577,000 samples on an H200, and 9.2 million with 2^10, which took 0.2 s to read.
uint32_t sampling_period(int64_t window_ns);

// Decides when the windows of an X-ray open and close. It is asked at each step or, by the clock, regularly; times are in steady clock.
class XrayPace {
 public:
  explicit XrayPace(const XrayWindow& window) : window_(window) {}

  // By steps, when a step begins. Returns the sampling period, or 0: no samples. The period stays for the whole window.
  uint32_t at_step(int64_t step, int64_t now);
  int64_t until_change(int64_t step) const { return window_.until_change(step - shift_); }  // as far as it is known at this step

  // By the clock. A change takes effect when began() is called, or later: until then an open window lasts. The first begin takes
  // some tenths of a second, which are no part of the window.
  struct Turn {
    bool changes = false, opens = false;
    int64_t look_again = 0;  // ns from now
  };
  Turn by_clock(int64_t since_begin, int64_t now);  // `since_begin`: of the first work on the GPU
  void began(int64_t now) { began_ = now; }         // the open window; from any thread

 private:
  const XrayWindow& window_;
  uint32_t period_ = 0;
  int64_t paced_step_ = -1, paced_ns_ = 0;  // a step of late, to know how long steps are
  int64_t shift_ = 0;                       // of the window that comes again by the clock, in steps
  int64_t closed_ns_ = -1;                  // when that window closed
  bool open_ = false;
  int64_t due_ = XrayWindow::kFirstNs;  // of the next window, since the first work
  std::atomic<int64_t> began_{0};       // when the open window really began; 0: not yet
};

}  // namespace ws::prof
