#include "tests/profiling/recording/cuda_stand_in.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

namespace {

struct Stream {
  std::atomic<int64_t> until{0};  // 0: idle
  bool own = false;
  std::atomic<int> captures{0};
};
struct Event {
  std::atomic<int64_t> at{0};
};
int g_context = 0;
std::atomic<int> g_recorded{0};
thread_local int t_mode = 0, t_current = 0;

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

}  // namespace

extern "C" {

void* stand_in_stream() { return new Stream; }
void stand_in_busy_until(void* stream, int64_t at) { static_cast<Stream*>(stream)->until = at; }
void stand_in_capture(void* stream, int on) { static_cast<Stream*>(stream)->captures = on; }
int stand_in_recorded() { return g_recorded; }

int cuEventCreate(void** event, unsigned) {
  if (t_current == 0) return 201;
  *event = new Event;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  auto* of = static_cast<Stream*>(stream);
  if (of->captures) return 900;
  if (!of->own) ++g_recorded;
  static_cast<Event*>(event)->at = of->until != 0 ? of->until.load() : now();
  return 0;
}
int cuEventQuery(void* event) { return now() >= static_cast<Event*>(event)->at ? 0 : 600; }
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  constexpr double kFaster = 1 + 5e-6;
  *ms = static_cast<float>(kFaster * 1e-6 * static_cast<double>(static_cast<Event*>(end)->at - static_cast<Event*>(begin)->at));
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  auto* made = new Stream;
  made->own = true;
  *stream = made;
  return t_current == 0 ? 201 : 0;
}
int cuStreamGetCtx(void*, void** context) {
  *context = &g_context;
  return 0;
}
int cuStreamIsCapturing(void* stream, int* state) {
  *state = static_cast<Stream*>(stream)->captures;
  return 0;
}
int cuCtxPushCurrent_v2(void*) {
  ++t_current;
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = &g_context;
  --t_current;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Stand-in", static_cast<size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;
  return 0;
}
int cuProfilerStart() { return 0; }
int cuProfilerStop() { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, t_mode);
  return 0;
}
}
