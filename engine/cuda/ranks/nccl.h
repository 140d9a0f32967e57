// NCCL, loaded on first use: the program builds without it and does not need it for one GPU.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

namespace ws::cuda {

// The part of NCCL's interface that we call. The constants belong to NCCL version 2.
struct Nccl {
  using Comm = struct ncclComm*;
  struct Id {
    char bytes[128];
  };
  static constexpr int kFloat32 = 7;
  static constexpr int kAverage = 4;       // a reduction operation
  static constexpr int kScalarOnHost = 1;  // the scalar is read during the call

  int (*get_version)(int* version);
  const char* (*get_error_string)(int result);
  int (*comm_init_all)(Comm* comms, int count, const int* devices);
  int (*get_unique_id)(Id* id);
  int (*comm_init_rank)(Comm* comm, int count, Id id, int rank);
  int (*comm_destroy)(Comm comm);
  int (*comm_abort)(Comm comm);
  int (*create_scaled_sum)(int* operation, void* scalar, int type, int residence, Comm comm);
  int (*destroy_operation)(int operation, Comm comm);
  int (*all_reduce)(const void* send, void* receive, size_t count, int type, int operation, Comm comm,
                    cudaStream_t stream);
  int (*group_start)();
  int (*group_end)();

  void check(int result, const char* call) const;  // throws CallFailure
};

// Throws Failure if the library is missing or too old.
Nccl open_nccl(const char* name);
const Nccl& nccl();  // of this machine

}  // namespace ws::cuda
