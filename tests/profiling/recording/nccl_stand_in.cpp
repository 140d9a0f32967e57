#include "tests/profiling/recording/nccl_stand_in.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/profiling/recording/cuda_stand_in.h"
#include "tests/profiling/recording/nccl_marks.h"

using namespace ws::prof::testing;

namespace {

int64_t g_end = 0;
int g_depth = 0, g_answer = 0;
std::vector<void*> g_streams;
uint64_t* g_free = nullptr;

void launch() {
  for (void* stream : g_streams) stand_in_busy_until(stream, g_end);
  g_streams.clear();
}

int call(const char* function, size_t bytes, const void* communicator, void* stream, int peer = -1) {
  const auto inside = [stream] {
    g_streams.push_back(stream);
    if (g_depth == 0) launch();
  };
  nccl_call(function, bytes, *static_cast<const uint64_t*>(communicator), inside, peer);
  return g_answer;
}

}  // namespace

extern "C" {

int ncclCommInitRank(void** communicator, int ranks, uint64_t id, int rank) {
  nccl_initialize("ncclCommInitRank", id, rank, ranks);
  uint64_t* const made = g_free ? std::exchange(g_free, nullptr) : new uint64_t;
  *made = id;
  *communicator = made;
  return 0;
}
int ncclCommDestroy(void* communicator) {
  nccl_push("ncclCommDestroy"), nccl_pop();
  g_free = static_cast<uint64_t*>(communicator);
  return 0;
}
int ncclAllReduce(const void*, void*, size_t count, int, int, void* communicator, void* stream) {
  return call("ncclAllReduce", 4 * count, communicator, stream);
}
int ncclBroadcast(const void*, void*, size_t count, int, int, void* communicator, void* stream) {
  return call("ncclBroadcast", 4 * count, communicator, stream);
}
int ncclSend(const void*, size_t count, int, int peer, void* communicator, void* stream) {
  return call("ncclSend", 4 * count, communicator, stream, peer);
}
int ncclRecv(void*, size_t count, int, int peer, void* communicator, void* stream) {
  return call("ncclRecv", 4 * count, communicator, stream, peer);
}
int ncclGetVersion(int* version) {
  const char* asked = std::getenv("WARPSIGHT_NCCL_VERSION");
  *version = asked ? std::atoi(asked) : 22809;
  return 0;
}
int ncclGroupStart() {
  nccl_push("ncclGroupStart"), nccl_pop();
  ++g_depth;
  return 0;
}
int ncclGroupEnd() {
  nccl_push("ncclGroupEnd");
  if (--g_depth == 0) launch();
  nccl_pop();
  return g_answer;
}
void stand_in_ends_at(int64_t at) { g_end = at; }
void stand_in_answer(int result) { g_answer = result; }
}
