#include "app/core/gate/clock_lock.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>

#include "app/core/gate/nvml.h"

namespace ws::app {
namespace {

constexpr char kLocked = 'l', kNotLocked = 'n';

std::string why_not(int error) {
  constexpr int kNotSupported = 3, kNoPermission = 4;
  if (error == kNoPermission) return "no permission; only root may lock clocks";
  if (error == kNotSupported) return "this GPU or its driver cannot";
  return "NVML reports error " + std::to_string(error);
}

void reset_first(const GpuClocks& clocks, unsigned gpus) {
  for (unsigned gpu = 0; gpu < gpus; ++gpu) clocks.reset(gpu);
}

// Locks all or none.
struct Attempt {
  std::string rates, failure;  // "1980 MHz"; why clocks are not locked, or empty
};
Attempt lock_all(const GpuClocks& clocks) {
  Attempt attempt;
  const unsigned gpus = clocks.gpus();
  if (gpus == 0) attempt.failure = "no GPU that NVML knows";
  for (unsigned gpu = 0; gpu < gpus && attempt.failure.empty(); ++gpu) {
    const unsigned mhz = clocks.clock_mhz(gpu);
    const int error = mhz > 0 ? clocks.lock(gpu, mhz) : 0;
    if (mhz == 0) attempt.failure = "the application clock is not known";
    else if (error != 0) attempt.failure = why_not(error);
    const std::string rate = std::to_string(mhz) + " MHz";
    if (!attempt.rates.ends_with(rate)) attempt.rates += (attempt.rates.empty() ? "" : ", ") + rate;
    if (!attempt.failure.empty()) reset_first(clocks, gpu);
  }
  return attempt;
}

}  // namespace

GpuClocks nvml_clocks() {
  const auto nvml = std::make_shared<std::unique_ptr<Nvml>>();  // each process loads its own
  const auto get = [nvml]() -> const Nvml& {
    if (!*nvml) *nvml = std::make_unique<Nvml>();
    return **nvml;
  };
  return {[get] { return get().gpus(); }, [get](unsigned gpu) { return get().clock_mhz(gpu); }, [get](unsigned gpu, unsigned mhz) { return get().lock_clocks(gpu, mhz); },
          [get](unsigned gpu) { return get().reset_clocks(gpu); }};
}

// A process of its own waits until we end, even by SIGKILL, and resets the clocks then. It begins before we use NVML, which does
// not survive a fork.
void ClockLock::start_guard(const GpuClocks& clocks) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  guard_ = fork();
  if (guard_ == 0) {
    setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
    close(ends[1]);
    char state = kNotLocked;
    while (read(ends[0], &state, 1) > 0) {
    }
    if (state == kLocked) reset_first(clocks, clocks.gpus());
    _exit(0);
  }
  close(ends[0]);
  to_guard_ = ends[1];
  if (guard_ < 0) close(std::exchange(to_guard_, -1));
}

void ClockLock::report(char state) const {
  if (write(to_guard_, &state, 1) != 1) return;
}

ClockLock::ClockLock(const GpuClocks& clocks) {
  start_guard(clocks);
  if (to_guard_ < 0) {
    text_ = "not locked: no process could be started that resets them";
    return;
  }
  report(kLocked);
  const Attempt attempt = lock_all(clocks);
  text_ = attempt.failure.empty() ? "locked at " + attempt.rates : "not locked: " + attempt.failure;
  if (!attempt.failure.empty()) report(kNotLocked);
}

ClockLock::~ClockLock() {
  if (to_guard_ < 0) return;
  close(to_guard_);
  waitpid(guard_, nullptr, 0);
}

}  // namespace ws::app
