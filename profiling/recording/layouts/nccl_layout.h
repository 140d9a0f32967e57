// The calls of NCCL that are timed, declared as in nccl.h of version 2. Data types, operations and ranks are int, results are int.
#pragma once
#include <cstddef>
#include <string>
#include <tuple>

namespace ws::prof {

template <class... Arguments>
struct NcclFunction {
  const char* name;
};
using NcclFrom = const void*;
using NcclTarget = void*;

inline constexpr const char* kNcclLibrary = "libnccl.so";
inline constexpr std::tuple kNcclFunctions{
    NcclFunction<NcclFrom, NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclAllReduce"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclBroadcast"},
    NcclFunction<NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclBcast"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, int, int, NcclTarget, NcclTarget>{"ncclReduce"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclReduceScatter"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, NcclTarget, NcclTarget>{"ncclAllGather"},
    NcclFunction<NcclFrom, size_t, int, int, NcclTarget, NcclTarget>{"ncclSend"},
    NcclFunction<NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclRecv"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, NcclTarget, NcclTarget>{"ncclAlltoAll"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclGather"},
    NcclFunction<NcclFrom, NcclTarget, size_t, int, int, NcclTarget, NcclTarget>{"ncclScatter"},
};

// "2.28" of the number that ncclGetVersion() returns: 22809, or 2804 before 2.9.
inline std::string nccl_version_text(int number) {
  const int of_major = number < 10000 ? 1000 : 10000;
  return std::to_string(number / of_major) + "." + std::to_string(number % of_major / 100);
}

}  // namespace ws::prof
