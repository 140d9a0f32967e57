// Stands in for NCCL in tests: marks the ranges that NCCL marks, and occupies the stream until a given time.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
int ncclGetVersion(int* version);  // 2.28.9, or WARPSIGHT_NCCL_VERSION
int ncclCommInitRank(void** communicator, int ranks, uint64_t id, int rank);
int ncclCommDestroy(void* communicator);  // the next one has its address
int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation, void* communicator, void* stream);
int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* communicator, void* stream);
int ncclSend(const void* from, size_t count, int type, int peer, void* communicator, void* stream);
int ncclRecv(void* to, size_t count, int type, int peer, void* communicator, void* stream);
int ncclGroupStart();
int ncclGroupEnd();
void stand_in_ends_at(int64_t at);   // the kernels that are launched from now on; steady clock, ns
void stand_in_answer(int result);    // of all calls
}
