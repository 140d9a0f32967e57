// A profiler plugin of NCCL (interface version 4) that keeps what the NVTX ranges of NCCL say: to measure what this route
// costs. Built and loaded by ranks_truth. Each communicator's end writes the number of its calls to FILE.RANK, where FILE
// is NCCL_PROFILER_CALLS.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInternalError = 3;  // of ncclResult_t
constexpr int kCollectives = 1 << 1;             // of the event types
constexpr size_t kKept = 4096;                   // the newest calls

struct Call {
  const char* function;
  uint64_t elements, sequence;
  int64_t begin_ns, end_ns;
};

struct Communicator {
  int rank = 0;
  uint64_t calls = 0;
  std::vector<Call> kept = std::vector<Call>(kKept);
};

struct Event {  // the part of NCCL's description that a collective has
  uint8_t type;
  void* parent;
  int rank;
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t elements;
};

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int init(void** context, int* wanted, const char*, uint64_t, int, int, int rank, void*) {
  auto* made = new (std::nothrow) Communicator;
  if (!made) return kInternalError;
  made->rank = rank;
  *context = made, *wanted = kCollectives;
  return kSuccess;
}

int start(void* context, void** handle, const Event* event) {
  *handle = nullptr;
  if (event->type != kCollectives) return kSuccess;
  auto* communicator = static_cast<Communicator*>(context);
  Call& call = communicator->kept[communicator->calls++ % kKept];
  call = {event->function, event->elements, event->sequence, now_ns(), 0};
  *handle = &call;
  return kSuccess;
}

int stop(void* handle) {
  if (handle) static_cast<Call*>(handle)->end_ns = now_ns();
  return kSuccess;
}

int state(void*, int, void*) { return kSuccess; }

int finalize(void* context) {
  auto* communicator = static_cast<Communicator*>(context);
  if (const char* file = std::getenv("NCCL_PROFILER_CALLS"))
    if (std::FILE* out = std::fopen((std::string(file) + "." + std::to_string(communicator->rank)).c_str(), "a")) {
      std::fprintf(out, "%llu\n", static_cast<unsigned long long>(communicator->calls));
      std::fclose(out);
    }
  delete communicator;
  return kSuccess;
}

struct Profiler {
  const char* name;
  int (*init)(void**, int*, const char*, uint64_t, int, int, int, void*);
  int (*start)(void*, void**, const Event*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Profiler ncclProfiler_v4;
Profiler ncclProfiler_v4 = {"warpsight", init, start, stop, state, finalize};
