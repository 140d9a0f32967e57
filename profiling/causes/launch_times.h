// What a launch takes, by what it finds: a busy stream, an idle one, or memory that was freed right before it. A change of the
// steps may change what a launch finds.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "profiling/causes/replay.h"

namespace ws::prof {

enum class LaunchFinds : uint8_t { BusyStream, IdleStream, FreedMemory };

// Learned from the trace itself: the same kernel, launched at places of a step that find one and at places that find the other.
// Different kernels cannot be compared: their launches take different times anyway.
class LaunchTimes {
 public:
  explicit LaunchTimes(const CauseGraph& graph);

  // Replays a changed timing until each launch takes what launches take that find what it finds then.
  void settle(Timing& timing, std::vector<TimeNs>& times) const;

  struct Unknown {
    int64_t ns = 0;       // by how much launches may be longer or shorter, as the trace does not show it
    size_t launches = 0;
  };
  Unknown unknown(const Timing& settled, const std::vector<TimeNs>& times) const;
  // Empty: not enough of both kinds. 0 for a busy stream.
  std::optional<int64_t> longer_ns(LaunchFinds finds) const { return longer_[static_cast<size_t>(finds)]; }

 private:
  struct Launch {
    uint32_t call, kernel, before;  // nodes; before: the node of the stream before the kernel, or the kernel
    LaunchFinds finds;              // as measured
  };
  LaunchFinds finds(const Launch& launch, const Timing& timing, const std::vector<TimeNs>& times) const;
  int64_t known_ns(LaunchFinds finds) const { return longer_ns(finds).value_or(0); }
  void learn();

  const CauseGraph& graph_;
  std::vector<Launch> launches_;
  std::vector<uint32_t> call_before_;  // by node of the host; itself at the begin of a row
  std::array<std::optional<int64_t>, 3> longer_{0, std::nullopt, std::nullopt};
  std::array<int64_t, 3> spread_{};    // how far a launch may be from others of its kind, where `longer_` is not known
};

}  // namespace ws::prof
