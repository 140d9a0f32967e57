// A rank of a made-up training, on stand-ins for CUDA and NCCL, that starts its recording as the driver would.
// usage: nccl_program BEGIN [again|captures|opens|messages]. BEGIN: steady clock, ns; the times of all steps follow from it. In each step the ranks reduce
// in a group and broadcast alone. Rank 1 comes 3 ms late in every tenth step. again: only some calls of two communicators, of
// which the second one has the address of the first. captures: only 10 of every 20 steps are in a capture range, on rank 1 five steps later.
// messages: rank 1 of four receives from rank 0 and sends to ranks 2 and 3.
// opens: it looks NCCL's functions up itself, as programs do that are built without NCCL.
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "tests/profiling/recording/cuda_stand_in.h"
#include "tests/profiling/recording/nccl_stand_in.h"

namespace {

constexpr int64_t kStep = 5'000'000, kLate = 3'000'000, kTransfer = 200'000, kSteps = 60;

void step(int64_t begin, bool late, bool mine, void* communicator, void* stream) {
  char data[4] = {};
  stand_in_busy_until(stream, begin + (late && mine ? kLate : 0));
  const int64_t end = begin + (late ? kLate : 0) + kTransfer;
  stand_in_ends_at(end);
  ncclGroupStart(), ncclGroupStart();
  ncclAllReduce(data, data, 1 << 20, 7, 0, communicator, stream);
  ncclAllReduce(data, data, 1 << 18, 7, 0, communicator, stream);
  ncclGroupEnd(), ncclGroupEnd();
  stand_in_busy_until(stream, end + kTransfer);
  stand_in_ends_at(end + 2 * kTransfer);
  ncclBroadcast(data, data, 16, 7, 0, communicator, stream);
}

struct Found {
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
};

Found find(void* library) {
  return {reinterpret_cast<decltype(&ncclAllReduce)>(dlsym(library, "ncclAllReduce")),
          reinterpret_cast<decltype(&ncclBroadcast)>(dlsym(library, "ncclBroadcast"))};
}

Found g_found;  // before the recording begins

// Does what ctypes does, which keeps each function in an object of its own. Also what a jump instead of a call keeps: who calls.
int call_found(void* library, void* communicator, void* stream) {
  const auto later = std::make_unique<Found>(find(library));
  ncclCommInitRank(&communicator, 2, 0x9f1c, 0);
  for (int i = 0; i < 3; ++i) {
    later->all_reduce(nullptr, nullptr, 1 << 20, 7, 0, communicator, stream);
    later->broadcast(nullptr, nullptr, 16, 7, 0, communicator, stream);
    g_found.all_reduce(nullptr, nullptr, 1 << 18, 7, 0, communicator, stream);
  }
  const bool others = dlsym(library, "ncclCommDestroy") == reinterpret_cast<void*>(ncclCommDestroy) &&
                      dlsym(library, "no such function") == nullptr &&
                      dlsym(RTLD_NEXT, "ncclGroupStart") != nullptr && dlsym(RTLD_NEXT, "cuProfilerStart") != nullptr;
  return others ? 0 : 5;
}

// Like CUDA's runtime: it asks the driver for its functions before it starts it.
int (*const volatile g_starts)() = cuProfilerStart;
int (*volatile g_stops)() = cuProfilerStop;

int train_in_ranges(int64_t begin, int rank, void* communicator, void* stream) {
  for (int64_t i = 0; i < kSteps; ++i) {
    const int64_t place = (i + 20 - 5 * rank) % 20;
    if (place == 5) g_starts();
    if (place == 15) i < 20 ? cuProfilerStop() : g_stops();
    step(begin + i * kStep, i % 10 == 0, rank == 1, communicator, stream);
  }
  const auto last = std::chrono::nanoseconds(begin + kSteps * kStep);
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(last));
  return 0;
}

int call_again(void* communicator, void* stream) {
  for (const uint64_t id : {0x9f1c, 0xab12}) {
    ncclCommInitRank(&communicator, 2, id, 0);
    for (const size_t elements : {16, 48, 16}) ncclBroadcast(nullptr, nullptr, elements, 7, 0, communicator, stream);
    ncclCommDestroy(communicator);
  }
  return 0;
}

int send_messages(void* communicator, void* stream) {
  ncclCommInitRank(&communicator, 4, 0x9f1c, 1);
  for (int i = 0; i < 3; ++i) {
    ncclRecv(nullptr, 16, 7, 0, communicator, stream);
    for (const int to : {2, 3}) ncclSend(nullptr, 16, 7, to, communicator, stream);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  void* const nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  g_found = find(nccl);
  auto* initialize = library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr;
  if (!initialize || initialize() != 1) return 3;
  const int rank = std::atoi(std::getenv("RANK"));
  const int64_t begin = std::atoll(arguments[1]);
  void *communicator = nullptr, *stream = stand_in_stream(), *captured = stand_in_stream();
  if (count > 2 && std::strcmp(arguments[2], "again") == 0) return call_again(communicator, stream);
  if (count > 2 && std::strcmp(arguments[2], "messages") == 0) return send_messages(communicator, stream);
  ncclCommInitRank(&communicator, 2, 0x9f1c, rank);
  if (count > 2 && std::strcmp(arguments[2], "opens") == 0) return call_found(nccl, communicator, stream);
  if (count > 2) return train_in_ranges(begin, rank, communicator, stream);
  for (int64_t i = 0; i < kSteps; ++i) step(begin + i * kStep, i % 10 == 0, rank == 1, communicator, stream);
  const int timed = stand_in_recorded();
  stand_in_capture(captured, 1);
  ncclBroadcast(nullptr, nullptr, 16, 7, 0, communicator, captured);
  stand_in_answer(7);  // in progress
  ncclBroadcast(nullptr, nullptr, 16, 7, 0, communicator, stream);
  stand_in_answer(0);
  if (rank == 1) {  // by a way that no table of addresses names
    auto* broadcast = reinterpret_cast<decltype(&ncclBroadcast)>(dlsym(RTLD_DEFAULT, "ncclBroadcast"));
    broadcast(nullptr, nullptr, 16, 7, 0, communicator, stream);
  }
  const auto last = std::chrono::nanoseconds(begin + kSteps * kStep);
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(last));
  return timed == 4 * kSteps ? 0 : 4;
}
