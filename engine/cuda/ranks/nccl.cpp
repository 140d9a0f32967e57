#include "engine/cuda/ranks/nccl.h"

#include <dlfcn.h>

#include "profiling/base/failure.h"

namespace ws::cuda {
namespace {

constexpr int kOldest = 21100;  // first version with sums scaled by each rank

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) throw Failure(std::string("NCCL has no function ") + name + ": install NCCL 2.11 or newer.");
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

Nccl open_nccl(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Failure(std::string("NCCL (") + name +
                  ") was not found, and training on several GPUs needs it: install libnccl2, or name its folder in "
                  "LD_LIBRARY_PATH.");
  Nccl nccl{};
  find(library, "ncclGetVersion", nccl.get_version);
  find(library, "ncclGetErrorString", nccl.get_error_string);
  int version = 0;
  nccl.check(nccl.get_version(&version), "ncclGetVersion");
  if (version < kOldest)
    throw Failure("NCCL " + version_text(version) + " is too old: training on several GPUs needs 2.11 or newer.");
  find(library, "ncclCommInitAll", nccl.comm_init_all);
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRank", nccl.comm_init_rank);
  find(library, "ncclCommDestroy", nccl.comm_destroy);
  find(library, "ncclCommAbort", nccl.comm_abort);
  find(library, "ncclRedOpCreatePreMulSum", nccl.create_scaled_sum);
  find(library, "ncclRedOpDestroy", nccl.destroy_operation);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  return nccl;
}

void Nccl::check(int result, const char* call) const {
  if (result != 0) throw CallFailure(call, get_error_string(result), "the ranks cannot exchange their gradients");
}

const Nccl& nccl() {
  static const Nccl loaded = open_nccl("libnccl.so.2");
  return loaded;
}

}  // namespace ws::cuda
