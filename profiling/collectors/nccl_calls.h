// What NCCL says of its calls in its NVTX ranges: operation, bytes, communicator and ranks. The kernel of a call is
// launched inside of its range, or in the range that ends a group of calls. So calls wait on their thread for the next
// kernel of NCCL; calls of one communicator become one kernel. A kernel that another thread launches (communicators
// that do not block) stays without. NCCL's profiler plugin would say the same and costs as much, within what could be
// measured (tests/bench/results/README.md).
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/annotate/annotate.h"
#include "profiling/collectors/op_join.h"

namespace ws::prof {

struct NcclPayload {
  static constexpr uint64_t kNotSaid = UINT64_MAX;
  bool message = false;  // the range is a call that moves `bytes`
  uint64_t bytes = 0, communicator = 0;
  uint64_t ranks = 0;        // of the communicator; 0: not said
  uint64_t rank = kNotSaid;  // the number of the caller in the communicator
  uint64_t peer = kNotSaid;  // likewise, of the rank to which a call sends, or from which it receives
};

class NcclCalls {
 public:
  static NcclCalls& instance();  // lives until the process ends

  // A range of NCCL begins or ends on this thread. It is drawn, but launches are not joined to it: they belong to what
  // the program itself marks around it.
  void begin(std::string_view function, const NcclPayload& payload);
  void end(const NcclPayload& payload);

  // A launch begins on this thread: what its kernel does, if `symbol` is a kernel of NCCL. Also a graph node that is
  // made before the launch ends.
  NcclWork launch_begins(const char* symbol) noexcept;
  static void launch_ends() noexcept;
  static NcclWork current() noexcept;

  // Instead of a launch, for who wraps NCCL's calls and draws them: between hold() and release() the calls of this thread
  // stay, also when their ranges end, and their ranges are not drawn. release() returns their work by communicator, in the order of their first calls.
  static constexpr size_t kMostWorks = 16;
  using Works = std::array<NcclWork, kMostWorks>;
  static void hold() noexcept;
  static bool held() noexcept;
  Works release() noexcept;
  // For a caller that knows what a call does: ranges of this thread are ignored meanwhile.
  static void ignore_ranges(bool ignored) noexcept;
  static bool ignores_ranges() noexcept;

  // "AllReduce · 2 ranks · communicator 9f1c", "Send · 4 ranks · communicator 9f1c · 1 → 2"; empty: not known
  std::string text(const NcclWork& work) const;

 private:
  NcclCalls() = default;
  void learn(const NcclPayload& payload);
  NcclWork work_of_first_communicator();
  struct Communicator {
    uint64_t ranks;  // 0: several numbers were said
    uint64_t rank;   // of this process; kNotSaid also if it has several
  };
  Communicator communicator(uint64_t number) const;

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Communicator> communicators_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> texts_{""};
};

}  // namespace ws::prof
